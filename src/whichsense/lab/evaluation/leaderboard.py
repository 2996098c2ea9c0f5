"""Compare systems over a dataset in one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from whichsense import sample
from whichsense.config import load_as
from whichsense.errors import BadConfig
from whichsense.files import read_json, sha256
from whichsense.jobs.limits import Progress, silent
from whichsense.jobs.workers import Executor, LoadedOnce, run_here
from whichsense.lab.datasets import ConflictQuestion, Question
from whichsense.lab.evaluation.prediction import (
    POLICIES,
    ForWhom,
    Given,
    GivenDocuments,
    Goal,
    Options,
    Setting,
    beside,
    is_of,
    loaded_elsewhere,
    predict,
    questions_of,
)
from whichsense.lab.evaluation.results import load_judge, load_reader
from whichsense.lab.evaluation.scoring import Result, score
from whichsense.lab.metrics.statistics import detection
from whichsense.lab.provenance import provenance
from whichsense.protocols import Answerer, Searchable
from whichsense.systems import SystemSettings, build, describe, load_settings
from whichsense.types import frozen

_UNSAFE = re.compile(r"[^\w.-]+")  # in a file's name


@frozen
class LeaderboardEntry:
    """One system of a comparison: a file, a provider, or predictions that exist already."""

    name: str = ""
    file: str = ""
    provider: str = ""
    predictions: str = ""
    given: Given | None = None
    options: Options | None = None
    policy: ForWhom | None = None
    """In place of what the whole comparison says."""


@frozen
class LeaderboardConfig:
    """The content of a `systems.toml`."""

    dataset: str
    """A name or a file; several are joined by "+"."""
    goal: Goal = "readings"
    given: Given = "question"
    options: Options = "bound"
    policy: ForWhom = "benchmarks"
    reader: str = ""
    """Of long answers: what answers the disambiguated questions from them: "compact", or a SQuAD 2.0 model."""
    judge: str = ""
    """Of long answers: what judges whether their citations support them: "compact"."""
    systems: tuple[LeaderboardEntry, ...] = ()
    index: str = ""
    """A folder, or "handbook", the embedded one. Empty: the embedded sample."""
    out: str = "predictions"
    """The folder of the prediction files. A system with predictions is not run again; a stopped one resumes."""
    limit: int = 0


@frozen
class LeaderboardRow:
    """The numbers of one system; None where it has none (no rewrites, or predictions of unknown speed)."""

    name: str
    metrics: Mapping[str, float | None]
    intervals: Mapping[str, tuple[float, float]]
    settings: Mapping[str, Any]
    """The variant of the metrics, and the models that some of them depend on."""
    seconds_per_question: float | None
    predictions: str
    provenance: Mapping[str, Any]


@frozen
class Leaderboard:
    """Systems beside each other over the same questions."""

    dataset: str
    goal: str
    benchmark: str
    questions: int
    counts: Mapping[str, int]
    systems: tuple[LeaderboardRow, ...]
    provenance: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def _no_progress(name: str) -> AbstractContextManager[Progress]:
    return nullcontext(silent)


def evaluate_systems(
    path: str | Path,
    *,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    progress: Callable[[str], AbstractContextManager[Progress]] = _no_progress,
    executor: Executor = run_here,
) -> Leaderboard:
    """Run every system of a file over its dataset and score each as the official script does.

    With an executor, the questions of each system are answered by its workers, which load the models themselves.
    """
    config = load_as(LeaderboardConfig, path)
    if not config.systems:
        raise BadConfig(
            f"{path}: there are no systems to compare. Add [[systems]] with a file, provider or predictions."
        )
    tables = list(map(_load_table, config.systems))
    settings = list(map(partial(_setting, config), config.systems))
    out = Path(config.out)
    # Before anything is run: a mistake in the file must not cost hours.
    _refuse_same_file(path, out, [table.name for table in tables if table])
    out.mkdir(parents=True, exist_ok=True)
    limit = limit or config.limit or None
    questions, sources = questions_of(config.dataset, data_dir, limit)
    benchmark = _benchmark(config.goal, questions)
    models = _metric_models(config)
    index = sample.open_index(config.index or None)
    run = partial(
        _run_system,
        dataset=config.dataset,
        questions=questions,
        index=index,
        out=out,
        executor=executor,
        progress=progress,
        data_dir=data_dir,
        limit=limit,
    )
    rows = []
    for entry, table, setting in zip(config.systems, tables, settings, strict=True):
        if table is None:  # predictions of a system that is not ours
            predictions = Path(entry.predictions)
            name = entry.name or predictions.stem
        else:
            name, predictions = run(table, setting)
        result = score(benchmark, questions, predictions, allow_missing=True, name=name, **models)
        rows.append(_row(result, predictions))
    return Leaderboard(
        dataset=config.dataset,
        goal=config.goal,
        benchmark=benchmark,
        questions=result.counts["n"],
        counts=result.counts,
        systems=tuple(rows),
        provenance=provenance([*sources, path]),
    )


def _metric_models(config: LeaderboardConfig) -> dict[str, Any]:
    models: dict[str, Any] = {}
    if config.reader:
        models["reader"] = load_reader(config.reader)
    if config.judge:
        models["judge"] = load_judge(config.judge)
    return models


def _setting(config: LeaderboardConfig, entry: LeaderboardEntry) -> Setting:
    return Setting(
        config.goal,
        entry.given or config.given,
        entry.options or config.options,
        entry.policy or config.policy,
    )


# The benchmark that scores each goal.
_BENCHMARKS = {
    "readings": "ambignq",
    "ambiguity": "ambiguity",
    "clarification": "cambignq",
    "clarified answers": "cambignq-answers",
    "long answer": "asqa",
}


def _benchmark(goal: str, questions: Sequence[Question]) -> str:
    if goal == "readings" and isinstance(questions[0], ConflictQuestion):
        return "ramdocs"
    return _BENCHMARKS[goal]


def _file_name(system: str) -> str:
    return _UNSAFE.sub("-", system)


def _load_table(entry: LeaderboardEntry) -> SystemSettings | None:
    """Return the table of an entry's system, under the entry's name; None where predictions are given."""
    if entry.predictions:
        return None
    table = load_settings(entry.file or entry.provider)
    return replace(table, name=entry.name or table.name)


def _refuse_same_file(path: str | Path, out: Path, names: Sequence[str]) -> None:
    """Refuse two systems that would write to one file."""
    taken: dict[str, str] = {}
    for name in names:
        file_name = _file_name(name)
        if file_name in taken:
            where = f"'{out / file_name}-….json'"
            raise BadConfig(
                f"{path}: '{taken[file_name]}' and '{name}' would both be written to {where}. Give one another `name`."
            )
        taken[file_name] = name


def _run_system(
    table: SystemSettings,
    setting: Setting,
    *,
    dataset: str,
    questions: Sequence[Question],
    index: Searchable,
    out: Path,
    executor: Executor,
    progress: Callable[[str], AbstractContextManager[Progress]],
    **options: Any,
) -> tuple[str, Path]:
    """Predict with a system, unless its predictions exist; return its name and their file."""
    if setting.given == "documents":
        index = GivenDocuments(questions)
    policy = POLICIES[setting.policy]
    system = build(table, index, policy)
    # The number of questions keeps runs with different limits apart.
    predictions = out / f"{_file_name(system.name)}-{len(questions)}.json"
    answerer: Answerer | LoadedOnce[Answerer] = system.answerer
    if executor is not run_here:
        answerer = loaded_elsewhere(system.settings, index, policy)
    about = describe(system.settings, index)
    with progress(system.name) as shown:
        if not is_of(predictions, about, dataset, setting):
            predict(
                answerer,
                dataset,
                predictions,
                setting=setting,
                system=about,
                rewrites=system.rewrites,
                progress=shown,
                executor=executor,
                **options,
            )
    return system.name, predictions


def _row(result: Result, predictions: Path) -> LeaderboardRow:
    # Predictions from elsewhere come without facts about how they were made.
    facts: dict[str, Any] = {}
    if beside(predictions).exists():
        facts = read_json(beside(predictions))
    origin = facts.get("provenance")
    return LeaderboardRow(
        name=result.name,
        metrics={**result.metrics, **_detection(result)},
        settings=result.settings,
        intervals=result.intervals,
        seconds_per_question=facts.get("seconds_per_question"),
        predictions=str(predictions),
        provenance=origin or {"data": {predictions.name: sha256(predictions)}},
    )


def _detection(result: Result) -> dict[str, float]:
    """Return CAmbigNQ's detection by predicted answers: a question with more than one counts as predicted ambiguous."""
    if result.dataset != "ambignq":
        return {}
    questions = result.questions.values()
    gold = [scores["multi"] for scores in questions]
    predicted = [len(scores["predicted"]) > 1 for scores in questions]
    measures = asdict(detection(gold, predicted))
    return {f"detection_{name}": value for name, value in measures.items()}
