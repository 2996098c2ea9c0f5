"""The passages of an index, compressed in blocks of a few with a shared dictionary: any is read in microseconds.

A segment is what one run of a build or add wrote. Its files, where N is the row of its first passage:

    N.data    compressed blocks, one behind the other
    N.ends    where each block ends in the data
    N.counts  how many passages there are up to the end of each block
    N.keys    checksums of document and source, by which passages are looked up; compressed, frame by frame
    N.dict    the dictionary, if there were enough blocks to learn one from

Segments of format 2 have no counts: each of their passages is a block, and their keys are not compressed.
"""

from __future__ import annotations

import dataclasses
import mmap
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import numpy as np
import zstandard
from numpy.typing import NDArray

from whichsense.errors import DamagedIndex
from whichsense.types import Passage

Field = Literal["document", "source"]
TITLE, SOURCE, TEXT = 1, 2, 6
"""Where they stand among the lines of a stored passage. The text comes last: it may have lines of its own."""
BETWEEN = b"\xff"
"""Between the passages of a block: this byte is in no UTF-8."""
END = np.dtype("<u8")
COUNT = np.dtype("<u4")
KEYS = np.dtype([("document", "<u4"), ("source", "<u4")])


def pack(names: tuple[str, str, str, str], start: int, text: str) -> bytes:
    """Pack a passage for storage. The names are its id, title, source and section.

    The line behind the start is empty: format 2 has the end there, which follows from the text.
    """
    lines = "\n".join(names)
    if lines.count("\n") != 3:  # a name of several lines is rare, and put on one
        lines = "\n".join(name.replace("\n", " ") for name in names)
    return f"{lines}\n{start}\n\n{text}".encode("utf-8", "replace")


# The constructor of a frozen record is slow, and a search makes a hundred. Setting its slots directly is much faster.
_FIELDS = (
    getattr(Passage, field.name).__set__ for field in dataclasses.fields(Passage)
)
_set_id, _set_title, _set_text, _set_source, _set_section, _set_start, _set_end = (
    _FIELDS
)


def unpack(stored: bytes) -> Passage:
    """The passage that `pack` packed."""
    name, title, source, section, start, _, text = stored.decode().split("\n", TEXT)
    first = int(start)
    passage = Passage.__new__(Passage)
    _set_id(passage, name)
    _set_title(passage, title)
    _set_text(passage, text)
    _set_source(passage, source)
    _set_section(passage, section)
    _set_start(passage, first)
    _set_end(passage, first + len(text))
    return passage


def name_key(name: str) -> int:
    """The checksum by which a name is looked up. 32 bits are enough: hits are compared with the name itself."""
    return crc32(name.encode("utf-8", "replace"))


