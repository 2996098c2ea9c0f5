"""Cut a document into passages at its outline, and drop passages that were read before."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.text.words import sentence_spans
from whichsense.types import Document, Passage

# Cutting documents into passages: 100 words as in the papers, or whole sentences of about as many.

# Characters. A hundred real words are 600. Text without spaces (Chinese, base64) is cut by length instead.
_LONGEST_WORD = 40
# For texts of this many characters numpy is faster than a pattern; beyond, it would take much memory.
_LONG = range(2_000, 2_000_000)

Span = tuple[int, int]
_Piece = tuple[str, str, int, int]
"""A passage's id and section, and where it begins and ends in its document."""


def cut(document: Document, words: int = 100, sentences: bool = False) -> Iterator[Passage]:
    """Yield the passages of a document, in order. Nothing but white space is left out between them.

    >>> text = "One two three.  Four five six."
    >>> [passage.text for passage in cut(Document("d", "T", text), words=4)]
    ['One two three.  Four', 'five six.']
    >>> [passage.text for passage in cut(Document("d", "T", text), words=4, sentences=True)]
    ['One two three.', 'Four five six.']
    """
    text, source = document.text, document.source
    title = title_line(document)
    for name, section, start, end in pieces(document, words, sentences):
        yield Passage(name, title, text[start:end], source, section, start, end)


def title_line(document: Document) -> str:
    """Return the title on one line, as it is stored: fingerprints are of this form too."""
    return " ".join(document.title.split())


def pieces(document: Document, words: int = 100, sentences: bool = False) -> Iterator[_Piece]:
    """Yield the same without the passages' texts, for those who make something else of them than passages."""
    if words < 1:
        raise ValueError("a passage has at least one word")
    text = document.text
    if document.whole:
        yield document.id, _section(document, 0), 0, len(text)
        return
    longest = words * _LONGEST_WORD
    stem, number = f"{document.id}#", 0
    for start, end in _sentences(text, words) if sentences else _runs(text, words):
        parts = ((start, end),) if end - start <= longest else _shorten(text, start, end, longest)
        for begin, stop in parts:
            section = _section(document, begin)
            # A document of one passage lends it its own id.
            alone = not number and (stop == len(text) or not text[stop:].strip())
            yield document.id if alone else f"{stem}{number}", section, begin, stop
            number += 1


def _section(document: Document, at: int) -> str:
    """Return the heading in force at a place."""
    place = bisect_right(document.sections, at, key=_offset)
    return document.sections[place - 1][1] if place else ""


def _offset(section: tuple[int, str]) -> int:
    return section[0]


_SPAN = re.Match.span


def _runs(text: str, words: int) -> Iterable[Span]:
    """Return runs of `words` words. The general way is a pattern; most texts have no white space but spaces and line
    breaks (all other is not printable), and for those there is a way that takes half the time or, if they are long, a
    fifth.
    """
    plain = text.replace("\n", " ")
    if not plain.isprintable():
        return map(_SPAN, _words(words).finditer(text))
    if len(text) in _LONG:
        return _long_runs(plain, words)
    if plain.count(" ") < words:
        start, end = len(text) - len(plain.lstrip()), len(plain.rstrip())
        return ((start, end),) if start < end else ()
    return map(_SPAN, _words(words).finditer(text))


def _long_runs(plain: str, words: int) -> Iterable[Span]:
    """Yield the same by the edges of all words at once, for text whose only white space is the space."""
    if plain.isascii():
        signs: NDArray[Any] = np.frombuffer(f" {plain} ".encode(), np.uint8)
    else:
        signs = np.frombuffer(f" {plain} ".encode("utf-32-le", "surrogatepass"), np.uint32)
    inside = signs != ord(" ")
    # Where a word begins or ends, in turn.
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    starts, ends = edges[0::2], edges[1::2]
    # The end of every run: each `words`-th, and the last.
    last = ends[words - 1 :: words]
    if len(ends) % words:
        last = np.append(last, ends[-1])
    return zip(starts[::words].tolist(), last.tolist(), strict=True)


@lru_cache(maxsize=16)
def _words(count: int) -> re.Pattern[str]:
    """Up to `count` words. Possessive: a quarter faster, and without the backtracking that hostile text could use."""
    return re.compile(rf"\S++(?:\s++\S++){{0,{count - 1}}}+")


def _sentences(text: str, words: int) -> Iterator[Span]:
    """Yield whole sentences, as many as fit into `words` words; a longer sentence stands alone, cut at words."""
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


def _shorten(text: str, start: int, end: int, longest: int) -> Iterator[Span]:
    """Yield pieces of at most `longest` characters, parted at white space where there is some."""
    while end - start > longest:
        last_space = text.rfind(" ", start + 1, start + longest)
        last_break = text.rfind("\n", start + 1, start + longest)
        gap = max(last_space, last_break)
        stop = gap if gap > start else start + longest
        yield _trim(text, start, stop)
        start = stop
        while text[start].isspace():
            start += 1
    yield _trim(text, start, end)


