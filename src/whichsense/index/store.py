"""Passages on disk: compressed frames, the file that finds them by id, and how both are written."""

from __future__ import annotations

import dataclasses
import mmap
import os
import sqlite3
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self
from zlib import crc32

import numpy as np
import zstandard
from numpy.typing import NDArray

from whichsense.errors import DamagedIndex, WriteFault
from whichsense.files import write_atomically
from whichsense.text.words import whole_characters
from whichsense.types import Passage, Redirect, Sense

# The passages of an index, each compressed by itself with a shared dictionary: any is read in
# microseconds.
#
# A segment is what one run of a build or add wrote. Its files, where N is the row of its first
# passage:
#
#     N.data    compressed passages, one behind the other
#     N.ends    where each ends in the data
#     N.keys    checksums of document and source, by which passages are looked up
#     N.dict    the dictionary, if there were enough passages to learn one from

Field = Literal["document", "source"]
TITLE, SOURCE, TEXT = 1, 2, 6
"""Where they stand among the lines of a stored passage. The text comes last: it may have lines of its own."""
END = np.dtype("<u8")
KEYS = np.dtype([("document", "<u4"), ("source", "<u4")])


def pack(names: tuple[str, str, str, str], start: int, text: str) -> bytes:
    """Pack a passage for storage. The names are its id, title, source and section; an empty line precedes the text."""
    lines = "\n".join(names)
    if lines.count("\n") != 3:  # a name of several lines is rare, and put on one
        lines = "\n".join(name.replace("\n", " ") for name in names)
    return f"{lines}\n{start}\n\n{text}".encode("utf-8", "replace")


# The constructor of a frozen record is slow, and a search makes a hundred. Setting its slots directly is much faster.
_FIELDS = (getattr(Passage, field.name).__set__ for field in dataclasses.fields(Passage))
_set_id, _set_title, _set_text, _set_source, _set_section, _set_start, _set_end = _FIELDS


def unpack(stored: bytes) -> Passage:
    """Return the passage that `pack` packed."""
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
    """Return the checksum by which a name is looked up. 32 bits are enough: hits are compared with the name itself."""
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
        dictionary = ends.with_suffix(".dict")
        self._options: dict[str, Any] = {}
        if dictionary.exists():
            body = dictionary.read_bytes()
            self._options["dict_data"] = zstandard.ZstdCompressionDict(body)
        self._local = threading.local()  # a decompressor serves one thread at a time

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def _keys(self) -> NDArray[Any]:
        return np.fromfile(self.path.with_suffix(".keys"), dtype=KEYS)

    def problem(self) -> str | None:
        """Return what does not fit together in the files of this segment."""
        ends = np.asarray(self._ends, dtype=np.int64)
        stem = self.path.stem
        if ends[-1] != len(self._data) or np.any(np.diff(ends, prepend=0) <= 0):
            return f"{self.path.name} and {stem}.ends do not belong together"
        if len(self._keys) != len(self):
            return f"{stem}.keys and {stem}.ends do not belong together"
        return None

    def rows_with(self, field: Field, name: str) -> list[int]:
        rows: list[int] = np.flatnonzero(self._keys[field] == name_key(name)).tolist()
        return [self.first + row for row in rows]

    def stored(self, row: int) -> bytes:
        """Return the stored form of a passage."""
        try:
            decompress = self._local.decompress
        except AttributeError:
            decompress = zstandard.ZstdDecompressor(**self._options).decompress
            self._local.decompress = decompress
        number = row - self.first
        start = self._ends[number - 1] if number else 0
        body: bytes = decompress(self._data[start : self._ends[number]])
        return body


