"""The passages of an index, each compressed by itself with a shared dictionary, so that any is read in microseconds.

A segment is what one run of a build or add wrote. Its files, where N is the row of its first passage:

    N.data    compressed passages, one behind the other
    N.ends    where each ends in the data
    N.keys    checksums of document and source, by which passages are looked up
    N.dict    the dictionary, if there were enough passages to learn one from
"""

from __future__ import annotations

import dataclasses
import mmap
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import numpy as np
import zstandard

from whichsense.errors import DamagedIndex
from whichsense.types import Passage

Field = Literal["document", "source"]
TITLE, SOURCE, TEXT = 1, 2, 6
"""Where they stand among the lines of a stored passage. The text comes last: it may have lines of its own."""
END = np.dtype("<u8")
KEYS = np.dtype([("document", "<u4"), ("source", "<u4")])


def pack(names: tuple[str, str, str, str], start: int, end: int, text: str) -> bytes:
    """Pack a passage for storage. The names are its id, title, source and section."""
    lines = "\n".join(names)
    if lines.count("\n") != 3:  # a name of several lines is rare, and put on one
        lines = "\n".join(name.replace("\n", " ") for name in names)
    return f"{lines}\n{start}\n{end}\n{text}".encode("utf-8", "replace")


# The constructor of a frozen record is slow, and a search makes a hundred. Setting its slots directly is much faster.
_FIELDS = (
    getattr(Passage, field.name).__set__ for field in dataclasses.fields(Passage)
)
_set_id, _set_title, _set_text, _set_source, _set_section, _set_start, _set_end = (
    _FIELDS
)


def unpack(stored: bytes) -> Passage:
    """The passage that `pack` packed."""
    name, title, source, section, start, end, text = stored.decode().split("\n", TEXT)
    passage = Passage.__new__(Passage)
    _set_id(passage, name)
    _set_title(passage, title)
    _set_text(passage, text)
    _set_source(passage, source)
    _set_section(passage, section)
    _set_start(passage, int(start))
    _set_end(passage, int(end))
    return passage


def name_key(name: str) -> int:
    """The checksum by which a name is looked up. 32 bits are enough: hits are compared with the name itself."""
    return crc32(name.encode("utf-8", "replace"))


def _map_file(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Segment:
    """One run's passages, mapped into memory."""

    def __init__(self, ends: Path) -> None:
        self.path = ends.with_suffix(".data")
        self.first = int(ends.stem)
        self._data = _map_file(self.path)
        # Plain ints, several times faster than numpy's.
        self._ends = memoryview(_map_file(ends)).cast("Q")
        self._keys = ends.with_suffix(".keys")
        dictionary = ends.with_suffix(".dict")
        self._options: dict[str, Any] = {}
        if dictionary.exists():
            body = dictionary.read_bytes()
            self._options["dict_data"] = zstandard.ZstdCompressionDict(body)
        self._local = threading.local()  # a decompressor serves one thread at a time

    def __len__(self) -> int:
        return len(self._ends)

    def problem(self) -> str | None:
        """What does not fit together in the files of this segment."""
        ends = np.frombuffer(self._ends, dtype=END).astype(np.int64)
        lengths = np.diff(ends, prepend=0)
        if self._ends[-1] != len(self._data) or np.any(lengths <= 0):
            return f"{self.path.name} and {self.path.stem}.ends do not belong together"
        if self._keys.stat().st_size != len(self) * KEYS.itemsize:
            return f"{self._keys.name} and {self.path.stem}.ends do not belong together"
        return None

    def rows_with(self, field: Field, name: str) -> list[int]:
        keys = np.fromfile(self._keys, dtype=KEYS)[field]
        rows: list[int] = (self.first + np.flatnonzero(keys == name_key(name))).tolist()
        return rows

    def stored(self, rows: Iterable[int]) -> list[bytes]:
        decompressor = getattr(self._local, "decompressor", None)
        if decompressor is None:
            decompressor = zstandard.ZstdDecompressor(**self._options)
            self._local.decompressor = decompressor
        decompress = decompressor.decompress
        data, ends, first = self._data, self._ends, self.first
        passages = []
        for row in rows:
            start = ends[row - first - 1] if row > first else 0
            end = ends[row - first]
            passages.append(decompress(data[start:end]))
        return passages


class Passages:
    """All passages of one generation, by row number. Deleted ones are still there, but nothing points to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            segments = [_Segment(path) for path in folder.glob("*.ends")]
        except (OSError, ValueError) as error:
            raise DamagedIndex(
                f"'{folder}' cannot be read ({error}). Build the index again."
            ) from None
        self._segments = sorted(segments, key=lambda segment: segment.first)
        self._firsts = [segment.first for segment in self._segments]

    @property
    def next_row(self) -> int:
        if not self._segments:
            return 0
        last = self._segments[-1]
        return last.first + len(last)

    def problems(self) -> Iterator[str]:
        """What is wrong with the segments."""
        for segment in self._segments:
            problem = segment.problem()
            if problem:
                yield problem

    def rows_with(self, field: Field, name: str) -> list[int]:
        """The rows of passages whose document or source has the checksum of this name: compare the names, too."""
        rows = []
        try:
            for segment in self._segments:
                rows += segment.rows_with(field, name)
            return rows
        except OSError as error:
            raise DamagedIndex(
                f"'{self.folder}' cannot be read ({error}). Build the index again."
            ) from None

    def stored(self, rows: Sequence[int]) -> list[bytes]:
        """The stored form of these passages."""
        try:
            if len(self._segments) == 1:
                return self._segments[0].stored(rows)
            passages = []
            for row in rows:
                segment = self._segments[bisect_right(self._firsts, row) - 1]
                passages += segment.stored([row])
            return passages
        except (zstandard.ZstdError, IndexError, ValueError) as error:
            raise DamagedIndex(
                f"'{self.folder}' cannot be read ({error}). `whichsense index check` names the damage; build it again."
            ) from None
