"""Writing the passages of an index: the segments that store.py reads."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import zstandard

from whichsense.files import write_atomically
from whichsense.index.store import END, KEYS, name_key

_SAMPLES = 2000  # passages from which the dictionary is learned
_LONGEST_SAMPLE = 2000  # bytes of each
_DICTIONARY_BYTES = 112_640
_LEVEL = 3  # level 1 and a dictionary of 32 kB: 8% more room, 2 µs less for a passage; level 6: 3% less, 20 µs more
_BATCH = 256  # passages that are compressed together
_BATCHES_WAITING = 4
_SUFFIXES = (".data", ".ends", ".keys", ".dict")

_source_key = lru_cache(maxsize=1000)(name_key)  # sources are few


class PassagesWriter:
    """Appends passages from row number `next_row` on. What a killed run wrote beyond that is cut off first.

    A thread compresses, a batch at a time. It does not need the interpreter, so that it costs the build no time.
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
        """Append a passage, as `pack` made it, with the names by which it is looked up."""
        self._batch.append(stored)
        self._batch_keys.append((name_key(document), _source_key(source)))
        if len(self._batch) >= self._full:
            self._hand_over()

    def flush(self) -> None:
        """Write everything to disk, so that a checkpoint can rely on it."""
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
        # All are closed, even if the disk is full.
        with self._data, self._ends, self._keys, self._thread:
            self.flush()
        if not self._size:  # a run that adds no passage leaves no file
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
            self._compressor = self._make_compressor()
            self._full = _BATCH
        while len(self._waiting) >= _BATCHES_WAITING:
            self._waiting.popleft().result()  # raises what went wrong with that batch
        writing = self._thread.submit(
            self._write, self._compressor, self._batch, self._batch_keys
        )
        self._waiting.append(writing)
        self._batch, self._batch_keys = [], []

    def _make_compressor(self) -> zstandard.ZstdCompressor:
        """A compressor with a dictionary of the first passages, where there are enough to learn one from."""
        options: dict[str, Any] = {
            "level": _LEVEL,
            "write_checksum": False,
            "write_dict_id": False,
        }
        if len(self._batch) >= _SAMPLES:
            samples: list[Any] = []
            for stored in self._batch:
                samples.append(stored[:_LONGEST_SAMPLE])
            dictionary = zstandard.train_dictionary(_DICTIONARY_BYTES, samples)
            # On disk first: no passage is read without it.
            write_atomically(self._stem.with_suffix(".dict"), dictionary.as_bytes())
            dictionary.precompute_compress(level=_LEVEL)
            options["dict_data"] = dictionary
        return zstandard.ZstdCompressor(**options)

    def _write(
        self,
        compressor: zstandard.ZstdCompressor,
        batch: list[bytes],
        keys: list[tuple[int, int]],
    ) -> None:
        compressed: Any = compressor.multi_compress_to_buffer([*batch])
        pieces = [compressed[place] for place in range(len(compressed))]
        ends = self._size + np.cumsum([len(piece) for piece in pieces], dtype=END)
        self._data.write(b"".join(pieces))
        self._ends.write(ends.tobytes())
        self._keys.write(np.array(keys, dtype=KEYS).tobytes())
        self._size = int(ends[-1])


def _trim(folder: Path, next_row: int) -> None:
    """Cut off passages from `next_row` on. Those of the served generation all lie before it: its files stay whole."""
    for path in folder.glob("*.ends"):
        first = int(path.stem)
        count = path.stat().st_size // END.itemsize
        if first >= next_row:
            _remove(path.with_suffix(""))
        elif first + count > next_row:
            keep = next_row - first
            ends = np.fromfile(path, dtype=END, count=keep)
            os.truncate(path, keep * END.itemsize)
            os.truncate(path.with_suffix(".keys"), keep * KEYS.itemsize)
            os.truncate(path.with_suffix(".data"), int(ends[-1]))


def _remove(stem: Path) -> None:
    """Remove a segment."""
    for suffix in _SUFFIXES:
        stem.with_suffix(suffix).unlink(missing_ok=True)
