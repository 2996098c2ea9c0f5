"""Texts that a person could have written, and the same texts broken in the ways in which rewrites break."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_PREPOSITIONS = ("in", "of", "at", "for", "by", "on", "with", "from", "as", "in the")
_PRESENT = {"was": "is", "were": "are", "did": "does"}
_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class FluentText:
    """A question as a person wrote it, and the question that it was rewritten from; that is empty if there is none."""

    text: str
    prompt: str = ""


def break_text(
    one: FluentText, others: Sequence[FluentText], rng: random.Random
) -> str | None:
    """The text broken in one way, at random; None if that way does not apply. Parts of `others` may be spliced in."""
    row = one.text.split()
    if len(row) < _FEWEST_WORDS:
        return None
    way = rng.choice(_WAYS)
    broken = way(row, one, rng.choice(others), rng)
    if broken is None or _key(broken) == _key(row):
        return None
    return " ".join(broken)


def _key(row: Sequence[str]) -> list[str]:
    return [word.lower().rstrip("?") for word in row]


def inserted_words(prompt: Sequence[str], row: Sequence[str]) -> tuple[int, int]:
    """The longest insertion of a rewrite: the places of its first word and behind its last; (0, 0) if none."""
    matcher = SequenceMatcher(None, _key(prompt), _key(row), autojunk=False)
    best = (0, 0)
    for kind, _, _, first, end in matcher.get_opcodes():
        if kind in ("insert", "replace") and end - first > best[1] - best[0]:
            best = (first, end)
    return best


_Words = list[str]


def _misplace(
    row: _Words, one: FluentText, other: FluentText, rng: random.Random
) -> _Words | None:
    """The addition stands at a place where it does not belong."""
    first, end = inserted_words(one.prompt.split(), row)
    if not one.prompt or first == end:
        return None
    rest = row[:first] + row[end:]
    place = rng.randrange(1, max(2, len(rest)))
    if abs(place - first) < 2:
        return None
    return rest[:place] + row[first:end] + rest[place:]


def _cut(
    row: _Words, one: FluentText, other: FluentText, rng: random.Random
) -> _Words | None:
    """The end of the addition, or of the text, is missing: a preposition or half a name is left."""
    first, end = inserted_words(one.prompt.split(), row)
    if one.prompt and end - first > 1:
        length = rng.randint(1, end - first - 1)
        return row[: end - length] + row[end:]
    return [*row, rng.choice(_PREPOSITIONS)]


def _double(
    row: _Words, one: FluentText, other: FluentText, rng: random.Random
) -> _Words | None:
    """Some words come again, sometimes behind an *and* or a preposition."""
    length = rng.randint(1, 3)
    first = rng.randrange(0, len(row) - length + 1)
    part = row[first : first + length]
    link = rng.choice(["and", "in", "of", "", "", "the"])
    return row[: first + length] + [link] * bool(link) + part + row[first + length :]


def _splice(
    row: _Words, one: FluentText, other: FluentText, rng: random.Random
) -> _Words | None:
    """A part of another text stands within this one."""
    foreign = other.text.rstrip("?").split()
    length = rng.randint(1, min(4, len(foreign)))
    first = rng.randrange(0, len(foreign) - length + 1)
    place = rng.randrange(1, len(row))
    return row[:place] + foreign[first : first + length] + row[place:]


def _swap(
    row: _Words, one: FluentText, other: FluentText, rng: random.Random
) -> _Words | None:
    """Two neighbouring words, or a word and one further on, change places."""
    first = rng.randrange(0, len(row) - 2)
    second = first + rng.choice([1, 1, 2])
    swapped = list(row)
    swapped[first], swapped[second] = row[second], row[first]
    return swapped


def _drop(
    row: _Words, one: FluentText, other: FluentText, rng: random.Random
) -> _Words | None:
    """A word within the text is missing."""
    place = rng.randrange(1, len(row) - 1)
    return row[:place] + row[place + 1 :]


def _restart(
    row: _Words, one: FluentText, other: FluentText, rng: random.Random
) -> _Words | None:
    """Another beginning of a question stands before this one's end: *Based on when was the last time …*."""
    begin = other.text.rstrip("?").split()[: rng.randint(2, 4)]
    return begin + row[rng.randint(0, 1) :]


def _change_tense(
    row: _Words, one: FluentText, other: FluentText, rng: random.Random
) -> _Words | None:
    """The verb's time is not the one that is said: *Who is the king in 1911?*"""
    has_year = any(word.strip("?,")[:4].isdigit() for word in row)
    for place, word in enumerate(row[:4]):
        if has_year and word.lower() in _PRESENT:
            return [*row[:place], _PRESENT[word.lower()], *row[place + 1 :]]
    return None


_WAYS: tuple[
    Callable[[_Words, FluentText, FluentText, random.Random], _Words | None], ...
] = (
    _misplace,
    _misplace,
    _cut,
    _cut,
    _double,
    _splice,
    _splice,
    _swap,
    _drop,
    _restart,
    _change_tense,
)
