"""Predict: a system over a dataset, written in AmbigNQ's official form. What was answered is never answered twice."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from whichsense.datasets import Question
from whichsense.datasets.given import given_questions
from whichsense.errors import BadInput
from whichsense.files import read_json, write_atomically
from whichsense.progress import Progress, silent
from whichsense.provenance import provenance
from whichsense.stopping import Stopped, stop_requested
from whichsense.types import Reading

_BATCH = 8


class Answerer(Protocol):
    """Questions in, their readings out: a Pipeline, a baseline, anything with the verb."""

    def readings(self, questions: Sequence[str]) -> list[list[Reading]]: ...


@dataclass(frozen=True, slots=True)
class Predicted:
    """What was written, and how fast."""

    path: Path
    questions: int
    seconds_per_question: float
    provenance: Mapping[str, Any]


def questions_of(
    dataset: str, data_dir: str | Path | None = None, limit: int | None = None
) -> tuple[list[Question], Path]:
    """The questions of a dataset, by name or from a file in AmbigNQ's form, and the file that they are from."""
    found, path = given_questions(dataset, data_dir)
    if not found:
        raise BadInput(f"'{dataset}' holds no questions.")
    return found[:limit], path


def predict(
    answerer: Answerer,
    dataset: str,
    out: str | Path,
    *,
    system: Mapping[str, Any] | None = None,
    rewrites: bool = True,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    batch: int = _BATCH,
    progress: Progress = silent,
) -> Predicted:
    """Answer every question of a dataset; `out` appears when all are answered.

    Until then the answers lie in `out.partial`: a run that was killed or stopped goes on with the question after the
    last one there. `system` says what answers; going on with another one is refused. Without `rewrites` only answers
    are written, without questions. `batch` questions are answered at once: more keep a GPU busier.
    """
    out = Path(out)
    questions, path = questions_of(dataset, data_dir, limit)
    about = {"system": dict(system or {}), "dataset": dataset, "rewrites": rewrites, "ids": _digest(questions)}
    journal = _Journal(out.with_name(f"{out.name}.partial"), about)
    todo = [question for question in questions if question.id not in journal.done]
    with journal, stop_requested() as stop:
        for start in range(0, len(todo), batch):
            some = todo[start : start + batch]
            began = time.perf_counter()
            found = answerer.readings([question.text for question in some])
            seconds = (time.perf_counter() - began) / len(some)
            for question, readings in zip(some, found, strict=True):
                journal.add(question.id, _official(readings, rewrites), seconds)
            progress(len(journal.done) / len(questions), len(journal.done))
            if stop() and len(journal.done) < len(questions):
                raise Stopped("Stopped. Run the same command again: it goes on with the next question.")
    taken = sum(journal.done[question.id][1] for question in questions) / len(questions)
    where = provenance([path]) | {key: about[key] for key in ("system", "dataset")}
    write_atomically(out, json.dumps({q.id: journal.done[q.id][0] for q in questions}, ensure_ascii=False) + "\n")
    facts = {"questions": len(questions), "seconds_per_question": taken, "provenance": where}
    write_atomically(beside(out), json.dumps(facts, ensure_ascii=False, indent=2) + "\n")
    journal.path.unlink()
    return Predicted(out, len(questions), taken, where)


def beside(out: Path) -> Path:
    """Where the facts about a prediction file lie: what made it, and how long it took."""
    return out.with_name(f"{out.name}.about.json")


def is_of(out: Path, system: Mapping[str, Any], dataset: str) -> bool:
    """Whether a prediction file is there and was made by this very system over this dataset."""
    if not out.exists() or not beside(out).exists():
        return False
    where = read_json(beside(out))["provenance"]
    return bool(where["system"] == json.loads(json.dumps(system)) and where["dataset"] == dataset)


def _official(readings: Sequence[Reading], rewrites: bool) -> list[Any]:
    """The official form. Pairs also say how probable the answer is, where the system gives a probability; the official
    script passes over it."""
    if not rewrites:
        return [reading.answer for reading in readings]
    return [{"question": one.question, "answer": one.answer} | _confidence(one) for one in readings]


def _confidence(reading: Reading) -> dict[str, float]:
    # Some verifiers score by log probabilities, and some systems not at all.
    return {"confidence": round(reading.confidence, 4)} if 0 < reading.confidence <= 1 else {}


def _digest(questions: Sequence[Question]) -> str:
    body = "\n".join(f"{question.id}\t{question.text}" for question in questions)
    return hashlib.sha256(body.encode()).hexdigest()


class _Journal:
    """The answers so far, one line each, under a line that says what they are answers of."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path = path
        self.done: dict[str, tuple[list[Any], float]] = {}
        head = json.dumps(about, sort_keys=True, ensure_ascii=False)
        lines = list(_whole_lines(path))
        if lines and lines[0] != head:
            fix = "Remove it, or give another --out."
            raise BadInput(f"'{path}' was begun by another system or over other questions. {fix}")
        for line in lines[1:]:
            record = json.loads(line)
            self.done[record["id"]] = (record["prediction"], record["seconds"])
        # Written anew, so that half a line that a kill left does not stay in the middle.
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, "\n".join([head, *lines[1:]]) + "\n")

    def __enter__(self) -> _Journal:
        self._file = open(self.path, "a", encoding="utf-8")
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, key: str, prediction: list[Any], seconds: float) -> None:
        record = {"id": key, "prediction": prediction, "seconds": seconds}
        self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.done[key] = (prediction, seconds)


def _whole_lines(path: Path) -> Iterator[str]:
    if path.exists():
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield line.decode("utf-8").rstrip("\n")