def block_counts(ends: Path) -> NDArray[np.integer[Any]]:
    """The passages up to the end of each block of a segment."""
    counts = ends.with_suffix(".counts")
    if counts.exists():
        return np.fromfile(counts, dtype=COUNT)
    return np.arange(1, ends.stat().st_size // END.itemsize + 1)


def read_keys(ends: Path, most: int = -1) -> NDArray[Any]:
    """The keys of a segment's passages, or of so many. Of a frame that a killed run did not finish, what is there."""
    keys = ends.with_suffix(".keys")
    if not ends.with_suffix(".counts").exists():
        return np.fromfile(keys, dtype=KEYS, count=most)
    with open(keys, "rb") as file:
        frames = zstandard.ZstdDecompressor().stream_reader(
            file, read_across_frames=True
        )
        try:
            body = frames.read(most * KEYS.itemsize if most >= 0 else -1)
        except zstandard.ZstdError as error:
            raise ValueError(f"'{keys}' is damaged: {error}") from None
    return np.frombuffer(body, dtype=KEYS, count=len(body) // KEYS.itemsize)


def _map_file(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Segment:
    """One run's passages, mapped into memory."""

    def __init__(self, ends: Path) -> None:
        self.path = ends.with_suffix(".data")
        self._ends_path = ends
        self.first = int(ends.stem)
        self._data = _map_file(self.path)
        # Plain ints, several times faster than numpy's.
        self._ends = memoryview(_map_file(ends)).cast("Q")
        self._counts: NDArray[np.uint32] | None = None
        counts = ends.with_suffix(".counts")
        if counts.exists():
            self._counts = np.frombuffer(_map_file(counts), dtype=COUNT)
        dictionary = ends.with_suffix(".dict")
        self._options: dict[str, Any] = {}
        if dictionary.exists():
            body = dictionary.read_bytes()
            self._options["dict_data"] = zstandard.ZstdCompressionDict(body)
        self._local = threading.local()  # a decompressor serves one thread at a time

    def __len__(self) -> int:
        return len(self._ends) if self._counts is None else int(self._counts[-1])

    def problem(self) -> str | None:
        """What does not fit together in the files of this segment."""
        ends = np.asarray(self._ends, dtype=np.int64)
        counts = block_counts(self._ends_path).astype(np.int64)
        stem = self.path.stem
        if ends[-1] != len(self._data) or not _ascends(ends):
            return f"{self.path.name} and {stem}.ends do not belong together"
        if len(counts) != len(ends) or not _ascends(counts):
            return f"{stem}.counts and {stem}.ends do not belong together"
        if len(read_keys(self._ends_path)) != len(self):
            return f"{stem}.keys and {stem}.ends do not belong together"
        return None

    def rows_with(self, field: Field, name: str) -> list[int]:
        keys = read_keys(self._ends_path)[field]
        rows: list[int] = (self.first + np.flatnonzero(keys == name_key(name))).tolist()
        return rows

    def stored(self, rows: NDArray[np.int64]) -> list[bytes]:
        decompressor = getattr(self._local, "decompressor", None)
        if decompressor is None:
            decompressor = zstandard.ZstdDecompressor(**self._options)
            self._local.decompressor = decompressor
        data, ends = self._data, self._ends
        numbers, places = self._blocks_of(rows - self.first)
        blocks: dict[int, list[bytes]] = {}
        passages = []
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True):
            if number not in blocks:  # neighbours are often asked for together
                start = ends[number - 1] if number else 0
                block: bytes = decompressor.decompress(data[start : ends[number]])
                blocks[number] = block.split(BETWEEN)
            passages.append(blocks[number][place])
        return passages

    def _blocks_of(self, own: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The blocks of some passages, by their numbers in the segment, and their places there."""
        if self._counts is None:
            return own, np.zeros_like(own)
        # Of one type: searchsorted would copy the counts otherwise.
        numbers = np.searchsorted(self._counts, own.astype(COUNT), side="right")
        before = np.where(numbers > 0, self._counts[numbers - 1], 0)
        return numbers, own - before


def _ascends(numbers: NDArray[np.int64]) -> bool:
    return bool(np.all(np.diff(numbers, prepend=0) > 0))


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
        except (OSError, ValueError) as error:
            raise DamagedIndex(
                f"'{self.folder}' cannot be read ({error}). Build the index again."
            ) from None

    def stored(self, rows: Sequence[int]) -> list[bytes]:
        """The stored form of these passages."""
        try:
            wanted = np.asarray(rows, dtype=np.int64)
            segment_of = np.searchsorted(self._firsts, wanted, side="right") - 1
            passages = [b""] * len(rows)
            for number in np.unique(segment_of).tolist():
                places = np.flatnonzero(segment_of == number)
                found = self._segments[number].stored(wanted[places])
                for place, stored in zip(places.tolist(), found, strict=True):
                    passages[place] = stored
            return passages
        except (zstandard.ZstdError, IndexError, ValueError) as error:
            raise DamagedIndex(
                f"'{self.folder}' cannot be read ({error}). `whichsense index check` names the damage; build it again."
            ) from None
