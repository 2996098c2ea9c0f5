"""The passages themselves, each packed by itself with a shared dictionary, so that any one is read in microseconds.

A segment is what one run of a build or add wrote: `N.data` (packed passages, one behind the other), `N.ends` (where
each ends), `N.keys` (checksums of document and source, by which passages are looked up) and `N.dict` (the dictionary,
if there was enough to learn one from); N is the row of its first passage.
"""

from __future__ import annotations

import dataclasses
import mmap
import os
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self
from zlib import crc32

import numpy as np
import zstandard

from whichsense.errors import DamagedIndex
from whichsense.files import write_atomically
from whichsense.types import Passage

Field = Literal["document", "source"]
TITLE, TEXT = 1, 6
"""Where title and text stand among the lines of a stored passage. The text comes last: it may have lines of its own."""
_SAMPLES, _DICTIONARY_BYTES, _LONGEST_SAMPLE = 2000, 32_768, 2000
# Level 3 takes a tenth less room and a quarter more time.
_LEVEL = 1
_BATCH, _BATCHES_WAITING = 256, 4
_END, _KEYS = np.dtype("<u8"), np.dtype([("document", "<u4"), ("source", "<u4")])
_SUFFIXES = (".data", ".ends", ".keys", ".dict")


def packed(names: tuple[str, str, str, str], start: int, end: int, text: str) -> bytes:
    """A passage as it is stored. The names are those of itself, its title, its source and its section."""
    lines = "\n".join(names)
    if lines.count("\n") != 3:  # a name of several lines: rare, and put on one
        lines = "\n".join(name.replace("\n", " ") for name in names)
    return f"{lines}\n{start}\n{end}\n{text}".encode("utf-8", "replace")


# A frozen record sets its fields by a slow way, which a search would take a hundred times; this one is much faster.
_FIELDS = (
    getattr(Passage, field.name).__set__ for field in dataclasses.fields(Passage)
)
_set_id, _set_title, _set_text, _set_source, _set_section, _set_start, _set_end = (
    _FIELDS
)


def unpacked(stored: bytes) -> Passage:
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


