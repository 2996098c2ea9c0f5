"""The passages themselves, each packed by itself with a shared dictionary, so that any one is read in microseconds.

A segment is what one run of a build or add wrote: `N.data` (packed passages, one behind the other), `N.ends` (where
each ends) and `N.dict` (the dictionary, if there was enough to learn one from); N is the row of its first passage.
"""

from __future__ import annotations

import mmap
import os
import threading
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import zstandard

from whichsense.errors import DamagedIndex
from whichsense.types import Passage

TITLE, TEXT = 1, 6
"""Where title and text stand among the lines of a stored passage. The text comes last: it may have lines of its own."""
_SAMPLES, _DICTIONARY_BYTES, _LONGEST_SAMPLE = 2000, 112_640, 2000
_END = np.dtype("<u8")


def packed(passage: Passage) -> bytes:
    names = f"{passage.id}\n{passage.title}\n{passage.source}\n{passage.section}"
    if names.count("\n") != 3:  # a name of several lines: rare, and put on one
        parts = (passage.id, passage.title, passage.source, passage.section)
        names = "\n".join(part.replace("\n", " ") for part in parts)
    return f"{names}\n{passage.start}\n{passage.end}\n{passage.text}".encode("utf-8", "replace")


def unpacked(stored: bytes) -> Passage:
    name, title, source, section, start, end, text = stored.decode().split("\n", TEXT)
    return Passage(name, title, text, source, section, int(start), int(end))


class PassagesWriter:
    """Appends passages from row number `next_row` on. What a killed run wrote beyond that is cut off first."""

    def __init__(self, folder: Path, next_row: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _trim(folder, next_row)
        self._stem = folder / str(next_row)
        self._data: BinaryIO = open(self._stem.with_suffix(".data"), "wb")
        self._ends: BinaryIO = open(self._stem.with_suffix(".ends"), "wb")
        self._waiting: list[bytes] = []
        self._compressor: zstandard.ZstdCompressor | None = None
        self._size = 0

    def add(self, passage: Passage) -> None:
        stored = packed(passage)
        if self._compressor is not None:
            self._write(stored)
            return
        self._waiting.append(stored)
        if len(self._waiting) == _SAMPLES:
            self._settle()

    def flush(self) -> None:
        """To disk, so that a checkpoint can rely on it."""
        if self._waiting:
            self._settle()
        for file in (self._data, self._ends):
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        if self._data.closed:
            return
        with self._data, self._ends:  # closed even if the disk is full
            self.flush()
        if not self._size:  # a run that found nothing new leaves nothing
            _remove(self._stem)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _settle(self) -> None:
        """Learn the dictionary from the first passages, where there are enough, and write those."""
        options: dict[str, Any] = {"level": 3, "write_checksum": False, "write_dict_id": False}
        if len(self._waiting) >= _SAMPLES:
            learned = zstandard.train_dictionary(
                _DICTIONARY_BYTES, [stored[:_LONGEST_SAMPLE] for stored in self._waiting]
            )
            self._stem.with_suffix(".dict").write_bytes(learned.as_bytes())
            learned.precompute_compress(level=options["level"])
            options["dict_data"] = learned
        self._compressor = zstandard.ZstdCompressor(**options)
        for stored in self._waiting:
            self._write(stored)
        self._waiting = []

    def _write(self, stored: bytes) -> None:
        assert self._compressor is not None
        self._size += self._data.write(self._compressor.compress(stored))
        self._ends.write(self._size.to_bytes(_END.itemsize, "little"))


def _trim(folder: Path, next_row: int) -> None:
    """Cut off passages from `next_row` on. Those of the served generation all lie before it: its files stay whole."""
    for path in folder.glob("*.ends"):
        first, count = int(path.stem), path.stat().st_size // _END.itemsize
        if first >= next_row:
            _remove(path.with_suffix(""))
        elif first + count > next_row:
            keep = next_row - first
            ends = np.fromfile(path, dtype=_END, count=keep)
            os.truncate(path, keep * _END.itemsize)
            os.truncate(path.with_suffix(".data"), int(ends[-1]))


def _remove(stem: Path) -> None:
    for suffix in (".data", ".ends", ".dict"):
        stem.with_suffix(suffix).unlink(missing_ok=True)


def _mapped(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Segment:
    """One run's passages, mapped into memory."""

    def __init__(self, ends: Path) -> None:
        self.path, self.first = ends.with_suffix(".data"), int(ends.stem)
        self._data = _mapped(self.path)
        self._ends = memoryview(_mapped(ends)).cast("Q")  # plain ints, several times faster than numpy's
        dictionary = ends.with_suffix(".dict")
        self._options: dict[str, Any] = {}
        if dictionary.exists():
            self._options["dict_data"] = zstandard.ZstdCompressionDict(dictionary.read_bytes())
        self._local = threading.local()  # a decompressor serves one thread at a time

    def __len__(self) -> int:
        return len(self._ends)

    def problem(self) -> str | None:
        lengths = np.diff(np.frombuffer(self._ends, dtype=_END).astype(np.int64), prepend=0)
        if self._ends[-1] != len(self._data) or np.any(lengths <= 0):
            return f"{self.path.name} and {self.path.stem}.ends do not belong together"
        return None

    def stored(self, row: int) -> bytes:
        place = row - self.first
        start = self._ends[place - 1] if place else 0
        decompressor = getattr(self._local, "decompressor", None)
        if decompressor is None:
            decompressor = self._local.decompressor = zstandard.ZstdDecompressor(**self._options)
        body: bytes = decompressor.decompress(self._data[start : self._ends[place]])
        return body


class Passages:
    """All passages of one generation, by row number. Deleted ones are still there; nothing points to them any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            found = [_Segment(path) for path in folder.glob("*.ends")]
        except (OSError, ValueError) as error:
            raise DamagedIndex(f"'{folder}' cannot be read ({error}). Build the index again.") from None
        self._segments = sorted(found, key=lambda segment: segment.first)
        self._firsts = [segment.first for segment in self._segments]

    @property
    def next_row(self) -> int:
        return self._segments[-1].first + len(self._segments[-1]) if self._segments else 0

    def problems(self) -> Iterable[str]:
        """Segments that do not fit."""
        return filter(None, (segment.problem() for segment in self._segments))

    def stored(self, rows: Sequence[int]) -> list[bytes]:
        """The stored form of these passages."""
        try:
            return [self._segments[bisect_right(self._firsts, row) - 1].stored(row) for row in rows]
        except (zstandard.ZstdError, IndexError, ValueError) as error:
            raise DamagedIndex(
                f"'{self.folder}' cannot be read ({error}). `whichsense index check` names the damage; build it again."
            ) from None
