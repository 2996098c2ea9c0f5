"""Predict: a system over a dataset, written in AmbigNQ's official form. What was answered is never answered twice."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense.datasets import Question, load_questions
from whichsense.errors import BadInput
from whichsense.evaluation.journal import Journal
from whichsense.files import as_json, read_json, write_atomically
from whichsense.jobs.claims import same_fingerprint
from whichsense.jobs.progress import Progress, silent
from whichsense.protocols import Answerer
from whichsense.provenance import provenance
from whichsense.types import Reading

_BATCH = 8


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
    found, path = load_questions(dataset, data_dir)
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
    last one there, and a second run beside one that goes on is refused. `system` says what answers; going on with
    another one is refused. Without `rewrites` only answers are written, without questions. `batch` questions are
    answered at once: more keep a GPU busier.
    """
    out = Path(out)
    questions, path = questions_of(dataset, data_dir, limit)
    if out.exists() and out.samefile(path):
        raise BadInput(
            f"'{out}' holds the questions; predictions would replace them. Give another --out."
        )
    about = {"system": dict(system or {}), "dataset": dataset, "rewrites": rewrites}
    with Journal(out, about, questions) as journal:
        for some in journal.batches(batch, progress):
            began = time.perf_counter()
            cases = answerer.run([question.text for question in some])
            seconds = (time.perf_counter() - began) / len(some)
            for question, case in zip(some, cases, strict=True):
                journal.add(
                    question,
                    {
                        "prediction": _official(case.readings, rewrites),
                        "seconds": seconds,
                    },
                )
    done = journal.records()
    taken = sum(one["seconds"] for one in done) / len(questions)
    where = provenance([path])
    where |= {"system": about["system"], "dataset": about["dataset"]}
    predictions = {}
    for question, record in zip(questions, done, strict=True):
        predictions[question.id] = record["prediction"]
    write_atomically(out, as_json(predictions))
    facts = {
        "questions": len(questions),
        "seconds_per_question": taken,
        "provenance": where,
    }
    write_atomically(beside(out), as_json(facts, indent=2))
    journal.finish()
    return Predicted(out, len(questions), taken, where)


def beside(out: Path) -> Path:
    """Where the facts about a prediction file lie: what made it, and how long it took."""
    return out.with_name(f"{out.name}.about.json")


def is_of(out: Path, system: Mapping[str, Any], dataset: str) -> bool:
    """Whether a prediction file is there and was made by this very system over this dataset."""
    if not out.exists() or not beside(out).exists():
        return False
    where = read_json(beside(out))["provenance"]
    written = {"system": where["system"], "dataset": where["dataset"]}
    return same_fingerprint(written, {"system": system, "dataset": dataset})


def _official(readings: Sequence[Reading], rewrites: bool) -> list[Any]:
    """The official form. Pairs also say how probable the answer is, where the system gives a probability; the official
    script passes over it."""
    if not rewrites:
        return [reading.answer for reading in readings]
    pairs = []
    for reading in readings:
        pair = {"question": reading.question, "answer": reading.answer}
        pairs.append(pair | _confidence(reading))
    return pairs


def _confidence(reading: Reading) -> dict[str, float]:
    # Some verifiers score by log probabilities, and some systems not at all.
    return (
        {"confidence": round(reading.confidence, 4)}
        if 0 < reading.confidence <= 1
        else {}
    )
