"""Evaluate: systems over datasets, with the metrics that the papers report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from whichsense.datasets import load
from whichsense.errors import BadInput
from whichsense.index import Index
from whichsense.metrics.retrieval import answer_ranks, answer_recall, any_answer_recall, reciprocal_rank
from whichsense.progress import Progress, silent
from whichsense.provenance import provenance
from whichsense.retrieve import IndexRetriever
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
    cutoffs: Sequence[int] = CUTOFFS,
    limit: int | None = None,
    data_dir: str | Path | None = None,
    progress: Progress = silent,
) -> RetrievalResult:
    """Search for every answerable question of a dataset, and look for its gold answers in what was found."""
    data = load(dataset, data_dir=data_dir)
    questions = [question for question in data if question.answers][:limit]
    if not questions:
        raise BadInput(f"'{dataset}' has no question with an answer to look for.")
    retriever, depth = IndexRetriever(index, method), max(cutoffs)
    ranks: list[list[int | None]] = []
    annotated: list[int | None] = []
    seconds = 0.0
    for start in range(0, len(questions), _BATCH):
        batch = questions[start : start + _BATCH]
        began = perf_counter()
        found = retriever.retrieve([question.text for question in batch], depth)
        seconds += perf_counter() - began
        for question, hits in zip(batch, found, strict=True):
            texts = [f"{hit.passage.title} {hit.passage.text}" for hit in hits]
            ranks.append(answer_ranks(question.answers, texts))
            annotated += answer_ranks([answer for answers in question.answer_sets for answer in answers], texts)
        progress((start + len(batch)) / len(questions), start + len(batch))
    every = [rank for found_at in ranks for rank in found_at]
    count = len(questions)
    return RetrievalResult(
        dataset=dataset,
        method=index.method(method),
        questions=count,
        answers=len(every),
        answer_recall={k: answer_recall(every, k) for k in cutoffs},
        annotated_recall={k: answer_recall(annotated, k) for k in cutoffs},
        any_recall={k: sum(any_answer_recall(found_at, k) for found_at in ranks) / count for k in cutoffs},
        mrr=sum(map(reciprocal_rank, ranks)) / count,
        seconds_per_question=seconds / count,
        provenance=provenance([data.path]) | {"index": index.manifest.sources},
    )
