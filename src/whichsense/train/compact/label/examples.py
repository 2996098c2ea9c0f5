"""What labels are learnt from, as text: questions over passages, with the place of every answer and of its label."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_WORD = re.compile(r"\w+")
_LONGEST_LABEL = 8  # words
_LITTLE = frozenset(
    "a an the of in on at to for from by with and or is are was were be been do does did has have had as that which "
    "who when it its this their his her".split()
)


@dataclass(frozen=True, slots=True)
class Label:
    """The words that name an answer's case: characters of the title or of the text."""

    start: int
    end: int
    in_title: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer's characters in the text, and what is known of its label."""

    start: int
    end: int
    label: Label | None = None
    frame: int = -1
    """The number of the frame that puts the label into the question; -1: not known."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question over one passage."""

    question: str
    title: str
    text: str
    answers: tuple[Answer, ...]
    held_out: bool = False
    """Whether it is not learnt from."""


def find_words(text: str, wanted: str) -> list[tuple[int, int]]:
    """Where a string stands in a text as whole words, whatever its case."""
    if not wanted.strip():
        return []
    pattern = rf"(?<!\w){re.escape(wanted.strip())}(?!\w)"
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]


def find_answers(text: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Where any name of an answer stands, the longest where several overlap."""
    found = {span for name in names for span in find_words(text, name)}
    kept: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda span: (span[0] - span[1], span)):
        if all(end <= first or start >= last for first, last in kept):
            kept.append((start, end))
    return sorted(kept)


def find_label(title: str, text: str, label: str, near: int) -> Label | None:
    """A label's place: in the text, the nearest to a place in it, else in the title."""
    places = [match.start() for match in re.finditer(re.escape(label), text)]
    if places:
        start = min(places, key=lambda place: abs(place - near))
        return Label(start, start + len(label))
    start = title.find(label)
    return Label(start, start + len(label), in_title=True) if start >= 0 else None


def label_of_rewrite(question: str, rewrite: str, support: str) -> str:
    """The words of the support that a rewrite adds to its question; empty where they are no short phrase of it.

    >>> label_of_rewrite("what is promised", "what is promised on the basic plan", "99.5 per cent on Basic")
    'on Basic'
    """
    asked = {match.group().casefold() for match in _WORD.finditer(question)}
    added = set()
    for match in _WORD.finditer(rewrite):
        if match.group().casefold() not in asked:
            added.add(match.group().casefold())
    words = [
        (m.start(), m.end(), m.group().casefold()) for m in _WORD.finditer(support)
    ]
    telling = [at for at, word in enumerate(words) if word[2] in added - _LITTLE]
    if not telling or telling[-1] - telling[0] >= _LONGEST_LABEL:
        return ""
    first = telling[0]
    # A preposition before it belongs to it, if the rewrite has it too.
    if first and words[first - 1][2] in added and words[first - 1][2] in _LITTLE:
        first -= 1
    return support[words[first][0] : words[telling[-1]][1]]
