"""Evaluate one part of a system: its search, its support judge, its clarifications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput
from whichsense.files import as_json, write_atomically
from whichsense.index import Index
from whichsense.jobs.limits import Progress, silent
from whichsense.lab.datasets import Annotation, Claim, QAPair, Question, load
from whichsense.lab.datasets.dataset import load_questions
from whichsense.lab.evaluation.prediction import Journal, with_gold_readings
from whichsense.lab.metrics.exact_match import (
    answer_ranks,
    answer_recall,
    any_answer_recall,
    reciprocal_rank,
)
from whichsense.lab.metrics.statistics import area_under_curve, quantile, resampled_sums
from whichsense.lab.provenance import provenance
from whichsense.protocols import Clarifier, Reranker, Retriever, Support
from whichsense.stages.clarify import CompactClarifier
from whichsense.stages.retrieve import IndexRetriever
from whichsense.text.words import SMALL_WORDS, normalize, words
from whichsense.types import FOR_BENCHMARKS, Case, Method, frozen

# Evaluate retrieval: how many gold answers are among the first passages of a search.

_CUTOFFS = (1, 5, 10, 20, 100)
_BATCH = 32  # questions searched for at once


@frozen
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
    about = dict(about or {})
    settings: dict[str, Any] = {
        "dataset": dataset,
        "method": method_name,
        "index": index.manifest.created,
        **about,
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
    origin = provenance([data.path]) | about | {"index": index.manifest.sources}
    method_name += ", reranked" if reranker else ""
    result = _summarize(dataset, method_name, journal.records(), cutoffs, origin)
    _write(result, out)
    journal.finish()
    return result


def _write(result: RetrievalResult | SupportResult, out: str | Path | None) -> None:
    if out:
        write_atomically(Path(out), as_json(result.as_dict(), 2))


def _rank_answers(
    questions: Sequence[Question], retriever: Retriever, reranker: Reranker | None, depth: int
) -> list[dict[str, Any]]:
    """Return for each question the ranks of its gold answers, distinct and as annotated, and the seconds it took."""
    start = perf_counter()
    cases = [Case(question.text) for question in questions]
    cases = retriever.retrieve(cases, depth)
    if reranker is not None:
        cases = reranker.rerank(cases)
    seconds = (perf_counter() - start) / len(questions)
    records = []
    for question, case in zip(questions, cases, strict=True):
        # An answer in a passage's title counts, too.
        texts = [f"{hit.passage.title} {hit.passage.text}" for hit in case.hits]
        annotated = list(chain.from_iterable(question.answer_sets))
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
    ranks: list[list[int | None]] = [record["ranks"] for record in records]
    distinct = list(chain.from_iterable(ranks))
    annotated = [rank for record in records for rank in record["annotated"]]
    return RetrievalResult(
        dataset=dataset,
        method=method,
        questions=len(records),
        answers=len(distinct),
        answer_recall={k: answer_recall(distinct, k) for k in cutoffs},
        annotated_recall={k: answer_recall(annotated, k) for k in cutoffs},
        any_recall={
            k: sum(any_answer_recall(own, k) for own in ranks) / len(records) for k in cutoffs
        },
        mrr=sum(map(reciprocal_rank, ranks)) / len(records),
        seconds_per_question=sum(one["seconds"] for one in records) / len(records),
        provenance=origin,
    )


# Evaluate a support judge on claims with a label: which ones does the cited page support?

_THRESHOLD = 0.5
_SUPPORT_BATCH = 8  # claims judged at once
_FOLDS = 5
_SEED = 13


@frozen
class SupportResult:
    """How well claims that are supported are told from those that are not, or only in part."""

    dataset: str
    judge: str
    claims: int
    supported: int
    balanced_accuracy: float
    """The mean of the shares of supported claims and of others that are judged right."""
    interval: tuple[float, float]
    """95%, by a bootstrap over claims."""
    supported_right: float
    others_right: float
    area: float
    """Under the ROC curve."""
    tuned_balanced_accuracy: float
    """With the threshold of each fifth of the claims chosen on the other four."""
    tuned_interval: tuple[float, float]
    overlap_balanced_accuracy: float
    """Of the share of the claim's words in the page, with thresholds chosen in the same way."""
    overlap_interval: tuple[float, float]
    overlap_area: float
    provenance: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate_support(
    dataset: str,
    judge: Support,
    *,
    name: str,
    limit: int | None = None,
    data_dir: str | Path | None = None,
    out: str | Path | None = None,
    progress: Progress = silent,
) -> SupportResult:
    """Judge every claim of a dataset by its evidence. A claim counts as supported from a probability of a half on."""
    data = load(dataset, Claim, data_dir=data_dir)
    claims = list(data)[:limit]
    labels = [claim.label == "supported" for claim in claims]
    if all(labels) or not any(labels):
        raise BadInput(f"'{dataset}' needs claims of both kinds. Leave --limit out, or raise it.")
    scores: list[float] = []
    for start in range(0, len(claims), _SUPPORT_BATCH):
        batch = claims[start : start + _SUPPORT_BATCH]
        scores += judge.supports([(one.text, "\n".join(one.evidence)) for one in batch])
        progress(len(scores) / len(claims), len(scores))
    overlaps = [word_overlap(claim.text, " ".join(claim.evidence)) for claim in claims]
    decided = np.array(scores) >= _THRESHOLD
    supported = np.array(labels)
    result = SupportResult(
        dataset,
        name,
        len(claims),
        sum(labels),
        *balanced_accuracy(labels, decided.tolist()),
        float(decided[supported].mean()),
        float((~decided[~supported]).mean()),
        area_under_curve(labels, scores) or 0.0,
        *balanced_accuracy(labels, tuned_decisions(labels, scores)),
        *balanced_accuracy(labels, tuned_decisions(labels, overlaps)),
        area_under_curve(labels, overlaps) or 0.0,
        provenance([data.path]),
    )
    _write(result, out)
    return result


