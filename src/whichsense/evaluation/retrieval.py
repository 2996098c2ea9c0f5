"""Evaluate retrieval: how many gold answers are among the first passages of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from whichsense.datasets import Question, load
from whichsense.errors import BadInput
from whichsense.evaluation.journal import Journal
from whichsense.files import as_json, write_atomically
from whichsense.index import Index
from whichsense.jobs.progress import Progress, silent
from whichsense.metrics.retrieval import (
    answer_ranks,
    answer_recall,
    any_answer_recall,
    reciprocal_rank,
)
from whichsense.protocols import Reranker, Retriever
from whichsense.provenance import provenance
from whichsense.stages.retrieve import IndexRetriever
from whichsense.types import Case, Method

_CUTOFFS = (1, 5, 10, 20, 100)
_BATCH = 32  # questions searched for at once


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """Recall at each cutoff, and speed."""

    dataset: str
    method: str
    questions: int
    answers: int
    answer_recall: dict[int, float]
    """Share of gold answers, over all questions, that a passage among the first k holds. A distinct answer counts
    once."""
    annotated_recall: dict[int, float]
    """The same over the answers of every annotation: an answer that two annotators gave counts twice."""
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
    cutoffs: Sequence[int] = _CUTOFFS,
    limit: int | None = None,
    data_dir: str | Path | None = None,
    out: str | Path | None = None,
    about: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> RetrievalResult:
    """Search for every answerable question of a dataset and find its gold answers in the hits.

    Hits are in the search's order or in a reranker's. The result is written to `out`; until then the ranks are in
    `out.partial`, from which a stopped run resumes. `about` describes the reranker: it is part of the result's
    provenance, and resuming with another one is refused.
    """
    data = load(dataset, data_dir=data_dir)
    questions = [question for question in data if question.answers][:limit]
    if not questions:
        raise BadInput(f"'{dataset}' has no question with an answer to look for.")
    depth = max(cutoffs)
    method_name: str = index.method(method)
    settings: dict[str, Any] = {
        "dataset": dataset,
        "method": method_name,
        "index": index.manifest.created,
        **(about or {}),
        "depth": depth,
    }
    retriever = IndexRetriever(index, method)
    # With a reranker one question at a time, so that a slow one can be stopped soon.
    batch_size = _BATCH if reranker is None else 1
    with Journal(Path(out) if out else None, settings, questions) as journal:
        for batch in journal.batches(batch_size, progress):
            records = _rank_answers(batch, retriever, reranker, depth)
            for question, record in zip(batch, records, strict=True):
                journal.add(question, record)
    # Where the numbers come from: data, reranker, index.
    origin = provenance([data.path])
    origin |= about or {}
    origin["index"] = index.manifest.sources
    if reranker:
        method_name += ", reranked"
    result = _summarize(dataset, method_name, journal.records(), cutoffs, origin)
    if out:
        write_atomically(Path(out), as_json(result.as_dict(), 2))
    journal.finish()
    return result


def _rank_answers(
    questions: Sequence[Question],
    retriever: Retriever,
    reranker: Reranker | None,
    depth: int,
) -> list[dict[str, Any]]:
    """For each question the ranks of its gold answers, distinct and as annotated, and the seconds it took."""
    start = perf_counter()
    cases = [Case(question.text) for question in questions]
    cases = retriever.retrieve(cases, depth)
    if reranker is not None:
        cases = reranker.rerank(cases)
    seconds = (perf_counter() - start) / len(questions)
    records = []
    for question, case in zip(questions, cases, strict=True):
        # An answer in a passage's title counts, too.
        texts = []
        for hit in case.hits:
            texts.append(f"{hit.passage.title} {hit.passage.text}")
        annotated: list[tuple[str, ...]] = []
        for answers in question.answer_sets:
            annotated.extend(answers)
        record = {
            "ranks": answer_ranks(question.answers, texts),
            "annotated": answer_ranks(annotated, texts),
            "seconds": seconds,
        }
        records.append(record)
    return records


def _summarize(
    dataset: str,
    method: str,
    records: Sequence[dict[str, Any]],
    cutoffs: Sequence[int],
    origin: dict[str, Any],
) -> RetrievalResult:
    ranks: list[list[int | None]] = []  # by question
    distinct: list[int | None] = []
    annotated: list[int | None] = []
    seconds: list[float] = []
    for record in records:
        ranks.append(record["ranks"])
        seconds.append(record["seconds"])
        distinct += record["ranks"]
        annotated += record["annotated"]
    distinct_recall = {}
    annotated_recall = {}
    any_recall = {}
    for k in cutoffs:
        distinct_recall[k] = answer_recall(distinct, k)
        annotated_recall[k] = answer_recall(annotated, k)
        # 1 or 0 for each question
        hits = [any_answer_recall(own, k) for own in ranks]
        any_recall[k] = sum(hits) / len(records)
    return RetrievalResult(
        dataset=dataset,
        method=method,
        questions=len(records),
        answers=len(distinct),
        answer_recall=distinct_recall,
        annotated_recall=annotated_recall,
        any_recall=any_recall,
        mrr=sum(map(reciprocal_rank, ranks)) / len(records),
        seconds_per_question=sum(seconds) / len(records),
        provenance=origin,
    )
