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

from whichsense.errors import WriteFault
from whichsense.files import write_atomically
from whichsense.index.store import (
    BETWEEN,
    COUNT,
    END,
    KEYS,
    block_counts,
    name_key,
    read_keys,
)

# A block is closed when it has so many bytes: four or five passages of 100 words. docs/index.md has others.
_BLOCK_BYTES = 2500
_LEVEL = 6
_SAMPLES = 1200  # blocks from which the dictionary is learned
_FEWEST_SAMPLES = 500
_LONGEST_SAMPLE = 5000  # bytes of each
_DICTIONARY_BYTES = 262_144
_DICTIONARY_SHARE = 12  # the samples are so many times as long, at least
_BATCH = 64  # blocks that are compressed together
_BATCHES_WAITING = 4
_SUFFIXES = (".data", ".ends", ".counts", ".keys", ".dict")

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
        self._counts: BinaryIO = open(self._stem.with_suffix(".counts"), "wb")
        self._keys: BinaryIO = open(self._stem.with_suffix(".keys"), "wb")
        self._block: list[bytes] = []
        self._block_bytes = 0
        self._count = 0
        self._batch: list[bytes] = []
        self._batch_counts: list[int] = []
        self._batch_keys: list[tuple[int, int]] = []
        self._full = _SAMPLES
        self._compressor: zstandard.ZstdCompressor | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pack")
        self._waiting: deque[Future[None]] = deque()
        self._size = 0

    def add(self, stored: bytes, document: str, source: str) -> None:
        """Append a passage, as `pack` made it, with the names by which it is looked up."""
        self._block.append(stored)
        self._block_bytes += len(stored)
        self._count += 1
        self._batch_keys.append((name_key(document), _source_key(source)))
        if self._block_bytes >= _BLOCK_BYTES:
            self._close_block()
            if len(self._batch) >= self._full:
                self._hand_over()

    def flush(self) -> None:
        """Write everything to disk, so that a checkpoint can rely on it."""
        if self._block:
            self._close_block()
        if self._batch:
            self._hand_over()
        while self._waiting:
            self._waiting.popleft().result()
        for file in (self._data, self._ends, self._counts, self._keys):
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        if self._data.closed:
            return
        # All are closed, even if the disk is full.
        with self._data, self._ends, self._counts, self._keys, self._thread:
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

    def _close_block(self) -> None:
        self._batch.append(BETWEEN.join(self._block))
        self._batch_counts.append(self._count)
        self._block, self._block_bytes = [], 0

    def _hand_over(self) -> None:
        if self._compressor is None:
            self._compressor = self._make_compressor()
            self._full = _BATCH
        while len(self._waiting) >= _BATCHES_WAITING:
            self._waiting.popleft().result()  # raises what went wrong with that batch
        writing = self._thread.submit(
            self._write,
            self._compressor,
            self._batch,
            self._batch_counts,
            self._batch_keys,
        )
        self._waiting.append(writing)
        self._batch, self._batch_counts, self._batch_keys = [], [], []

    def _make_compressor(self) -> zstandard.ZstdCompressor:
        """A compressor with a dictionary of the first blocks, where there are enough to learn one from."""
        options: dict[str, Any] = {
            "level": _LEVEL,
            "write_checksum": False,
            "write_dict_id": False,
        }
        if len(self._batch) >= _FEWEST_SAMPLES:
            samples: list[Any] = []
            for block in self._batch:
                samples.append(block[:_LONGEST_SAMPLE])
            size = sum(map(len, samples)) // _DICTIONARY_SHARE
            size = min(size, _DICTIONARY_BYTES)
            dictionary = zstandard.train_dictionary(size, samples)
            # On disk first: no passage is read without it.
            write_atomically(self._stem.with_suffix(".dict"), dictionary.as_bytes())
            dictionary.precompute_compress(level=_LEVEL)
            options["dict_data"] = dictionary
        return zstandard.ZstdCompressor(**options)

    def _write(
        self,
        compressor: zstandard.ZstdCompressor,
        batch: list[bytes],
        counts: list[int],
        keys: list[tuple[int, int]],
    ) -> None:
        compressed: Any = compressor.multi_compress_to_buffer([*batch])
        pieces = [compressed[place] for place in range(len(compressed))]
        ends = self._size + np.cumsum([len(piece) for piece in pieces], dtype=END)
        self._data.write(b"".join(pieces))
        self._ends.write(ends.tobytes())
        self._counts.write(np.array(counts, dtype=COUNT).tobytes())
        self._keys.write(zstandard.compress(np.array(keys, dtype=KEYS).tobytes()))
        self._size = int(ends[-1])


def _trim(folder: Path, next_row: int) -> None:
    """Cut off passages from `next_row` on. Those of the served generation all lie before it: its files stay whole."""
    for path in folder.glob("*.ends"):
        first = int(path.stem)
        if first >= next_row:
            _remove(path.with_suffix(""))
        else:
            _shorten(path, next_row - first)


def _shorten(path: Path, most: int) -> None:
    """Cut off what a segment has beyond so many passages. A run that is killed leaves its files at different places."""
    counts = block_counts(path)
    blocks = int(np.searchsorted(counts, most, side="right"))
    if blocks < len(counts) and (not blocks or counts[blocks - 1] < most):
        raise WriteFault(f"'{path}' has no block that ends with passage {most:,}.")
    ends = np.fromfile(path, dtype=END, count=blocks)
    sizes = {
        ".data": int(ends[-1]),
        ".ends": blocks * END.itemsize,
        ".counts": blocks * COUNT.itemsize,
    }
    kept = int(counts[blocks - 1])
    if _has_more_keys(path, kept):
        body = read_keys(path, kept).tobytes()
        if path.with_suffix(".counts").exists():
            body = zstandard.compress(body)
        write_atomically(path.with_suffix(".keys"), body)
    for suffix, size in sizes.items():
        part = path.with_suffix(suffix)
        if part.exists() and part.stat().st_size > size:
            os.truncate(part, size)


def _has_more_keys(path: Path, kept: int) -> bool:
    try:
        return len(read_keys(path, kept + 1)) > kept
    except ValueError:
        return True  # what a power cut left behind them


def _remove(stem: Path) -> None:
    """Remove a segment."""
    for suffix in _SUFFIXES:
        stem.with_suffix(suffix).unlink(missing_ok=True)
