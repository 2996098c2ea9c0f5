"""How the readings of a question relate: their order, and what tells them apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from whichsense.models.compact.rewrite.forms.title_forms.words import (
    PREPOSITION_OF_WORK,
    VERSION_NOUNS,
    is_same_kind,
)
from whichsense.models.compact.story.mentions import work_of
from whichsense.text.dates import parse_date
from whichsense.text.sentences import sentence_at
from whichsense.types import Reading

_YEAR = re.compile(r"\b((?:1[0-9]|20)\d\d)s?\b")
_PLACE = re.compile(r"\b(?:in|at) (?:the )?[A-Z]")
_NAME = re.compile(r"\b[A-Z][\w’'.-]*(?: (?:of |the )*[A-Z][\w’'-]*)*")
_WORDS = re.compile(r"[\w’'.-]*\w")
_ORDINAL = re.compile(r"\b(?:season|series|episode|volume|part|book) (\d+)\b", re.I)


def in_order(readings: Sequence[Reading]) -> list[Reading]:
    """Readings by time where each has a year, by number where each is a numbered part, else by importance."""
    for key in (_time, _number):
        keys = [key(reading) for reading in readings]
        if all(one is not None for one in keys) and len(set(keys)) > 1:
            places = sorted(range(len(readings)), key=lambda place: keys[place] or ())
            return [readings[place] for place in places]
    return list(readings)


def _time(reading: Reading) -> tuple[int, ...] | None:
    """The date that a reading is about: of its answer, of its rewrite, or of its title."""
    date = parse_date(reading.answer)
    if date is not None and date.year is not None:
        return (date.year, date.month or 0, date.day or 0)
    for text in (reading.question, _title(reading), _evidence_sentence(reading)):
        year = _YEAR.search(text)
        if year:
            return (int(year[1]),)
    return None


def _evidence_sentence(reading: Reading) -> str:
    if not reading.evidence:
        return ""
    span = reading.evidence[0]
    start, end = sentence_at(span.passage.text, span.start)
    return span.passage.text[start:end]


def _number(reading: Reading) -> tuple[int, ...] | None:
    match = _ORDINAL.search(reading.question)
    return (int(match[1]),) if match else None


def what_differs(question: str, readings: Sequence[Reading]) -> str:
    """What the answer depends on, by what the rewrites add; empty where they do not say.

    >>> readings = [Reading("Who won it in 1998?", "A"), Reading("Who won it in 2002?", "B")]
    >>> what_differs("Who won it?", readings)
    'the year'
    """
    rewrites = [reading.question for reading in readings]
    if len(set(rewrites)) < len(rewrites):
        return ""
    added = [_added(question, rewrite) for rewrite in rewrites]
    if sum(map(bool, added)) < len(added) - 1:
        return ""
    kinds = _works(readings) or [_kind(text) for text in added]
    if all(kinds):
        is_one_kind = all(is_same_kind(kinds[0], kind) for kind in kinds)
        return f"the {kinds[0]}" if is_one_kind else "the version"
    for pattern, noun in ((_YEAR, "the year"), (_PLACE, "the place")):
        if all(pattern.search(text) for text in added):
            return noun
    titles = {one.evidence[0].passage.title for one in readings if one.evidence}
    if len(titles) == 1:  # one document tells its cases apart: no name has two senses
        return "the case"
    name = _shared_name(question, readings)
    return f"which {name} is meant" if name else "what is meant"


def _added(question: str, rewrite: str) -> str:
    """The words that a rewrite adds to a question."""
    before, after = question.rstrip("?").split(), rewrite.rstrip("?").split()
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    added: list[str] = []
    for tag, _, _, start, stop in matcher.get_opcodes():
        if tag in ("insert", "replace"):
            added += after[start:stop]
    return " ".join(added)


def _shared_name(question: str, readings: Sequence[Reading]) -> str:
    """The longest name in the question whose words all stand in the title of every reading's evidence."""
    for match in sorted(_NAME.finditer(question, 1), key=lambda one: -len(one[0])):
        name = match[0].removesuffix("’s").removesuffix("'s")
        if name.startswith("The "):
            continue
        parts = set(name.split())
        if all(parts <= set(_WORDS.findall(_title(one))) for one in readings):
            return name
    return ""


def _title(reading: Reading) -> str:
    return reading.evidence[0].passage.title if reading.evidence else ""


def _works(readings: Sequence[Reading]) -> list[str]:
    """The kinds of the works that the evidence is about; empty where not each reading has a work of its own."""
    kinds = []
    for reading in readings:
        work = work_of(reading.evidence[0].passage) if reading.evidence else None
        if work is None:
            return []
        kinds.append(work.head)
    is_distinct = len({_title(reading) for reading in readings}) == len(readings)
    return kinds if is_distinct else []


def _kind(text: str) -> str:
    """The kind of work that a text names: the last such word."""
    kind = ""
    for word in re.findall(r"[a-z]+", text):
        if word in PREPOSITION_OF_WORK or word in VERSION_NOUNS:
            kind = word
    return kind
