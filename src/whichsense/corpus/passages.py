"""Cutting documents into passages: 100 words as in the papers, or whole sentences of about as many."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache

from whichsense.text import sentence_spans
from whichsense.types import Document, Passage

# A hundred real words are 600 characters. Text without spaces (Chinese, base64) is cut by length instead.
_LONGEST_WORD = 40

Span = tuple[int, int]


def cut(document: Document, words: int = 100, sentences: bool = False) -> Iterator[Passage]:
    """The passages of a document, in order. Nothing but white space is left out between them.

    >>> text = "One two three.  Four five six."
    >>> [passage.text for passage in cut(Document("d", "T", text), words=4)]
    ['One two three.  Four', 'five six.']
    >>> [passage.text for passage in cut(Document("d", "T", text), words=4, sentences=True)]
    ['One two three.', 'Four five six.']
    """
    if words < 1:
        raise ValueError("a passage has at least one word")
    text, source = document.text, document.source
    title = " ".join(document.title.split())  # on one line, as it is stored: fingerprints are of this form too
    if document.whole:
        yield Passage(document.id, title, text, source, _section(document, 0), 0, len(text))
        return
    longest = words * _LONGEST_WORD
    spans: Iterable[Span] = _sentences(text, words) if sentences else map(_SPAN, _words(words).finditer(text))
    stem, sections, number = f"{document.id}#", document.sections, 0
    for start, end in spans:
        pieces = ((start, end),) if end - start <= longest else _shortened(text, start, end, longest)
        for begin, stop in pieces:
            section = _section(document, begin) if sections else ""
            alone = not number and not text[stop:].strip()  # a document of one passage lends it its own id
            name = document.id if alone else f"{stem}{number}"
            yield Passage(name, title, text[begin:stop], source, section, begin, stop)
            number += 1


def _section(document: Document, at: int) -> str:
    """The heading in force at a place."""
    place = bisect_right(document.sections, at, key=_offset)
    return document.sections[place - 1][1] if place else ""


def _offset(section: tuple[int, str]) -> int:
    return section[0]


_SPAN = re.Match.span


@lru_cache(maxsize=16)
def _words(count: int) -> re.Pattern[str]:
    """Up to `count` words. Possessive: a quarter faster, and without the backtracking that hostile text could use.

    Counting spaces, numpy over code points and `split` were measured beside it: none was clearly faster.
    """
    return re.compile(rf"\S++(?:\s++\S++){{0,{count - 1}}}+")


def _sentences(text: str, words: int) -> Iterator[Span]:
    """Whole sentences, as many as fit into `words` words; a longer sentence stands alone, cut at words."""
    begin = end = held = 0
    for start, stop in sentence_spans(text):
        count = len(text[start:stop].split())
        if held and held + count > words:
            yield begin, end
            held = 0
        if count > words:
            yield from map(_SPAN, _words(words).finditer(text, start, stop))
            continue
        if not held:
            begin = start
        end, held = stop, held + count
    if held:
        yield begin, end


def _shortened(text: str, start: int, end: int, longest: int) -> Iterator[Span]:
    """Pieces of at most `longest` characters, parted at white space where there is some."""
    while end - start > longest:
        gap = max(text.rfind(space, start + 1, start + longest) for space in (" ", "\n"))
        stop = gap if gap > start else start + longest
        yield _trimmed(text, start, stop)
        start = stop
        while text[start].isspace():
            start += 1
    yield _trimmed(text, start, end)


def _trimmed(text: str, start: int, end: int) -> Span:
    while end > start + 1 and text[end - 1].isspace():
        end -= 1
    return start, end
