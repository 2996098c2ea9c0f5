"""Work in parts that are kept on disk: claimed by one process, written once, resumed after a stop."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from whichsense.errors import BadInput
from whichsense.files import as_json, lock, read_json, write_atomically
from whichsense.jobs.limits import Progress, Stopped, silent, stop_requested
from whichsense.jobs.workers import Executor, run_here

# Claims on unfinished work: the file that says what is being made is held by one run at a time.

Fingerprint = Mapping[str, Any]
"""What a result depends on, as JSON: settings, checksums of the inputs, versions."""


def same_fingerprint(written: Any, current: Fingerprint) -> bool:
    """Tell whether a fingerprint that was read from a file is the current one. JSON knows no tuples and only text
    keys.
    """
    return bool(written == json.loads(json.dumps(current)))


def hold(path: Path, *, wait: bool = False, advice: str = "") -> BinaryIO:
    """Open a file for this run alone, until it is closed or the process dies. It is created where it is missing.

    A file that another run holds is an error, or waited for. `advice` ends the errors: what else a person may do.
    """
    while True:
        file = _open(path, advice)
        if _is_held(file, path, wait):
            return file
        file.close()
        if not wait:
            raise BadInput(
                f"'{path}' is being written by another run. Wait until it ends{advice and ', or '}{advice}."
            )


def _open(path: Path, advice: str) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a+b")
    except OSError as error:
        fix = advice or "check its rights"
        raise BadInput(
            f"'{path}' cannot be written: {error.strerror}. {fix[0].upper()}{fix[1:]}."
        ) from None


def _is_held(file: BinaryIO, path: Path, wait: bool) -> bool:
    try:
        if not lock(file, wait=wait):
            return False
    except (ImportError, OSError):
        # Windows and some network file systems have no locks: other runs are not noticed there.
        return True
    # Another run may have finished, and removed the file, after it was opened here.
    return path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())


# Resumable work in parts: the results of many items, in numbered files of a folder.
#
# The scheme has two stores. `Parts` keeps a file for each part: for results that are large or binary,
# and that several processes work out at once. `Lines` appends a line for each item to one file: for
# results that are small but expensive, such as a model's answer to a question, of which a stop must
# lose none and which would be thousands of files.
#
# A part is a pure function of its items, and an executor runs it: in this process, in forked ones,
# later on a cluster.
#
# The files of parts named "train" with the suffix ".npz":
#
#     train.started.json    fingerprint of unfinished parts; held by the run that works on them
#     train-00000.npz, …    each written beside, flushed to disk and renamed into place
#     train.json            fingerprint and number of parts, once all of them are written

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Part(Generic[Item]):
    """Consecutive items whose results are one file."""

    number: int
    items: Sequence[Item]


@dataclass(frozen=True, slots=True)
class PartCodec(Generic[Result]):
    """How a part's result is written and read."""

    suffix: str
    encode: Callable[[Result], bytes]
    decode: Callable[[bytes], Result]


