"""What long work has done so far, one line each on disk: a run that was stopped or killed goes on behind the last."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.files import as_json, locked
from whichsense.jobs.progress import Progress
from whichsense.jobs.stopping import Stopped, stop_requested


class Journal:
    """What was found out about each question, under a line that says what was asked of which questions.

    It lies in `out.partial` until the work is finished, held by one process at a time; without `out` it is kept in
    memory alone.
    """

    def __init__(
        self, out: Path | None, about: Mapping[str, Any], questions: Sequence[Question]
    ) -> None:
        if out and out.is_dir():
            raise BadInput(f"'{out}' is a folder. Choose a file for the result.")
        counted = Counter(question.id for question in questions)
        if repeated := [name for name, count in counted.items() if count > 1]:
            raise BadInput(
                f"Several questions have the id {repeated[0]!r}. Give each an id of its own."
            )
        self.questions = questions
        self.path = out.with_name(f"{out.name}.partial") if out else None
        self._told = dict(about) | {"ids": _digest(questions)}
        self._done: dict[str, dict[str, Any]] = {}
        self._open = contextlib.ExitStack()
        self._file: BinaryIO | None = None

    def __enter__(self) -> Journal:
        if self.path:
            with contextlib.ExitStack() as opened:  # and closed, if it cannot go on
                file = opened.enter_context(_held(self.path))
                self._go_on(self.path, file)
                self._stop = opened.enter_context(stop_requested())
                self._file, self._open = file, opened.pop_all()
        return self

    def _go_on(self, path: Path, file: BinaryIO) -> None:
        file.seek(0)
        *lines, half = file.read().split(b"\n")
        if lines and not same(_parsed(lines[0], path, 1), self._told):
            fix = "Remove it, or give another --out."
            raise BadInput(
                f"'{path}' was begun by another system or over other questions. {fix}"
            )
        records = [
            _parsed(line, path, number) for number, line in enumerate(lines[1:], 2)
        ]
        self._done = {record.pop("id"): record for record in records}
        # Half a line that a kill left is cut off in place: a new file would not be the one that is held.
        file.truncate(file.tell() - len(half))
        if not lines:
            _append(file, self._told)

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def batches(self, size: int, progress: Progress) -> Iterator[Sequence[Question]]:
        """The questions that are not done, `size` at a time. Asked to stop, it does so when those are done."""
        todo = [
            question for question in self.questions if question.id not in self._done
        ]
        for start in range(0, len(todo), size):
            yield todo[start : start + size]
            count, every = len(self._done), len(self.questions)
            progress(count / every, count)
            if self._file and self._stop() and count < every:
                raise Stopped(
                    "Stopped. Run the same command again: it goes on with the next question."
                )

    def add(self, question: Question, record: Mapping[str, Any]) -> None:
        if self._file:
            _append(self._file, {"id": question.id} | dict(record))
        self._done[question.id] = dict(record)

    def records(self) -> list[dict[str, Any]]:
        """One for each question, in their order, once all are done."""
        return [self._done[question.id] for question in self.questions]

    def finish(self) -> None:
        """What came of it is written: the journal can go."""
        if self.path:
            self.path.unlink(
                missing_ok=True
            )  # another run may have found all done, too


def same(written: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    """Whether what a file says of its making is what would be said now."""
    return _deciding(written) == _deciding(json.loads(json.dumps(told)))


def _deciding(told: Mapping[str, Any]) -> dict[str, Any]:
    """Without a system's prose about itself, which files of earlier versions hold."""
    system = told.get("system")
    if not isinstance(system, dict):
        return dict(told)
    return dict(told) | {
        "system": {key: value for key, value in system.items() if key != "about"}
    }


def _digest(questions: Sequence[Question]) -> str:
    body = "\n".join(f"{question.id}\t{question.text}" for question in questions)
    return hashlib.sha256(body.encode(errors="surrogatepass")).hexdigest()


def _append(file: BinaryIO, record: Mapping[str, Any]) -> None:
    file.write(as_json(record))
    file.flush()
    os.fsync(file.fileno())


def _held(path: Path) -> BinaryIO:
    """The file, there and ours alone until it is closed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a+b")
    except OSError as error:
        raise BadInput(
            f"'{path}' cannot be written: {error.strerror}. Give another --out."
        ) from None
    if not _is_ours(file, path):
        file.close()
        raise BadInput(
            f"'{path}' is being written by another run. Wait until it ends, or give another --out."
        )
    return file


def _is_ours(file: BinaryIO, path: Path) -> bool:
    try:
        if not locked(file):
            return False
    except (
        ImportError,
        OSError,
    ):  # Windows and some network file systems have no locks: nobody else is seen there
        return True
    # Another run may have finished, and removed the file, after it was opened here.
    return path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())


def _parsed(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """The first line, which says what was asked, or a record of one question."""
    with contextlib.suppress(ValueError, RecursionError):
        record = json.loads(line)
        if isinstance(record, dict) and (
            number == 1 or isinstance(record.get("id"), str)
        ):
            return record
    fix = (
        "Remove the file."
        if number == 1
        else "Remove that line: its question is asked again. Or remove the file."
    )
    raise BadInput(f"'{path}', line {number}: damaged. {fix}")