class Passages:
    """All passages of one generation, by row number. Deleted ones are still there, but nothing points to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if any(folder.glob("*.counts")):
            raise DamagedIndex(f"'{folder}' is of an older version. Build the index again.")
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
        """Yield what is wrong with the segments."""
        for segment in self._segments:
            problem = segment.problem()
            if problem:
                yield problem

    def rows_with(self, field: Field, name: str) -> list[int]:
        """Return the rows of passages whose document or source has the checksum of this name: compare names, too."""
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
        """Return the stored form of these passages."""
        segments, firsts = self._segments, self._firsts
        try:
            return [segments[bisect_right(firsts, row) - 1].stored(row) for row in rows]
        except (zstandard.ZstdError, IndexError, ValueError) as error:
            raise DamagedIndex(
                f"'{self.folder}' cannot be read ({error}). `whichsense index check` names the damage; build it again."
            ) from None


# Writing the passages of an index: the segments that store.py reads.

_LEVEL = 6
_SAMPLE_BYTES = 3 * 2**20  # of the first passages, from which the dictionary is learned
_FEWEST_SAMPLES = 2000
_LONGEST_SAMPLE = 5000  # bytes of each
_DICTIONARY_BYTES = 262_144
_DICTIONARY_SHARE = 12  # the samples are so many times as long, at least
_BATCH_BYTES = 2**17  # passages that are compressed together
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
        self._batch_bytes = 0
        self._batch_keys: list[tuple[int, int]] = []
        self._full = _SAMPLE_BYTES
        self._compressor: zstandard.ZstdCompressor | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pack")
        self._waiting: deque[Future[None]] = deque()
        self._size = 0

    def add(self, stored: bytes, document: str, source: str) -> None:
        """Append a passage, as `pack` made it, with the names by which it is looked up."""
        self._batch.append(stored)
        self._batch_bytes += len(stored)
        self._batch_keys.append((name_key(document), _source_key(source)))
        if self._batch_bytes >= self._full:
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
            self._full = _BATCH_BYTES
        while len(self._waiting) >= _BATCHES_WAITING:
            self._waiting.popleft().result()  # raises what went wrong with that batch
        writing = self._thread.submit(self._write, self._compressor, self._batch, self._batch_keys)
        self._waiting.append(writing)
        self._batch, self._batch_bytes, self._batch_keys = [], 0, []

    def _make_compressor(self) -> zstandard.ZstdCompressor:
        """Return a compressor with a dictionary of the first passages, where there are enough to learn one from."""
        options: dict[str, Any] = {"level": _LEVEL, "write_checksum": False, "write_dict_id": False}
        if len(self._batch) >= _FEWEST_SAMPLES:
            samples: list[Any] = [passage[:_LONGEST_SAMPLE] for passage in self._batch]
            size = sum(map(len, samples)) // _DICTIONARY_SHARE
            size = min(size, _DICTIONARY_BYTES)
            dictionary = zstandard.train_dictionary(size, samples)
            # On disk first: no passage is read without it.
            write_atomically(self._stem.with_suffix(".dict"), dictionary.as_bytes())
            dictionary.precompute_compress(level=_LEVEL)
            options["dict_data"] = dictionary
        return zstandard.ZstdCompressor(**options)

    def _write(
        self, compressor: zstandard.ZstdCompressor, batch: list[bytes], keys: list[tuple[int, int]]
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
        if first >= next_row:
            _remove(path.with_suffix(""))
        else:
            _shorten(path, next_row - first)


def _shorten(path: Path, most: int) -> None:
    """Cut off what a segment has beyond so many passages. A run that is killed leaves its files at different places."""
    ends = np.fromfile(path, dtype=END, count=most)
    sizes = {
        ".data": int(ends[-1]),
        ".ends": len(ends) * END.itemsize,
        ".keys": len(ends) * KEYS.itemsize,
    }
    for suffix, size in sizes.items():
        part = path.with_suffix(suffix)
        if part.stat().st_size < size:
            raise WriteFault(f"'{part}' was not written to its end. Begin it anew.")
        os.truncate(part, size)


def _remove(stem: Path) -> None:
    """Remove a segment."""
    for suffix in _SUFFIXES:
        stem.with_suffix(suffix).unlink(missing_ok=True)


# What names point to: redirects, and the senses that disambiguation pages list. One SQLite file.

_SCHEMA = """
CREATE TABLE IF NOT EXISTS redirect (key TEXT PRIMARY KEY, name TEXT, target TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sense (key TEXT, title TEXT, gloss TEXT, name TEXT, PRIMARY KEY (key, title, gloss))
    WITHOUT ROWID;
"""


def _key(name: str) -> str:
    """Return a name as it is looked up: without case, with single spaces for underscores and white space."""
    spaced = whole_characters(name).replace("_", " ")
    return " ".join(spaced.casefold().split())


class NamesWriter:
    """Collects names. Adding the same one twice changes nothing, so a resumed build may repeat itself."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        try:
            self._database.executescript(_SCHEMA)
        except sqlite3.DatabaseError:
            self._database.close()
            raise

    def add(self, record: Redirect | Sense) -> None:
        if isinstance(record, Redirect):
            row = (_key(record.name), record.name, record.target)
            self._database.execute("INSERT OR REPLACE INTO redirect VALUES (?, ?, ?)", row)
        else:
            entry = (_key(record.name), record.title, record.gloss, record.name)
            self._database.execute("INSERT OR REPLACE INTO sense VALUES (?, ?, ?, ?)", entry)

    def commit(self) -> None:
        self._database.commit()

    def close(self) -> None:
        self._database.commit()
        self._database.close()


class Names:
    """Looks names up; safe for many processes because the file never changes once it is served."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._database = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )
        except sqlite3.OperationalError as error:
            raise DamagedIndex(
                f"'{path}' cannot be opened ({error}). Build the index again."
            ) from None

    def close(self) -> None:
        self._database.close()

    def redirect(self, name: str) -> str | None:
        """Return where a name is redirected to, if it is."""
        rows = self._rows("SELECT target FROM redirect WHERE key = ?", name)
        for (target,) in rows:
            return target
        return None

    def senses(self, name: str) -> list[Sense]:
        """Return what a name may mean, as its disambiguation page lists it; redirects are followed once."""
        query = "SELECT name, title, gloss FROM sense WHERE key = ? ORDER BY title"
        rows = list(self._rows(query, name))
        if not rows and (target := self.redirect(name)):
            rows = list(self._rows(query, target.removesuffix(" (disambiguation)")))
        return [Sense(*row) for row in rows]

    def problem(self) -> str | None:
        """Return what SQLite finds wrong with the file."""
        try:
            (verdict,) = self._database.execute("PRAGMA quick_check").fetchone()
        except sqlite3.DatabaseError as error:
            return str(error)
        return None if verdict == "ok" else str(verdict)

    def _rows(self, query: str, name: str) -> Iterable[tuple[str, ...]]:
        try:
            return self._database.execute(query, (_key(name),)).fetchall()
        except sqlite3.DatabaseError as error:
            raise DamagedIndex(
                f"'{self.path}' cannot be read ({error}). Build the index again."
            ) from None
