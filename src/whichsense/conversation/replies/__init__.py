"""What a free reply to a clarification means."""

from __future__ import annotations

import re
from collections.abc import Collection

from whichsense.conversation.records import (
    ABOUT,
    ALL,
    CHOOSE,
    QUESTION,
    SKIP,
    UNCLEAR,
    Intent,
    check_reply,
)
from whichsense.conversation.replies.choices import Selection, select
from whichsense.conversation.replies.matching import Matcher
from whichsense.conversation.replies.questions import (
    about_options,
    is_question,
    proposal,
    restates,
)
from whichsense.conversation.replies.tokens import plain
from whichsense.conversation.replies.vocabulary import GREETINGS
from whichsense.conversation.replies.whole import whole_intent
from whichsense.types import Clarification

_OTHER_ONE = re.compile(r"\bthe others?(?: ones?)?\b")


def understand(
    text: str,
    clarification: Clarification,
    question: str = "",
    chosen: Collection[str] = (),
) -> Intent:
    """What a reply to a clarification means.

    `question` is what was asked at first; `chosen` are options that were chosen before: "the other one" is none of
    them.
    """
    said = check_reply(text)
    bare = plain(said).strip(" ?.!…")
    if not re.search(r"\w", bare):
        return Intent(SKIP)
    matcher = Matcher(clarification, question)
    labelled = matcher.labelled(bare)
    if labelled:
        return _chosen(Selection((labelled,), 1.0), matcher)
    proposed = proposal(bare)
    if proposed:
        bare = proposed
    elif is_question(bare):
        return _question(said, bare, matcher)
    if chosen and _OTHER_ONE.search(bare):
        others = tuple(one for one in matcher.ids if one not in chosen)
        return _chosen(Selection(others, 1.0), matcher)
    return whole_intent(bare, matcher) or _choice(bare, matcher)


def _question(said: str, bare: str, matcher: Matcher) -> Intent:
    restated = restates(bare, matcher)
    if restated:
        return _chosen(restated, matcher)
    about = about_options(bare, matcher)
    if about:
        return Intent(ABOUT, about.ids, about.score)
    return Intent(QUESTION, question=without_greeting(said))


def without_greeting(text: str) -> str:
    """A question without the words before it.

    >>> without_greeting("Actually, who wrote Dune?"), without_greeting("No, wait: when?")
    ('who wrote Dune?', 'when?')
    """
    parts = re.split(r"(\W+)", text)
    start = 0
    while start < len(parts) - 1 and (
        not parts[start].strip() or parts[start].lower() in GREETINGS
    ):
        start += 2
    return "".join(parts[start:]) or text


def _choice(bare: str, matcher: Matcher) -> Intent:
    selection = select(bare, matcher)
    return _chosen(selection, matcher) if selection.ids else Intent(UNCLEAR, score=0.0)


def _chosen(selection: Selection, matcher: Matcher) -> Intent:
    kind = CHOOSE if len(selection.ids) < len(matcher.ids) else ALL
    return Intent(kind, selection.ids, round(selection.score, 3))
