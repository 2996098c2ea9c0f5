"""What long work has done so far, one line each on disk: a run that was stopped or killed goes on behind the last."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.files import write_atomically
from whichsense.progress import Progress
from whichsense.stopping import Stopped, stop_requested


class Journal:
    """What was found out about each question, under a line that says what was asked of which questions.

    It lies in `out.partial` until the work is finished; without `out` it is kept in memory alone.
    """

    def __init__(self, out: Path | None, about: Mapping[str, Any], questions: Sequence[Question]) -> None:
        self.questions = questions
        self.path = out.with_name(f"{out.name}.partial") if out else None
        self._done: dict[str, dict[str, Any]] = {}
        self._open = contextlib.ExitStack()
        self._file: IO[str] | None = None
        if self.path:
            told = dict(about) | {"ids": _digest(questions)}
            self._go_on(self.path, json.dumps(told, sort_keys=True, ensure_ascii=False))

    def _go_on(self, path: Path, head: str) -> None:
        lines = list(_whole_lines(path))
        if lines and lines[0] != head:
            fix = "Remove it, or give another --out."
            raise BadInput(f"'{path}' was begun by another system or over other questions. {fix}")
        self._done = {record.pop("id"): record for record in map(json.loads, lines[1:])}
        # Written anew, so that half a line that a kill left does not stay in the middle.
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, "\n".join([head, *lines[1:]]) + "\n")

    def __enter__(self) -> Journal:
        if self.path:
            self._file = self._open.enter_context(open(self.path, "a", encoding="utf-8"))
            self._stop = self._open.enter_context(stop_requested())
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def batches(self, size: int, progress: Progress) -> Iterator[Sequence[Question]]:
        """The questions that are not done, `size` at a time. Asked to stop, it does so when those are done."""
        todo = [question for question in self.questions if question.id not in self._done]
        for start in range(0, len(todo), size):
            yield todo[start : start + size]
            count, every = len(self._done), len(self.questions)
            progress(count / every, count)
            if self._file and self._stop() and count < every:
                raise Stopped("Stopped. Run the same command again: it goes on with the next question.")

    def add(self, question: Question, record: Mapping[str, Any]) -> None:
        if self._file:
            self._file.write(json.dumps({"id": question.id} | dict(record), ensure_ascii=False) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        self._done[question.id] = dict(record)

    def records(self) -> list[dict[str, Any]]:
        """One for each question, in their order, once all are done."""
        return [self._done[question.id] for question in self.questions]

    def finish(self) -> None:
        """What came of it is written: the journal can go."""
        if self.path:
            self.path.unlink()


def _digest(questions: Sequence[Question]) -> str:
    body = "\n".join(f"{question.id}\t{question.text}" for question in questions)
    return hashlib.sha256(body.encode()).hexdigest()


def _whole_lines(path: Path) -> Iterator[str]:
    if path.exists():
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield line.decode("utf-8").rstrip("\n")
