"""Split text into sentences by rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r"[^\n]+")
# A sentence ends at . ! or ? (with closing quotes) before white space and a capital, digit or opening quote,
# unless the dot belongs to an initial or to a common abbreviation.
_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]]*+\s++(?=[\"'“‘(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|Rev|Gen|Col|Capt|Lt|Sgt|St|Mt|Ft|Jr|Sr|Co|Corp|Inc|Ltd|No|Nos|Vol|vs|etc|ca|cf"
    r"|e\.g|i\.e|U\.S|U\.K|Jan|Feb|Mar|Apr|Aug|Sept|Oct|Nov|Dec|approx))$"
)
_LONGEST_ABBREVIATION = 8  # characters, with what stands before it


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each sentence. A line break always ends one.

    >>> text = "Dr. No came out in 1962. It was a film."
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['Dr. No came out in 1962.', 'It was a film.']
    """
    for line in _LINE.finditer(text):
        start = line.start()
        for gap in _SENTENCE_END.finditer(text, line.start(), line.end()):
            if _is_abbreviation(text, start, gap.start()):
                continue
            yield from _strip_span(text, start, gap.end())
            start = gap.end()
        yield from _strip_span(text, start, line.end())


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order."""
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_at(text: str, place: int) -> tuple[int, int]:
    """The start and end of the sentence that holds the character at a place; the whole text if none does.

    >>> sentence_at("It rained. It poured.", 13)
    (11, 21)
    """
    for start, end in sentence_spans(text):
        if start <= place < end:
            return start, end
    return 0, len(text)


def excerpt(text: str, start: int, end: int, longest: int) -> tuple[str, str, str]:
    """The sentence in which a span stands: what is before the span, the span, what is after it.

    A sentence of more than about `longest` characters is cut between words, on both sides.

    >>> excerpt("It rained. Then Ann won the cup.", 16, 19, 80)
    ('Then ', 'Ann', ' won the cup.')
    >>> excerpt("A long way off, under the hills, Ann won.", 33, 36, 20)
    ('… under the hills, ', 'Ann', ' won.')
    """
    first, last = sentence_at(text, start)
    before, span = text[first:start], text[start:end]
    after = text[end : max(last, end)]
    room = max(longest - len(span), 40) // 2
    if not before:
        room *= 2
    if len(before) > room:
        before = f"… {before[-room:].partition(' ')[2]}"
    if len(after) > room:
        after = f"{after[:room].rpartition(' ')[0]} …"
    return before, span, after


def _is_abbreviation(text: str, start: int, mark: int) -> bool:
    """Whether the mark at `mark` is the dot of an abbreviation; the sentence began at `start`."""
    if text[mark] != ".":
        return False
    earliest = max(start, mark - _LONGEST_ABBREVIATION)
    return bool(_ABBREVIATION.search(text, earliest, mark))


def _strip_span(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The span without white space at its ends; nothing where it is all white space."""
    piece = text[start:end]
    body = piece.strip()
    if body:
        start += len(piece) - len(piece.lstrip())
        yield start, start + len(body)
