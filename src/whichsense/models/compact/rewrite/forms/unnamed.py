"""Forms for a title that the question does not name: Who plays Willy Wonka in the 2023 film Wonka?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whichsense.models.compact.rewrite.forms.brackets import Proposal
from whichsense.models.compact.rewrite.forms.grammar import append_phrase, in_register
from whichsense.models.compact.rewrite.forms.mentions import Mention, split_words
from whichsense.models.compact.rewrite.forms.title_parts import Qualifier
from whichsense.models.compact.rewrite.forms.title_words import (
    PLAYING_VERBS,
    PREPOSITION_OF_WORK,
    is_same_kind,
)
from whichsense.text.function_words import QUESTION_WORDS

_KIND_MENTION = re.compile(r"\b(?P<article>the)\s+(?P<kind>[a-z]+)\b", re.IGNORECASE)
_ON_SCREEN = re.compile(r"\bon (?:film|screen|television|tv|stage)$")
_TAIL = re.compile(r"\b(?:in|on|at|from|during|of)\s+(?:[\w'’.-]+\s*){1,4}$")
_OPENING = 250


def unnamed_rewrites(
    question: str, name: str, qualifier: Qualifier | None, text: str
) -> Iterator[Proposal]:
    """Rewrites that name the work, event or thing of the title, best first."""
    kind = qualifier if qualifier and qualifier.way == "kind" else _kind_of(name, text)
    if kind is None:
        return
    named = _name_kind(question, name, kind)
    if named:
        yield from named
        return
    if kind.is_work:
        yield from _append_work(question, name, kind, qualifier is not None)


def _kind_of(name: str, text: str) -> Qualifier | None:
    """The kind of thing that the opening of a text says its title is: Gull is a 1961 British film."""
    subject = re.escape(name)
    pattern = rf"\b{subject}\b[^.;]{{0,40}}?\b(?:is|was|are|were)\s+(?:an?|the)\s+(?P<kind>[^,.;:]+)"
    match = re.search(pattern, text[:_OPENING])
    if not match:
        return None
    words = re.split(
        r"\s+(?:of|by|in|that|which|from|with|for|about|and|set|to|made|on|at|directed|written)\b",
        match["kind"],
    )[0].split()
    if not words or not words[-1].isalpha() or not words[-1].islower():
        return None
    return Qualifier("kind", "", words[-1])


def _name_kind(question: str, name: str, kind: Qualifier) -> list[Proposal]:
    """The title behind its kind in the question: the Australian soap Neighbours; in the 1976 film King Kong."""
    proposals = []
    pattern = re.compile(r"\bthe (?P<adjectives>(?:[\w-]+ ){0,3}?)(?P<kind>[a-z]+)\b")
    for match in pattern.finditer(question):
        word = match["kind"]
        is_kind = word == kind.head or (
            word in PREPOSITION_OF_WORK and is_same_kind(word, kind.head)
        )
        mention = Mention(question, match.start("kind"), match.end("kind"))
        if not is_kind or not mention.is_complete or mention.is_possessive:
            continue
        if any(
            adjective in QUESTION_WORDS for adjective in match["adjectives"].split()
        ):
            continue
        modifier = f"{kind.modifier} " if kind.modifier else ""
        if any(map(str.isdigit, match["adjectives"])):
            modifier = ""
        place = (
            match.start("kind")
            if not match["adjectives"]
            else match.start("adjectives")
        )
        front = f"{question[:place]}{in_register(modifier, question)}{question[place : match.end('kind')]}"
        rest = question[match.end("kind") :]
        title = in_register(name, question)
        proposals.append(Proposal(f"{front} {title}{rest}", "named"))
        if modifier:
            proposals.append(Proposal(f"{front}{rest}", "named"))
    return proposals


def _append_work(
    question: str, name: str, kind: Qualifier, is_bracketed: bool
) -> Iterator[Proposal]:
    """in the 2023 film Wonka, at the end of a question about a character."""
    bare = question.rstrip(" ?.!")
    verbs = {word.form for word in split_words(question)}
    if not verbs & PLAYING_VERBS:
        return
    on_screen = _ON_SCREEN.search(bare)
    if on_screen:
        question = f"{bare[: on_screen.start()].rstrip()}{question[len(bare) :]}"
    elif re.search(r"\b(?:in|on|at|from)\b", bare):
        return
    phrase = f"{kind.preposition} the {kind.phrase()}"
    if is_bracketed:
        yield Proposal(append_phrase(question, f"{phrase} {name}"), "append")
        yield Proposal(append_phrase(question, f"{kind.preposition} {name}"), "append")
        if kind.modifier:
            yield Proposal(append_phrase(question, phrase), "append")
        return
    yield Proposal(append_phrase(question, f"{kind.preposition} {name}"), "append")
    yield Proposal(append_phrase(question, f"{phrase} {name}"), "append")
