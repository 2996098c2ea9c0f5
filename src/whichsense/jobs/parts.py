"""Resumable work in parts: the results of many items, in numbered files of a folder.

The scheme has two stores. `Parts` keeps a file for each part: for results that are large or binary, and that several
processes work out at once. `Lines` (lines.py) appends a line for each item to one file: for results that are small but
expensive, such as a model's answer to a question, of which a stop must lose none and which would be thousands of files.

A part is a pure function of its items, and an executor runs it: in this process, in forked ones, later on a cluster.

The files of parts named "train" with the suffix ".npz":

    train.started.json    fingerprint of unfinished parts; held by the run that works on them
    train-00000.npz, …    each written beside, flushed to disk and renamed into place
    train.json            fingerprint and number of parts, once all of them are written
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from whichsense.errors import BadInput
from whichsense.files import read_json, write_atomically
from whichsense.jobs.claims import Fingerprint, hold, same_fingerprint
from whichsense.jobs.progress import Progress, silent
from whichsense.jobs.stopping import Stopped, stop_requested
from whichsense.jobs.workers import Executor, run_here

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
        """The results of all parts, in the order of the items."""
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

        missing = []
        for part in self._split(items):
            if not self.path(part.number).exists():
                missing.append(part)
        done = len(items) - sum(len(part.items) for part in missing)
        with (
            stop_requested() as stop,
            closing(closable(executor(encoded, missing))) as results,
        ):
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
        parts = []
        for start in range(0, len(items), self.size):
            part = Part(start // self.size, items[start : start + self.size])
            parts.append(part)
        return parts

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
        raise BadInput(
            f"'{self.folder}' holds results of other inputs or settings. {self._advice}"
        )

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


def closable(
    results: Iterator[tuple[Item, Result]],
) -> Generator[tuple[Item, Result], None, None]:
    """An executor's results as a generator, which can be closed, whatever kind of iterator it gives."""
    yield from results