class Parts(Generic[Item, Result]):
    """The results of items, in parts of `size` items each.

    The fingerprint says what the results depend on, the items included. A folder that holds parts of another
    fingerprint is refused; `advice` says what to do then.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        fingerprint: Fingerprint,
        *,
        size: int,
        codec: PartCodec[Result],
        advice: str = "Choose another folder, or remove this one.",
    ) -> None:
        self.folder = folder
        self.name = name
        self.size = size
        self._fingerprint = fingerprint
        self._codec = codec
        self._advice = advice
        self._finished = folder / f"{name}.json"
        self._started = folder / f"{name}.started.json"

    def path(self, number: int) -> Path:
        return self.folder / f"{self.name}-{number:05d}{self._codec.suffix}"

    @property
    def is_complete(self) -> bool:
        """Whether all parts are written. Raises BadInput where they are of another fingerprint."""
        if not self._finished.exists():
            return False
        return all(self.path(number).exists() for number in range(self._count()))

    def complete(
        self,
        items: Sequence[Item],
        work: Callable[[Part[Item]], Result],
        *,
        executor: Executor = run_here,
        progress: Progress = silent,
        wait: bool = False,
    ) -> None:
        """Work out the parts that are not written.

        A stop that is requested (Ctrl-C, SIGTERM) raises Stopped after the next part. A second run beside this one is
        refused; with `wait`, as for processes that one launcher started, it waits and finds the parts complete.
        """
        if self.is_complete:
            return
        with hold(self._started, wait=wait) as file:
            if not self.is_complete:  # another run may have completed them meanwhile
                self._claim(file, len(items))
                self._write_missing(items, work, executor, progress)
                count = len(self._split(items))
                finished = {"about": self._fingerprint, "parts": count}
                write_atomically(self._finished, json.dumps(finished))
            self._started.unlink(missing_ok=True)

    def __iter__(self) -> Iterator[Result]:
        """Yield the results of all parts, in the order of the items."""
        for number in range(self._count()):
            yield self._read(number)

    def _write_missing(
        self,
        items: Sequence[Item],
        work: Callable[[Part[Item]], Result],
        executor: Executor,
        progress: Progress,
    ) -> None:
        codec = self._codec  # a forked worker encodes, so that bytes come back

        def encoded(part: Part[Item]) -> bytes:
            return codec.encode(work(part))

        missing = [part for part in self._split(items) if not self.path(part.number).exists()]
        done = len(items) - sum(len(part.items) for part in missing)
        with stop_requested() as stop, closing(closable(executor(encoded, missing))) as results:
            for part, body in results:
                # Only this process writes: a part is there whole or not at all.
                write_atomically(self.path(part.number), body)
                done += len(part.items)
                progress(done / len(items), done)
                if done < len(items) and stop():
                    raise Stopped(
                        "Stopped. Run the same command again: it resumes with the next part."
                    )

    def _split(self, items: Sequence[Item]) -> list[Part[Item]]:
        return [
            Part(start // self.size, items[start : start + self.size])
            for start in range(0, len(items), self.size)
        ]

    def _claim(self, file: BinaryIO, count: int) -> None:
        """Compare the fingerprint of unfinished parts with ours, or write it; remove what a killed run left half."""
        fingerprint = {"about": self._fingerprint, "size": self.size, "items": count}
        file.seek(0)
        body = file.read()
        written = _parsed(body)
        if written is None:
            self._refuse_unknown_parts(body)
            file.truncate(0)
            file.write(json.dumps(fingerprint).encode())
            file.flush()
            os.fsync(file.fileno())
        elif not same_fingerprint(written, fingerprint):
            self._refuse()
        # This run holds the parts, so that nobody else is writing these.
        for stale in self.folder.glob(f".{self.name}-*.tmp"):
            stale.unlink()

    def _refuse_unknown_parts(self, body: bytes) -> None:
        """The fingerprint is on disk before the first part is. Half a fingerprint beside parts is damage."""
        pattern = f"{self.name}-*{self._codec.suffix}"
        if body and any(self.folder.glob(pattern)):
            raise BadInput(
                f"'{self._started}' is damaged. Remove it and the files {pattern} beside it."
            )

    def _count(self) -> int:
        finished = read_json(self._finished)
        if not same_fingerprint(finished["about"], self._fingerprint):
            self._refuse()
        return int(finished["parts"])

    def _refuse(self) -> None:
        raise BadInput(f"'{self.folder}' holds results of other inputs or settings. {self._advice}")

    def _read(self, number: int) -> Result:
        path = self.path(number)
        try:
            return self._codec.decode(path.read_bytes())
        except Exception as error:  # what is damaged may fail in any way
            path.unlink(missing_ok=True)
            raise BadInput(
                f"'{path}' was damaged and is removed ({type(error).__name__}). Run the same command again: only the "
                f"{self.size:,} items in it are worked out anew."
            ) from None


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def closable(results: Iterator[tuple[Item, Result]]) -> Generator[tuple[Item, Result], None, None]:
    """Yield an executor's results as a generator, which can be closed, whatever kind of iterator it gives."""
    yield from results


# Resumable work line by line: each result is appended to one file as soon as it is known.
#
# See parts.py for when to use which store.

Record = dict[str, Any]


class Lines:
    """A file of JSON lines: first the fingerprint of what is asked, then a record for each item, under its id.

    One run at a time holds it. Half a line, which a kill leaves, is cut off.
    """

    def __init__(self, path: Path, fingerprint: Fingerprint, advice: str) -> None:
        """Open the file, or begin it. `advice` is what a person may do in place of resuming, in small letters."""
        self.path = path
        self.done: dict[str, Record] = {}
        """Records by their ids."""
        self._file = hold(path, advice=advice)
        try:
            self._resume(fingerprint, advice)
        except BaseException:
            self._file.close()
            raise

    def append(self, item_id: str, record: Mapping[str, Any]) -> None:
        """Add an item's record. It is on disk when this returns."""
        _append(self._file, {"id": item_id} | dict(record))
        self.done[item_id] = dict(record)

    def close(self) -> None:
        self._file.close()

    def _resume(self, fingerprint: Fingerprint, advice: str) -> None:
        self._file.seek(0)
        *lines, half = self._file.read().split(b"\n")
        if lines and not same_fingerprint(self._parsed(lines[0], 1), fingerprint):
            raise BadInput(
                f"'{self.path}' was begun by another system or over other items. Remove it, or {advice}."
            )
        for number, line in enumerate(lines[1:], 2):
            record = self._parsed(line, number)
            self.done[record.pop("id")] = record
        # Half a line is cut off in place: a new file would not be the one that is held.
        self._file.truncate(self._file.tell() - len(half))
        if not lines:
            _append(self._file, fingerprint)

    def _parsed(self, line: bytes, number: int) -> Record:
        """Return the first line, which is the fingerprint, or a record."""
        with suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict) and (number == 1 or isinstance(record.get("id"), str)):
                return record
        fix = "Remove that line: its item is worked out again. Or remove the file."
        if number == 1:
            fix = "Remove the file."
        raise BadInput(f"'{self.path}', line {number}: damaged. {fix}")


def _append(file: BinaryIO, record: Mapping[str, Any]) -> None:
    file.write(as_json(record))
    file.flush()
    os.fsync(file.fileno())