class PassagesWriter:
    """Appends passages from row number `next_row` on. What a killed run wrote beyond that is cut off first.

    Compressing is the work of a thread of its own, a batch at a time: it needs no interpreter, so it costs no time.
    """

    def __init__(self, folder: Path, next_row: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _trim(folder, next_row)
        self._stem = folder / str(next_row)
        self._data: BinaryIO = open(self._stem.with_suffix(".data"), "wb")
        self._ends: BinaryIO = open(self._stem.with_suffix(".ends"), "wb")
        self._keys: BinaryIO = open(self._stem.with_suffix(".keys"), "wb")
        self._batch: list[bytes] = []
        self._batch_keys: list[tuple[int, int]] = []
        self._full = _SAMPLES
        self._compressor: zstandard.ZstdCompressor | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pack")
        self._waiting: deque[Future[None]] = deque()
        self._size = 0

    def add(self, stored: bytes, document: str, source: str) -> None:
        """The next passage, as `packed` made it, with what it can be looked up by."""
        self._batch.append(stored)
        self._batch_keys.append((_key(document), _key_of_source(source)))
        if len(self._batch) >= self._full:
            self._hand_over()

    def flush(self) -> None:
        """To disk, so that a checkpoint can rely on it."""
        if self._batch:
            self._hand_over()
        while self._waiting:
            self._waiting.popleft().result()
        for file in (self._data, self._ends, self._keys):
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        if self._data.closed:
            return
        with (
            self._data,
            self._ends,
            self._keys,
            self._thread,
        ):  # closed even if the disk is full
            self.flush()
        if not self._size:  # a run that found nothing new leaves nothing
            _remove(self._stem)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _hand_over(self) -> None:
        if self._compressor is None:
            self._compressor = self._learned()
            self._full = _BATCH
        while len(self._waiting) >= _BATCHES_WAITING:
            self._waiting.popleft().result()  # raises what went wrong with that batch
        self._waiting.append(
            self._thread.submit(
                self._write, self._compressor, self._batch, self._batch_keys
            )
        )
        self._batch, self._batch_keys = [], []

    def _learned(self) -> zstandard.ZstdCompressor:
        """A compressor with a dictionary of the first passages, where there are enough to learn one from."""
        options: dict[str, Any] = {
            "level": _LEVEL,
            "write_checksum": False,
            "write_dict_id": False,
        }
        if len(self._batch) >= _SAMPLES:
            learned = zstandard.train_dictionary(
                _DICTIONARY_BYTES, [stored[:_LONGEST_SAMPLE] for stored in self._batch]
            )
            write_atomically(
                self._stem.with_suffix(".dict"), learned.as_bytes()
            )  # no passage is read without it
            learned.precompute_compress(level=_LEVEL)
            options["dict_data"] = learned
        return zstandard.ZstdCompressor(**options)

    def _write(
        self,
        compressor: zstandard.ZstdCompressor,
        batch: list[bytes],
        keys: list[tuple[int, int]],
    ) -> None:
        compressed: Any = compressor.multi_compress_to_buffer([*batch])
        pieces = [compressed[place] for place in range(len(compressed))]
        ends = self._size + np.cumsum([len(piece) for piece in pieces], dtype=_END)
        self._data.write(b"".join(pieces))
        self._ends.write(ends.tobytes())
        self._keys.write(np.array(keys, dtype=_KEYS).tobytes())
        self._size = int(ends[-1])


def _key(name: str) -> int:
    """32 bits are enough: what they find is held against the name itself."""
    return crc32(name.encode("utf-8", "replace"))


_key_of_source = lru_cache(maxsize=1000)(_key)


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
            os.truncate(path.with_suffix(".keys"), keep * _KEYS.itemsize)
            os.truncate(path.with_suffix(".data"), int(ends[-1]))


def _remove(stem: Path) -> None:
    for suffix in _SUFFIXES:
        stem.with_suffix(suffix).unlink(missing_ok=True)


def _mapped(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Segment:
    """One run's passages, mapped into memory."""

    def __init__(self, ends: Path) -> None:
        self.path, self.first = ends.with_suffix(".data"), int(ends.stem)
        self._data = _mapped(self.path)
        self._ends = memoryview(_mapped(ends)).cast(
            "Q"
        )  # plain ints, several times faster than numpy's
        self._keys = ends.with_suffix(".keys")
        dictionary = ends.with_suffix(".dict")
        self._options: dict[str, Any] = {}
        if dictionary.exists():
            self._options["dict_data"] = zstandard.ZstdCompressionDict(
                dictionary.read_bytes()
            )
        self._local = threading.local()  # a decompressor serves one thread at a time

    def __len__(self) -> int:
        return len(self._ends)

    def problem(self) -> str | None:
        lengths = np.diff(
            np.frombuffer(self._ends, dtype=_END).astype(np.int64), prepend=0
        )
        if self._ends[-1] != len(self._data) or np.any(lengths <= 0):
            return f"{self.path.name} and {self.path.stem}.ends do not belong together"
        if self._keys.stat().st_size != len(self) * _KEYS.itemsize:
            return f"{self._keys.name} and {self.path.stem}.ends do not belong together"
        return None

    def rows_with(self, field: Field, name: str) -> list[int]:
        keys = np.fromfile(self._keys, dtype=_KEYS)[field]
        rows: list[int] = (self.first + np.flatnonzero(keys == _key(name))).tolist()
        return rows

    def stored(self, rows: Iterable[int]) -> list[bytes]:
        decompressor = getattr(self._local, "decompressor", None)
        if decompressor is None:
            decompressor = self._local.decompressor = zstandard.ZstdDecompressor(
                **self._options
            )
        unpack, data, ends, first = (
            decompressor.decompress,
            self._data,
            self._ends,
            self.first,
        )
        return [
            unpack(
                data[ends[row - first - 1] if row > first else 0 : ends[row - first]]
            )
            for row in rows
        ]


class Passages:
    """All passages of one generation, by row number. Deleted ones are still there; nothing points to them any more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            found = [_Segment(path) for path in folder.glob("*.ends")]
        except (OSError, ValueError) as error:
            raise DamagedIndex(
                f"'{folder}' cannot be read ({error}). Build the index again."
            ) from None
        self._segments = sorted(found, key=lambda segment: segment.first)
        self._firsts = [segment.first for segment in self._segments]

    @property
    def next_row(self) -> int:
        return (
            self._segments[-1].first + len(self._segments[-1]) if self._segments else 0
        )

    def problems(self) -> Iterable[str]:
        """Segments that do not fit."""
        return filter(None, (segment.problem() for segment in self._segments))

    def rows_with(self, field: Field, name: str) -> list[int]:
        """The rows of the passages whose document or source this may be: by its checksum, so look at them."""
        try:
            return [
                row
                for segment in self._segments
                for row in segment.rows_with(field, name)
            ]
        except OSError as error:
            raise DamagedIndex(
                f"'{self.folder}' cannot be read ({error}). Build the index again."
            ) from None

    def stored(self, rows: Sequence[int]) -> list[bytes]:
        """The stored form of these passages."""
        try:
            if len(self._segments) == 1:
                return self._segments[0].stored(rows)
            return [
                self._segments[bisect_right(self._firsts, row) - 1].stored([row])[0]
                for row in rows
            ]
        except (zstandard.ZstdError, IndexError, ValueError) as error:
            raise DamagedIndex(
                f"'{self.folder}' cannot be read ({error}). `whichsense index check` names the damage; build it again."
            ) from None
