"""The answers to a dataset's questions so far, on disk: a run that was stopped or killed resumes after the last one."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.jobs.lines import Lines
from whichsense.jobs.progress import Progress
from whichsense.jobs.stopping import Stopped, stop_requested


class Journal:
    """A record for each question, under a fingerprint of the system and of the questions.

    It is kept in `out.partial` until the work is finished, held by one run at a time. Without `out` it is kept in
    memory alone.
    """

    def __init__(
        self, out: Path | None, about: Mapping[str, Any], questions: Sequence[Question]
    ) -> None:
        if out and out.is_dir():
            raise BadInput(f"'{out}' is a folder. Choose a file for the result.")
        _refuse_repeated_ids(questions)
        self.questions = questions
        self.path = out.with_name(f"{out.name}.partial") if out else None
        self._fingerprint = dict(about) | {"ids": _digest(questions)}
        self._records: dict[str, dict[str, Any]] = {}
        self._resources = contextlib.ExitStack()
        self._lines: Lines | None = None

    def __enter__(self) -> Journal:
        if self.path:
            self._lines = Lines(self.path, self._fingerprint, "give another --out")
            self._resources.callback(self._lines.close)
            self._stop = self._resources.enter_context(stop_requested())
            self._records = self._lines.done
        return self

    def __exit__(self, *error: object) -> None:
        self._resources.close()

    def batches(self, size: int, progress: Progress) -> Iterator[Sequence[Question]]:
        """The questions without a record, `size` at a time. A stop that is requested takes effect after a batch."""
        for batch in self.missing(size):
            yield batch
            self.report(progress)

    def missing(self, size: int) -> list[Sequence[Question]]:
        """The questions without a record, in batches of `size`."""
        todo = []
        for question in self.questions:
            if question.id not in self._records:
                todo.append(question)
        return [todo[start : start + size] for start in range(0, len(todo), size)]

    def report(self, progress: Progress) -> None:
        """Show how much is done. Raises Stopped where a stop was requested and something is left."""
        total, done = len(self.questions), len(self._records)
        progress(done / total, done)
        if self._lines and self._stop() and done < total:
            raise Stopped(
                "Stopped. Run the same command again: it resumes with the next question."
            )

    def add(self, question: Question, record: Mapping[str, Any]) -> None:
        if self._lines:
            self._lines.append(question.id, record)
        else:
            self._records[question.id] = dict(record)

    def records(self) -> list[dict[str, Any]]:
        """One for each question, in their order, once all are done."""
        return [self._records[question.id] for question in self.questions]

    def answered(self) -> Iterator[tuple[Question, dict[str, Any]]]:
        """The questions that have a record, in their order, each with it."""
        for question in self.questions:
            if question.id in self._records:
                yield question, self._records[question.id]

    def finish(self) -> None:
        """Remove the journal: its result is written."""
        if self.path:
            # Another run may have found everything done, too, and removed it.
            self.path.unlink(missing_ok=True)


def _refuse_repeated_ids(questions: Sequence[Question]) -> None:
    counts = Counter(question.id for question in questions)
    for name, count in counts.items():
        if count > 1:
            raise BadInput(
                f"Several questions have the id {name!r}. Give each an id of its own."
            )


def _digest(questions: Sequence[Question]) -> str:
    rows = [f"{question.id}\t{question.text}" for question in questions]
    body = "\n".join(rows).encode(errors="surrogatepass")
    return hashlib.sha256(body).hexdigest()
