"""Evaluate: systems over datasets, with the metrics that the papers report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from whichsense import sample
from whichsense.config import load_as
from whichsense.datasets import Annotation, Question, load
from whichsense.errors import BadConfig, BadInput
from whichsense.evaluation.journal import Journal
from whichsense.evaluation.predict import beside, is_of, predict, questions_of
from whichsense.evaluation.scoring import Result
from whichsense.evaluation.scoring.ambignq import score_ambignq
from whichsense.files import as_json, read_json, sha256, write_atomically
from whichsense.index import Index
from whichsense.jobs.progress import Progress, silent
from whichsense.metrics.detection import detection
from whichsense.metrics.retrieval import (
    answer_ranks,
    answer_recall,
    any_answer_recall,
    reciprocal_rank,
)
from whichsense.protocols import Reranker, Retriever
from whichsense.provenance import provenance
from whichsense.stages.retrieve import IndexRetriever
from whichsense.systems import (
    System,
    SystemTable,
    described,
    load_system,
    made,
    provided_system,
)
from whichsense.types import Method

CUTOFFS = (1, 5, 10, 20, 100)
_BATCH = 32


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """How much of what was asked for was found, at each cutoff."""

    dataset: str
    method: str
    questions: int
    answers: int
    answer_recall: dict[int, float]
    """Share of gold answers, over all questions, that some passage among the first k holds. Each distinct one once."""
    annotated_recall: dict[int, float]
    """The same over the answers of every annotation: what two annotators both wrote counts twice."""
    any_recall: dict[int, float]
    """Share of questions with at least one gold answer among the first k."""
    mrr: float
    seconds_per_question: float
    provenance: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate_retrieval(
    dataset: str,
    index: Index,
    *,
    method: Method | None = None,
    reranker: Reranker | None = None,
    cutoffs: Sequence[int] = CUTOFFS,
    limit: int | None = None,
    data_dir: str | Path | None = None,
    out: str | Path | None = None,
    about: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> RetrievalResult:
    """Search for every answerable question of a dataset, and look for its gold answers in what was found, in the
    search's order or in a reranker's.

    The result is written to `out`; until then what was found lies in `out.partial`, with which a run that was killed or
    stopped goes on. `about` says what the reranker is: it stands in the result's provenance, and going on with another
    one is refused.
    """
    data = load(dataset, data_dir=data_dir)
    questions = [question for question in data if question.answers][:limit]
    if not questions:
        raise BadInput(f"'{dataset}' has no question with an answer to look for.")
    told = {
        "dataset": dataset,
        "method": index.method(method),
        "index": index.manifest.created,
    } | dict(about or {})
    retriever = IndexRetriever(index, method)
    with Journal(
        Path(out) if out else None, told | {"depth": max(cutoffs)}, questions
    ) as journal:
        # One at a time, so that a slow reranker can be stopped soon.
        for some in journal.batches(_BATCH if reranker is None else 1, progress):
            for question, record in zip(
                some, _looked_for(some, retriever, reranker, max(cutoffs)), strict=True
            ):
                journal.add(question, record)
    where = (
        provenance([data.path]) | dict(about or {}) | {"index": index.manifest.sources}
    )
    named = index.method(method) + (", reranked" if reranker else "")
    result = _retrieval_result(dataset, named, journal.records(), cutoffs, where)
    if out:
        write_atomically(Path(out), as_json(result.as_dict(), 2))
    journal.finish()
    return result


def _looked_for(
    questions: Sequence[Question],
    retriever: Retriever,
    reranker: Reranker | None,
    depth: int,
) -> list[dict[str, Any]]:
    """Of each question at which ranks its gold answers stand, each once and as annotated, and how long that took."""
    began = perf_counter()
    found = retriever.retrieve([question.text for question in questions], depth)
    if reranker is not None:
        found = [
            reranker.rerank(question.text, hits)
            for question, hits in zip(questions, found, strict=True)
        ]
    seconds = (perf_counter() - began) / len(questions)
    records = []
    for question, hits in zip(questions, found, strict=True):
        texts = [f"{hit.passage.title} {hit.passage.text}" for hit in hits]
        annotated = answer_ranks(
            [answer for answers in question.answer_sets for answer in answers], texts
        )
        records.append(
            {
                "ranks": answer_ranks(question.answers, texts),
                "annotated": annotated,
                "seconds": seconds,
            }
        )
    return records


def _retrieval_result(
    dataset: str,
    method: str,
    records: Sequence[dict[str, Any]],
    cutoffs: Sequence[int],
    where: dict[str, Any],
) -> RetrievalResult:
    ranks: list[list[int | None]] = [one["ranks"] for one in records]
    every = [rank for found_at in ranks for rank in found_at]
    annotated = [rank for one in records for rank in one["annotated"]]
    count = len(records)
    return RetrievalResult(
        dataset=dataset,
        method=method,
        questions=count,
        answers=len(every),
        answer_recall={k: answer_recall(every, k) for k in cutoffs},
        annotated_recall={k: answer_recall(annotated, k) for k in cutoffs},
        any_recall={
            k: sum(any_answer_recall(found_at, k) for found_at in ranks) / count
            for k in cutoffs
        },
        mrr=sum(map(reciprocal_rank, ranks)) / count,
        seconds_per_question=sum(one["seconds"] for one in records) / count,
        provenance=where,
    )


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """One system of a comparison: a file, a provider, or predictions that are there already."""

    name: str = ""
    file: str = ""
    provider: str = ""
    predictions: str = ""


@dataclass(frozen=True, slots=True)
class SystemsTable:
    """What a `systems.toml` may say."""

    dataset: str
    systems: tuple[SystemEntry, ...] = ()
    index: str = ""
    """Empty: the embedded sample."""
    out: str = "predictions"
    """The folder of the prediction files. A system that was run is not run again; one that was stopped goes on."""
    limit: int = 0


@dataclass(frozen=True, slots=True)
class SystemResult:
    """The numbers of one system; None where it has none (no rewrites, or predictions of unknown speed)."""

    name: str
    metrics: Mapping[str, float | None]
    intervals: Mapping[str, tuple[float, float]]
    seconds_per_question: float | None
    predictions: str
    provenance: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SystemsResult:
    """Systems beside each other over the same questions."""

    dataset: str
    questions: int
    multi: int
    systems: tuple[SystemResult, ...]
    provenance: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate_systems(
    path: str | Path,
    *,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    progress: Callable[[str], AbstractContextManager[Progress]] = lambda name: (
        nullcontext(silent)
    ),
) -> SystemsResult:
    """Run every system of a file over its dataset and score each as the official script does."""
    wanted = load_as(SystemsTable, path)
    if not wanted.systems:
        raise BadConfig(
            f"{path}: there are no systems to compare. Add [[systems]] with a file, provider or predictions."
        )
    tables = [_named(entry) for entry in wanted.systems]
    out = Path(wanted.out)
    _refuse_same_file(path, out, [table.name for table in tables if table])
    out.mkdir(parents=True, exist_ok=True)
    limit = limit or wanted.limit or None
    questions, source = questions_of(wanted.dataset, data_dir, limit)
    gold = out / f"gold-{len(questions)}.json"
    write_atomically(gold, as_json(official_gold(questions)))
    index = Index.open(wanted.index) if wanted.index else sample.index()
    found = []
    for entry, table in zip(wanted.systems, tables, strict=True):
        name, predictions = (
            entry.name or Path(entry.predictions).stem,
            Path(entry.predictions),
        )
        if table:
            system = made(table, index)
            name, predictions = (
                system.name,
                out / f"{_safe(system.name)}-{len(questions)}.json",
            )
            with progress(name) as shown:
                _answered(
                    system,
                    index,
                    wanted.dataset,
                    predictions,
                    data_dir=data_dir,
                    limit=limit,
                    progress=shown,
                )
        scored = score_ambignq(gold, predictions, allow_missing=True, name=name)
        found.append(_system_result(scored, predictions))
    counts = scored.counts
    return SystemsResult(
        wanted.dataset,
        counts["n"],
        counts["n_multi"],
        tuple(found),
        provenance([source, path]),
    )


_UNSAFE = re.compile(r"[^\w.-]+")


def _safe(name: str) -> str:
    return _UNSAFE.sub("-", name)


def _named(entry: SystemEntry) -> SystemTable | None:
    """The system that an entry asks for, under its name there; None where predictions are given."""
    if entry.predictions:
        return None
    table = load_system(entry.file) if entry.file else provided_system(entry.provider)
    return replace(table, name=entry.name or table.name)


def _refuse_same_file(path: str | Path, out: Path, names: Sequence[str]) -> None:
    """Two systems may not write to one file, nor one to the gold answers."""
    taken = {"gold": "the gold answers"}
    for name in names:
        if other := taken.get(_safe(name)):
            where = f"'{out / _safe(name)}-….json'"
            raise BadConfig(
                f"{path}: '{other}' and '{name}' would both be written to {where}. Give one another `name`."
            )
        taken[_safe(name)] = name


def _answered(
    system: System, index: Index, dataset: str, predictions: Path, **options: Any
) -> None:
    """Run a system, unless its predictions are there."""
    about = described(system.table, index)
    if not is_of(predictions, about, dataset):
        predict(
            system.answerer,
            dataset,
            predictions,
            system=about,
            rewrites=system.rewrites,
            **options,
        )


def _system_result(scored: Result, predictions: Path) -> SystemResult:
    facts = read_json(beside(predictions)) if beside(predictions).exists() else {}
    where = facts.get("provenance") or {"data": {predictions.name: sha256(predictions)}}
    seconds = facts.get("seconds_per_question")
    metrics = {**scored.metrics, **_detection(scored)}
    return SystemResult(
        scored.name, metrics, scored.intervals, seconds, str(predictions), where
    )


def _detection(scored: Result) -> dict[str, float]:
    """CAmbigNQ's detection by predicted answers: a question is held to be ambiguous if it got more than one."""
    questions = scored.questions.values()
    found = detection(
        [one["multi"] for one in questions],
        [len(one["predicted"]) > 1 for one in questions],
    )
    return {f"detection_{name}": value for name, value in asdict(found).items()}


def official_gold(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """Questions in AmbigNQ's own form."""
    return [
        {
            "id": question.id,
            "question": question.text,
            "annotations": [_annotated(one) for one in question.annotations],
        }
        for question in questions
    ]


def _annotated(annotation: Annotation) -> dict[str, Any]:
    if annotation.is_single:
        return {
            "type": "singleAnswer",
            "answer": [alias for pair in annotation.pairs for alias in pair.answers],
        }
    pairs = [
        {"question": "|".join(pair.questions), "answer": list(pair.answers)}
        for pair in annotation.pairs
    ]
    return {"type": "multipleQAs", "qaPairs": pairs}
