"""NQ-open, TriviaQA, WebQuestions and their like: exact match."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from whichsense.datasets.readers import trivia_answers
from whichsense.datasets.rows import Row, records
from whichsense.evaluation.scoring.inputs import (
    aligned,
    as_answers,
    by_id,
    read_predictions,
)
from whichsense.evaluation.scoring.result import Result, intervals, mean, share
from whichsense.metrics.answers import (
    exact_match,
    exact_match_first,
    oracle_exact_match,
)

METRICS = ("em", "em_first", "em_oracle")
_FIX = "Is it NQ-open's, TriviaQA's or a file of their form?"


class _Gold(NamedTuple):
    question: str
    answers: tuple[str, ...]


def score_nq(
    gold: str | Path,
    predicted: str | Path,
    *,
    allow_missing: bool = False,
    name: str = "",
) -> Result:
    """EM by any alias and by the first one, of the first prediction; oracle EM of all predictions.

    Gold records without an id go by their question.
    """
    golds = by_id(_golds(Path(gold)), gold)
    given = read_predictions(predicted, list(golds))
    predictions = aligned(
        golds,
        given,
        predicted,
        as_answers,
        allow_missing=allow_missing,
        empty=lambda value: value in ([], ""),
    )
    questions: dict[str, dict[str, Any]] = {}
    for key, (question, answers) in golds.items():
        ours = predictions[key] or ()
        scores = dict.fromkeys(METRICS, 0.0)
        if ours:
            scores["em"] = exact_match(ours[0], answers)
            scores["em_first"] = exact_match_first(ours[0], answers)
            scores["em_oracle"] = oracle_exact_match(ours, answers)
        shown = {"question": question, "gold": list(answers), "predicted": list(ours)}
        questions[key] = {**scores, **shown}
    values = {
        metric: mean([one[metric] for one in questions.values()]) for metric in METRICS
    }
    rows = [[1.0, *(one[metric] for metric in METRICS)] for one in questions.values()]
    measures = {metric: share(i, 0) for i, metric in enumerate(METRICS, 1)}
    counts = {"n": len(questions)}
    return Result(
        "nq",
        name or Path(predicted).stem,
        values,
        counts,
        intervals(rows, measures),
        questions,
    )


def _golds(path: Path) -> Iterator[tuple[str, _Gold]]:
    for row in records(path, _FIX, "Data"):
        key = row.text("id", "QuestionId", "question", "Question")
        answers = _answers(row)
        if not answers:
            raise row.bad("the list of answers is empty")
        yield key, _Gold(row.text("question", "Question", default=key), answers)


def _answers(row: Row) -> tuple[str, ...]:
    if row.has("Answer"):  # TriviaQA's script goes by the normalized aliases
        return trivia_answers(row, "NormalizedAliases", "HumanAnswers")
    return row.texts("answer", "answers", "golden_answers")
