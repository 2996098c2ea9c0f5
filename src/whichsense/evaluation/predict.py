"""Predict: a system over a dataset, one prediction for each question. What was answered is never answered twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from whichsense.datasets import Question, load_questions
from whichsense.errors import BadInput
from whichsense.evaluation.journal import Journal
from whichsense.evaluation.setting import READINGS, Setting
from whichsense.files import as_json, read_json, write_atomically
from whichsense.jobs.claims import same_fingerprint
from whichsense.jobs.parts import closable
from whichsense.jobs.progress import Progress, silent
from whichsense.jobs.workers import Executor, LoadedOnce, run_here
from whichsense.protocols import Answerer, Searchable
from whichsense.provenance import provenance
from whichsense.systems.build import built_answerer, travelling
from whichsense.systems.settings import SystemSettings
from whichsense.types import Policy

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
) -> tuple[list[Question], list[Path]]:
    """The questions of a dataset, and the files that they are from.

    `dataset` is a name, a file in AmbigNQ's form, or several joined by "+".
    """
    questions: list[Question] = []
    paths = []
    for name in [dataset] if Path(dataset).is_file() else dataset.split("+"):
        own, path = load_questions(name.strip(), data_dir)
        if not own:
            raise BadInput(f"'{name}' holds no questions.")
        questions += own
        paths.append(path)
    return questions[:limit], paths


def loaded_elsewhere(
    settings: SystemSettings, index: Searchable, policy: Policy
) -> LoadedOnce[Answerer]:
    """A system as each worker of an executor loads it. One core is a worker's share."""
    place = travelling(index)
    return LoadedOnce(partial(built_answerer, settings, place, policy, 1))


@dataclass(frozen=True)
class _Answering:
    """What a worker does: answer a batch of questions."""

    load: Callable[[], Answerer]
    setting: Setting
    rewrites: bool

    def __call__(self, questions: Sequence[Question]) -> list[dict[str, Any]]:
        answerer, setting = self.load(), self.setting
        began = time.perf_counter()
        predictions = []
        for case in setting.run(answerer, questions):
            predictions.append(setting.prediction(answerer, case, self.rewrites))
        seconds = (time.perf_counter() - began) / len(questions)
        return [{"prediction": one, "seconds": seconds} for one in predictions]


def predict(
    answerer: Answerer | LoadedOnce[Answerer],
    dataset: str,
    out: str | Path,
    *,
    setting: Setting = READINGS,
    system: Mapping[str, Any] | None = None,
    rewrites: bool = True,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    batch: int = _BATCH,
    progress: Progress = silent,
    executor: Executor = run_here,
) -> Predicted:
    """Predict for every question of a dataset; `out` appears when all are done.

    `setting` says what is predicted and what is given; the form of a prediction follows from its goal.

    Until then the answers lie in `out.partial`: a run that was killed or stopped goes on with the question after the
    last one there, and a second run beside one that goes on is refused. `system` says what answers; going on with
    another one is refused. Without `rewrites` only answers are written, without questions. `batch` questions are
    answered at once: more keep a GPU busier. For an executor whose workers are elsewhere, `answerer` is `LoadedOnce`.
    """
    out = Path(out)
    questions, paths = questions_of(dataset, data_dir, limit)
    if out.exists() and any(map(out.samefile, paths)):
        raise BadInput(
            f"'{out}' holds the questions; predictions would replace them. Give another --out."
        )
    about = {
        "system": dict(system or {}),
        "dataset": dataset,
        "setting": asdict(setting),
        "rewrites": rewrites,
    }
    with Journal(out, about, questions) as journal:
        load = answerer if isinstance(answerer, LoadedOnce) else lambda: answerer
        work = _Answering(load, setting, rewrites)
        with closing(closable(executor(work, journal.missing(batch)))) as answered:
            for some, records in answered:
                for question, record in zip(some, records, strict=True):
                    journal.add(question, record)
                journal.report(progress)
    done = journal.records()
    taken = sum(one["seconds"] for one in done) / len(questions)
    where = provenance(paths)
    where |= {key: about[key] for key in ("system", "dataset", "setting")}
    written = {}
    for question, record in zip(questions, done, strict=True):
        written[question.id] = record["prediction"]
    write_atomically(out, as_json(written))
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


def is_of(
    out: Path, system: Mapping[str, Any], dataset: str, setting: Setting = READINGS
) -> bool:
    """Whether a prediction file is there and was made by this very system over this dataset in this setting."""
    if not out.exists() or not beside(out).exists():
        return False
    where = read_json(beside(out))["provenance"]
    written = {key: where.get(key) for key in ("system", "dataset", "setting")}
    wanted = {"system": system, "dataset": dataset, "setting": asdict(setting)}
    return same_fingerprint(written, wanted)