def balanced_accuracy(
    labels: Sequence[bool], decisions: Sequence[bool]
) -> tuple[float, tuple[float, float]]:
    """Return the mean of the accuracies on both labels, and its 95% bootstrap interval.

    >>> balanced_accuracy([True, False, False, False], [True, False, False, False])
    (1.0, (1.0, 1.0))
    >>> balanced_accuracy([True, True, False, False], [True, False, False, False])[0]
    0.75
    """
    rows = [
        [label, label and decision, not label, not label and not decision]
        for label, decision in zip(labels, decisions, strict=True)
    ]
    table = np.array(rows, dtype=np.float64)
    sums = resampled_sums(table)
    # A resample without one of the labels says nothing.
    sums = sums[(sums[:, 0] > 0) & (sums[:, 2] > 0)]
    resampled = (sums[:, 1] / sums[:, 0] + sums[:, 3] / sums[:, 2]) / 2
    own = table.sum(axis=0)
    value = float(own[1] / own[0] + own[3] / own[2]) / 2
    return value, (quantile(resampled, 0.025), quantile(resampled, 0.975))


def word_overlap(claim: str, text: str) -> float:
    """Return the share of a claim's content words that a text has.

    >>> word_overlap("It opened in 1990 in Rome", "Rome's station opened then.")
    0.6666666666666666
    """
    own = [word for word in words(claim) if word not in SMALL_WORDS]
    said = set(words(text))
    return sum(word in said for word in own) / len(own) if own else 1.0


