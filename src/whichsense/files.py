"""Reading files as they lie there, compressed or not, and writing them so that a crash leaves the old one."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from whichsense.errors import BadInput

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
LONGEST_LINE = 32 * 2**20
# Real text shrinks 3 to 30 times. A stream that grows far beyond that is not text but an attack or a mistake.
_BOMB_RATIO = 300
BOMB_FLOOR = 2**28  # bytes, below which any ratio will do


class Source(io.RawIOBase):
    """A file read from front to back, decompressed on the way; `done` is the share of it that was read."""

    def __init__(self, path: str | Path, bomb_floor: int = BOMB_FLOOR) -> None:
        self.path = Path(path)
        self._bomb_floor = bomb_floor
        try:
            self._raw: BinaryIO = open(self.path, "rb")
        except FileNotFoundError:
            raise BadInput(f"There is no file '{path}'. Check the path.") from None
        except IsADirectoryError:
            raise BadInput(f"'{path}' is a folder; a file is needed here.") from None
        except OSError as error:
            raise BadInput(
                f"'{path}' cannot be opened: {error.strerror}. Check its rights."
            ) from None
        self._size = os.fstat(self._raw.fileno()).st_size
        self._body = _decompressed(self.path.suffix.lower(), self._raw)
        self._given = 0

    @property
    def done(self) -> float:
        return self._raw.tell() / self._size if self._size else 1.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            chunk = self._body.read(len(buffer))
        except Exception as error:
            known = isinstance(error, (OSError, EOFError, zlib.error, lzma.LZMAError))
            if not known and type(error).__name__ != "ZstdError":  # imported only for .zst
                raise
            raise BadInput(
                f"'{self.path}' is broken or cut short: {error}. Fetch or pack it again."
            ) from None
        buffer[: len(chunk)] = chunk
        self._given += len(chunk)
        if self._given > self._bomb_floor and self._given > _BOMB_RATIO * self._raw.tell():
            raise BadInput(
                f"'{self.path}' unpacks to over {_BOMB_RATIO} times its size: refused. Unpack it yourself."
            )
        return len(chunk)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


def _decompressed(suffix: str, raw: BinaryIO) -> IO[bytes]:
    if suffix == ".gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    if suffix == ".bz2":  # reads multistream files (Wikipedia's) to the end
        return bz2.BZ2File(raw)
    if suffix == ".xz":
        return lzma.LZMAFile(raw)
    if suffix == ".zst":
        return cast(IO[bytes], _Zstd(raw))
    return raw


class _Zstd:
    """The frames of a .zst file, one after another. zstandard's own reader takes a file cut short for a whole one."""

    def __init__(self, raw: BinaryIO) -> None:
        import zstandard

        self._raw, self._unpacker = (raw, zstandard.ZstdDecompressor(max_window_size=2**31))
        self._frame: Any = None
        self._ready, self._at = b"", 0

    def read(self, size: int) -> bytes:
        while self._at >= len(self._ready):
            chunk = self._raw.read(2**12)  # small: 4 KB of a bomb unpack to 128 MB at most
            if not chunk:
                if self._frame is not None:
                    raise EOFError("the last frame is not complete")
                return b""
            self._ready, self._at = self._unpacked(chunk), 0
        piece = self._ready[self._at : self._at + size]
        self._at += len(piece)
        return piece

    def _unpacked(self, chunk: bytes) -> bytes:
        pieces = []
        while chunk:
            self._frame = self._frame or self._unpacker.decompressobj()
            pieces.append(self._frame.decompress(chunk))
            chunk = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        return b"".join(pieces)


def open_source(path: str | Path, bomb_floor: int = BOMB_FLOOR) -> tuple[Source, io.BufferedReader]:
    """Return the source (for its progress) and a buffered reader over it. Close the reader."""
    source = Source(path, bomb_floor)
    return source, io.BufferedReader(source, buffer_size=2**18)


def lines(
    reader: io.BufferedReader, longest: int = LONGEST_LINE
) -> Iterator[tuple[int, bytes | None]]:
    """Yield each line with its number, from 1; None in place of one that is longer than `longest`, which is passed
    over.
    """
    number = 0
    while line := reader.readline(longest + 1):
        number += 1
        if len(line) <= longest:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = reader.readline(2**20)
        yield number, None


def read_bytes(path: str | Path) -> bytes:
    """Return a whole file, decompressed."""
    with open_source(path)[1] as reader:
        return reader.read()


def read_json(path: str | Path) -> Any:
    """Return a JSON file, or the list of a JSON-lines file, compressed or not; an error names file, line and fix."""
    if plain_suffix(path) == ".jsonl":
        return [value for _, value in read_jsonl(path)]
    return _parsed(read_bytes(path), path)


def read_jsonl(path: str | Path) -> Iterator[tuple[int, Any]]:
    """Yield the values of a JSON-lines file with their line numbers, one by one. Empty lines are passed over."""
    with open_source(path)[1] as reader:
        for number, line in lines(reader):
            if line is None:
                raise BadInput(
                    f"'{path}', line {number}: over {LONGEST_LINE // 2**20} MB long. Is it JSON lines?"
                )
            if line := line.strip():
                yield number, _parsed(line, path, number)


def _parsed(body: bytes, path: str | Path, line: int = 0) -> Any:
    """Return the value of a JSON file, or of a line of one."""
    first = line or 1
    where = f"'{path}', line {line}" if line else f"'{path}'"
    try:
        return json.loads(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        first += body.count(b"\n", 0, error.start)
        raise BadInput(f"'{path}', line {first}: not UTF-8. Save it as UTF-8.") from None
    except json.JSONDecodeError as error:
        first += error.lineno - 1
        raise BadInput(f"'{path}', line {first}: not valid JSON ({error.msg}).") from None
    except RecursionError:
        raise BadInput(f"{where}: brackets nested too deep. Is it the right file?") from None
    except ValueError:  # Python turns no text of over 4,300 digits into an integer
        raise BadInput(f"{where}: a number with too many digits. Write it as a text.") from None


def plain_suffix(path: str | Path) -> str:
    """Return the kind of a file under its compression.

    >>> plain_suffix("train.JSONL.zst")
    '.jsonl'
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def write_atomically(path: str | Path, body: bytes | str) -> None:
    """Write beside, flush to disk, rename into place: readers see the old file or the new one, never a half."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "wb") as file:
            file.write(body.encode() if isinstance(body, str) else body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def as_json(value: Any, indent: int | None = None) -> bytes:
    """Return a value as lines of JSON in UTF-8, which cannot hold half a surrogate pair: that stays an escape.

    >>> as_json(["é", "\\ud800"]).decode()
    '["é", "\\\\ud800"]\\n'
    """
    return (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode(
        errors="backslashreplace"
    )


def lock(file: IO[Any] | int, *, wait: bool = False) -> bool:
    """Lock an open file, or a folder by its descriptor; False where another process has it, unless `wait` says to wait.

    The lock ends when the file is closed, and with the process.
    """
    import fcntl  # not on Windows

    flags = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
    try:
        fcntl.flock(file, flags)
    except BlockingIOError:
        return False
    return True


def sha256(path: str | Path) -> str:
    """Return the checksum of a file as it lies there, packed or not."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_unpacked(path: str | Path) -> str:
    """Return the checksum of what a file holds once it is decompressed: the same for every way to pack it."""
    digest = hashlib.sha256()
    with open_source(path)[1] as reader:
        while chunk := reader.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def cache_folder() -> Path:
    """Return where whichsense keeps what it can make or fetch again: in the user's cache (XDG_CACHE_HOME is
    honoured).
    """
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "whichsense"
