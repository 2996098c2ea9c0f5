"""Forms for a title that the question does not name: Who plays Willy Wonka in the 2023 film Wonka?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whichsense.models.compact.rewrite.forms.grammar import append_phrase, in_register
from whichsense.models.compact.rewrite.forms.title_forms.inserting import Proposal
from whichsense.models.compact.rewrite.forms.title_forms.mentions import (
    Mention,
    split_words,
)
from whichsense.models.compact.rewrite.forms.title_forms.parts import Qualifier
from whichsense.models.compact.rewrite.forms.title_forms.words import (
    NATIONAL_ADJECTIVES,
    ORDER_WORDS,
    PLAYING_VERBS,
    PREPOSITION_OF_WORK,
    is_same_kind,
)
from whichsense.text.function_words import QUESTION_WORDS

# A noun of the question with its article or owner and adjectives: the Australian soap, Henry's wife.
_DETERMINED = re.compile(r"(?:\b[Tt]he|[\w]+[’']s) (?P<adjectives>(?:[\w-]+ ){0,4})$")
_ON_SCREEN = re.compile(r"\bon (?:film|screen|television|tv|stage)$")
_WORKS = "|".join(sorted(PREPOSITION_OF_WORK))
_PERSON = r"[^.]{0,80}\b(?:is|was) an? [\w -]*(?:er|or|ist|ian|ess|man|poet)\b"
_OPENING = 250  # characters of a text that say what its subject is


def unnamed_rewrites(
    question: str, name: str, qualifier: Qualifier | None, text: str
) -> Iterator[Proposal]:
    """Rewrites that name the work or thing of the title, best first."""
    kind = qualifier if qualifier and qualifier.way == "kind" else None
    named = list(_name_kind(question, name, kind, text))
    if named:
        yield from named
    elif kind is not None and kind.is_work:
        yield from _append_work(question, name, kind)
    elif kind is None and _is_work(name, text):
        yield from _append_name(question, name)


def _name_kind(
    question: str, name: str, kind: Qualifier | None, text: str
) -> Iterator[Proposal]:
    """The title behind its kind in the question: the Australian soap Neighbours; in the 1976 film King Kong."""
    if not name[0].isupper():
        return
    for match in re.finditer(r"\b[a-z]{3,}\b", question):
        noun = match[0]
        before = _DETERMINED.search(question[: match.start()])
        if not before or noun in QUESTION_WORDS | ORDER_WORDS | {"name"}:
            continue
        if kind is not None:
            is_kind = noun == kind.head or is_same_kind(noun, kind.head)
        else:
            is_kind = _is_called(name, noun, text)
        if not is_kind or _is_other(f"{before['adjectives']}{noun}", name):
            continue
        mention = Mention(question, match.start(), match.end())
        is_complete = mention.widen(before.start()).is_complete
        if is_complete and mention.following != "of" and not mention.is_possessive:
            modifier = kind.modifier if kind else ""
            yield from _insert_name(mention, name, modifier, before.start("adjectives"))


def _is_other(adjectives: str, name: str) -> bool:
    """Whether adjectives before a kind have a name, a rank or function words: the Barbie doll, the first station."""
    known = set(name.lower().split()) | QUESTION_WORDS | (ORDER_WORDS - {"old", "new"})
    for word in adjectives.split():
        is_name = word[0].isupper() and word not in NATIONAL_ADJECTIVES
        if is_name or word.lower() in known or word.endswith("est"):
            return True
    return False


def _insert_name(
    mention: Mention, name: str, modifier: str, start: int
) -> Iterator[Proposal]:
    """The name behind its kind, and the modifier before the kind's adjectives, which begin at `start`."""
    question = mention.question
    adjectives = question[start : mention.start]
    added = ""
    if modifier and not re.search(r"\d", adjectives):
        added = f"{in_register(modifier, question)} "
    front = f"{question[:start]}{added}{question[start : mention.end]}"
    title = in_register(name, question)
    yield Proposal(f"{front} {title}{mention.right}", "named")
    if added:
        yield Proposal(f"{front}{mention.right}", "named")


def _is_called(name: str, noun: str, text: str) -> bool:
    """Whether a text says that the title is such a thing.

    >>> _is_called("Gull Bay", "soap", "Gull Bay is an Australian soap about a school.")
    True
    """
    subject = re.escape(name)
    some = r"(?:an?|the|one of|its|his|her)"
    # The noun is the head: no other noun follows it.
    end = r"(?=[,.;]| (?:of|in|by|that|which|who|and|with|for|from|at|on|about|set|made|to)\b)"
    patterns = (
        rf"{subject}[^.;]{{0,60}}?\b(?:is|was|are|were|became)\s+{some}\s+(?:[\w-]+ ){{0,5}}{noun}{end}",
        rf"{subject}, {some} (?:[\w-]+ ){{0,4}}{noun}{end}",
        rf"\b(?:[Tt]he|[Aa]n?) (?:[\w-]+ ){{0,3}}{noun} {subject}\b",
    )
    opening = text[:_OPENING]
    return any(re.search(pattern, opening) for pattern in patterns)


def _is_work(name: str, text: str) -> bool:
    """Whether the opening of a text says that the title is a work in which characters appear."""
    opening = text[:_OPENING]
    subject = re.escape(name)
    if not all(word[0].isupper() for word in name.split() if len(word) > 3):
        return False
    if re.search(rf"{subject}{_PERSON}", opening):
        return False
    beside = (
        rf"\b(?:{_WORKS})\b[^.]{{0,15}}{subject}|{subject}[^.]{{0,60}}\b(?:{_WORKS})\b"
    )
    return re.search(beside, opening) is not None


def _append_work(question: str, name: str, kind: Qualifier) -> Iterator[Proposal]:
    """in the 2023 film Wonka, at the end of a question about a character."""
    asked = _open_end(question)
    if not asked:
        return
    phrase = f"{kind.preposition} the {kind.phrase()}"
    yield Proposal(append_phrase(asked, f"{phrase} {name}"), "append")
    if kind.modifier:
        yield Proposal(append_phrase(asked, phrase), "append")
    yield Proposal(append_phrase(asked, f"{kind.preposition} {name}"), "append")


def _append_name(question: str, name: str) -> Iterator[Proposal]:
    """in The Hollow Crown, at the end of a question about a character."""
    asked = _open_end(question)
    if asked:
        yield Proposal(append_phrase(asked, f"in {name}"), "append")


def _open_end(question: str) -> str:
    """A question about a character, at whose end a work may be named, without "on film"; empty for others."""
    bare = question.rstrip(" ?.!")
    if not {word.form for word in split_words(question)} & PLAYING_VERBS:
        return ""
    on_screen = _ON_SCREEN.search(bare)
    if on_screen:
        return f"{bare[: on_screen.start()].rstrip()}{question[len(bare) :]}"
    return "" if re.search(r"\b(?:in|on|at|from)\b", bare) else question