def _trim(text: str, start: int, end: int) -> Span:
    while end > start + 1 and text[end - 1].isspace():
        end -= 1
    return start, end


# Text as it grows line by line, with where each heading's part begins.


class Page:
    """Collects lines and headings.

    >>> page = Page()
    >>> page.heading(1, "Birds"); page.line("They fly."); page.heading(2, "Penguins"); page.line("They  swim.")
    >>> page.text
    'Birds\\nThey fly.\\nPenguins\\nThey swim.'
    >>> page.sections
    ((0, 'Birds'), (16, 'Birds > Penguins'))
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.length = 0  # characters, with the line breaks
        self._open: list[tuple[int, str]] = []  # (level, heading), outermost first
        self._sections: list[tuple[int, str]] = []  # (offset, path of headings)

    def line(self, text: str) -> None:
        """One line, its white space made single; an empty one is left out."""
        self.block(" ".join(text.split()))

    def block(self, text: str) -> None:
        """Several lines, as they are."""
        if text and not text.isspace():
            self._lines.append(text)
            self.length += len(text) + 1

    def heading(self, level: int, text: str, shown: bool = True) -> None:
        """A heading opens a section; one above it closes those below. `shown`: it is part of the text too."""
        text = " ".join(text.split())
        if not text:
            return
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        self._open.append((level, text))
        if self._sections and self._sections[-1][0] == self.length:
            self._sections.pop()  # a section without a text of its own
        path = " > ".join(name for _, name in self._open)
        self._sections.append((self.length, path))
        if shown:
            self.line(text)

    @property
    def first_heading(self) -> str:
        if not self._sections:
            return ""
        _, path = self._sections[0]
        return path.rpartition(" > ")[2]

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    @property
    def sections(self) -> tuple[tuple[int, str], ...]:
        return tuple(self._sections)


# Find exact duplicates among millions of passages, in 11 to 22 bytes for each.

_SMALLEST = 16


def fingerprint(title: str, text: str) -> int:
    """Return 64 bits that stand for a passage; never 0, which marks a free place in the table below."""
    body = f"{title}\n{text}".encode("utf-8", "surrogatepass")
    digest = blake2b(body, digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


class Seen:
    """A set of 64-bit hashes of title and text: an open-addressing table, because a set of ints takes 100 bytes each.

    The home of a hash is given by its highest bits, so the table is always in nearly sorted order, and growing it
    or reading it from a checkpoint is one sort and one running maximum.

    >>> seen = Seen()
    >>> [seen.new("Paris", text) for text in ("a city", "a myth", "a city")]
    [True, True, False]
    """

    def __init__(self) -> None:
        self._fill(np.empty(0, np.uint64), _SMALLEST)

    def __len__(self) -> int:
        return self._count

    def new(self, title: str, text: str) -> bool:
        """Tell whether this was not seen before; it is from now on."""
        key = fingerprint(title, text)
        table, place = self._table, key >> self._shift
        while held := table[place]:
            if held == key:
                return False
            place += 1
        table[place] = key
        self._count += 1
        if self._count >= self._limit or place >= self._last:
            self._fill(self.to_array(), 2 * self._homes)
        return True

    def to_array(self) -> NDArray[np.uint64]:
        """Return the hashes, sorted: for a checkpoint."""
        table = np.frombuffer(self._table, np.uint64)
        return np.sort(table[table != 0])

    @classmethod
    def from_array(cls, hashes: NDArray[np.uint64]) -> Seen:
        """Return what `to_array` gave."""
        seen = cls()
        hashes = np.asarray(hashes, np.uint64)
        if np.any(hashes[1:] <= hashes[:-1]):
            hashes = np.unique(hashes)
        homes = _SMALLEST
        while homes * 3 // 4 <= len(hashes):
            homes *= 2
        seen._fill(hashes, homes)
        return seen

    def _fill(self, hashes: NDArray[np.uint64], homes: int) -> None:
        """Lay sorted hashes out, each at its home or at the first free place behind it."""
        self._homes = homes  # a power of two
        self._count = len(hashes)
        self._limit = homes * 3 // 4  # beyond this the table grows
        self._shift = 64 - (homes.bit_length() - 1)
        ranks = np.arange(len(hashes), dtype=np.int64)
        places = (hashes >> np.uint64(self._shift)).astype(np.int64) - ranks
        highest = 0
        if len(hashes):
            # A place is the home, or one behind the place before.
            places = np.maximum.accumulate(places) + ranks
            highest = int(places[-1])
        # A run at the end may go beyond the last home.
        room = max(homes, highest) + 256
        self._last = room - 8
        self._table = array("Q", bytes(8 * room))
        np.frombuffer(self._table, np.uint64)[places] = hashes
