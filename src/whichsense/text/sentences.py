"""Split text into sentences by rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A sentence ends at . ! or ? (with closing quotes) before white space and a capital, digit or opening quote,
# unless the dot belongs to an initial or to a common abbreviation.
_SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]]*+\s++(?=[\"'“‘(\[]?[A-Z0-9])")
_ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|Rev|Gen|Col|Capt|Lt|Sgt|St|Mt|Ft|Jr|Sr|Co|Corp|Inc|Ltd|No|Nos|Vol|vs|etc|ca|cf"
    r"|e\.g|i\.e|U\.S|U\.K|Jan|Feb|Mar|Apr|Aug|Sept|Oct|Nov|Dec|approx))$"
)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence begins and ends. A line break always ends one.

    >>> text = "Dr. No came out in 1962. It was a film."
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['Dr. No came out in 1962.', 'It was a film.']
    """
    for line in re.finditer(r"[^\n]+", text):
        start = line.start()
        for gap in _SENTENCE_END.finditer(text, line.start(), line.end()):
            mark = gap.start()
            if text[mark] == "." and _ABBREVIATION.search(
                text, max(start, mark - 8), mark
            ):
                continue
            yield from _stripped(text, start, gap.end())
            start = gap.end()
        yield from _stripped(text, start, line.end())


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    if body := piece.strip():
        start += len(piece) - len(piece.lstrip())
        yield start, start + len(body)


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order."""
    return [text[start:end] for start, end in sentence_spans(text)]
