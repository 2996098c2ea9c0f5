"""RAMDocs: all right answers and no false one, from documents of which some are wrong or irrelevant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from whichsense.datasets import ConflictQuestion, Question
from whichsense.datasets.readers.ambiguous import read_ramdocs
from whichsense.datasets.rows import ParsedJson
from whichsense.evaluation.scoring.inputs import (
    GoldInput,
    PredictionInput,
    read_gold,
    result_name,
)
from whichsense.evaluation.scoring.predictions import align, as_answers
from whichsense.evaluation.scoring.result import (
    Result,
    Statistic,
    bootstrap_intervals,
    column,
    mean,
    ratio_of,
)
from whichsense.metrics.answer_sets import contains_answer, set_scores

_FIX = "Is it RAMDocs' file?"
_METRICS = (
    "exact_match",
    "exact_match_listed",
    "exact_match_strict",
    "answer_precision",
    "answer_recall",
    "wrong_answer",
    "answers_per_question",
)


def score_ramdocs(
    gold: GoldInput,
    predictions: PredictionInput,
    *,
    allow_missing: bool = False,
    name: str = "",
) -> Result:
    """Score answers, `{id: [answer…]}` or `{id: [{question, answer}…]}`. An answer counts where it is a gold one, or
    one of the two holds all words of the other in a row."""
    golds = read_gold(gold, _read_official, ConflictQuestion)
    aligned = align(golds, predictions, _as_answers, allow_missing=allow_missing)
    questions = {}
    for key, question in golds.items():
        questions[key] = _score_question(question, aligned[key] or ())
    rows = list(questions.values())
    columns: dict[str, Sequence[float]] = {"n": [1.0] * len(rows)}
    statistics: dict[str, Statistic] = {}
    for metric in _METRICS:
        columns[metric] = column(rows, metric)
        statistics[metric] = ratio_of(metric, "n")
    return Result(
        dataset="ramdocs",
        name=result_name(name, predictions),
        metrics={metric: mean(columns[metric]) for metric in _METRICS},
        counts={"n": len(rows)},
        intervals=bootstrap_intervals(columns, statistics),
        questions=questions,
    )


def _as_answers(value: Any) -> tuple[str, ...]:
    """Check a list of answers, or of readings with an answer each."""
    if isinstance(value, list):
        value = [one["answer"] if _is_reading(one) else one for one in value]
    return as_answers(value)


def _is_reading(value: Any) -> bool:
    return isinstance(value, Mapping) and "answer" in value


def _score_question(
    question: ConflictQuestion, predicted: tuple[str, ...]
) -> dict[str, Any]:
    gold = [aliases[0] for aliases in question.annotations[0].answers]
    scores = set_scores(gold, predicted)
    gives_wrong = False
    for wrong in question.wrong_answers:
        gives_wrong |= any(contains_answer(answer, wrong) for answer in predicted)
    return {
        "exact_match": scores.exact,
        # The paper's count: an answer that is neither right nor listed as wrong does no harm.
        "exact_match_listed": float(scores.recall == 1.0 and not gives_wrong),
        "exact_match_strict": set_scores(gold, predicted, strict=True).exact,
        "answer_precision": scores.precision,
        "answer_recall": scores.recall,
        "wrong_answer": float(gives_wrong),
        "answers_per_question": float(len(predicted)),
        "question": question.text,
        "gold": gold,
        "predicted": list(predicted),
    }


def _read_official(source: Path | ParsedJson) -> Iterator[Question]:
    return read_ramdocs(source, "", _FIX)