def tuned_decisions(labels: Sequence[bool], scores: Sequence[float]) -> list[bool]:
    """Decisions by a threshold that was not chosen on the claim itself: each fold takes the best one of the others.

    >>> labels = [True, False] * 10
    >>> tuned_decisions(labels, [0.2 if label else 0.1 for label in labels]) == labels
    True
    """
    truth = np.array(labels)
    values = np.array(scores)
    folds = np.random.default_rng(_SEED).permutation(len(truth)) % _FOLDS
    decisions = np.zeros(len(truth), dtype=bool)
    for fold in range(_FOLDS):
        own = folds == fold
        decisions[own] = values[own] >= _best_threshold(truth[~own], values[~own])
    return [bool(one) for one in decisions]


def _best_threshold(labels: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """Return the score from which on "supported" gives the highest balanced accuracy."""
    best, highest = _THRESHOLD, 0.0
    for threshold in np.unique(scores):
        decided = scores >= threshold
        accuracy = decided[labels].mean() + (~decided[~labels]).mean()
        if accuracy > highest:
            best, highest = float(threshold), float(accuracy)
    return best


# Clarification questions from gold readings, for CAmbigNQ's own questions and, as silver ones, for
# other datasets.


def gold_case(question: Question, more: Mapping[str, Question] | None = None) -> Case | None:
    """Return a case with the annotated readings, in their order; None where there are not two of them.

    A question without answers of its own (some of CAmbigNQ's) has those of the same id in `more`, AmbigNQ's.
    """
    annotated = question
    if question.several is None and more is not None and question.id in more:
        annotated = _with_every_reading(more[question.id])
    case = Case(question.text, policy=FOR_BENCHMARKS)
    case = with_gold_readings(annotated, case)
    return case if case.readings else None


def _with_every_reading(question: Question) -> Question:
    """All annotators' readings as one annotation, as CAmbigNQ has them; one with the answer of an earlier annotator's
    is left out."""
    merged: list[QAPair] = []
    answered: set[str] = set()
    for annotation in question.annotations:
        if annotation.is_single:
            continue
        names: set[str] = set()
        for pair in annotation.pairs:
            own = set(map(normalize, pair.answers))
            if not own & answered:
                merged.append(pair)
            names |= own
        answered |= names
    return replace(question, annotations=(Annotation("multipleQAs", tuple(merged)),))


def make_clarifications(
    questions: Sequence[Question], more: Iterable[Question] = (), clarifier: Clarifier | None = None
) -> list[dict[str, Any]]:
    """Make a record in CAmbigNQ's form for each question with several gold readings: what `score cambignq` reads as
    predictions, and what a generator can be trained on."""
    by_id = {question.id: question for question in more}
    asked = []
    cases = []
    for question in questions:
        case = gold_case(question, by_id)
        if case is not None:
            asked.append(question)
            cases.append(case)
    clarified = (clarifier or CompactClarifier()).clarify(cases)
    return [
        _record(question, case)
        for question, case in zip(asked, clarified, strict=True)
        if case.clarification is not None
    ]


def _record(question: Question, case: Case) -> dict[str, Any]:
    clarification = case.clarification
    assert clarification is not None
    answers = [
        {"question": reading.question, "answer": [reading.answer], "clarification": option.label}
        for option in clarification.options
        for reading in option.readings
    ]
    return {
        "id": question.id,
        "question": question.text,
        "clarification_question": clarification.question,
        "category": clarification.lead,
        "options": [option.label for option in clarification.options],
        "clarification_answers": answers,
    }


def write_clarifications(
    name: str, out: Path, more: Sequence[str] = (), data_dir: Path | None = None
) -> int:
    """Write `make_clarifications` of a dataset, and beside it what it was made from; how many there are."""
    questions, path = load_questions(name, data_dir)
    files = [path]
    others: list[Question] = []
    for other in more:
        found, file = load_questions(other, data_dir)
        others += found
        files.append(file)
    records = make_clarifications(questions, others)
    write_atomically(out, as_json(records, indent=1))
    origin = {"dataset": name, "readings": list(more)} | provenance(files)
    write_atomically(out.with_name(f"{out.name}.provenance.json"), as_json(origin, 1))
    return len(records)
