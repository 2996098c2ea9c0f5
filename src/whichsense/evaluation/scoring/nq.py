"""NQ-open, TriviaQA, WebQuestions and similar datasets: exact match."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whichsense.datasets import Question
from whichsense.datasets.readers.parts import single_answer
from whichsense.datasets.readers.plain import trivia_answers
from whichsense.datasets.rows import ParsedJson, Row, read_rows
from whichsense.evaluation.scoring.inputs import (
    GoldInput,
    PredictionInput,
    read_gold,
    result_name,
)
from whichsense.evaluation.scoring.predictions import align, as_answers
from whichsense.evaluation.scoring.result import (
    Result,
    bootstrap_intervals,
    column,
    mean,
    ratio_of,
)
from whichsense.metrics.answers import (
    exact_match,
    exact_match_first,
    oracle_exact_match,
)

_METRICS = ("em", "em_first", "em_oracle")
_FIX = "Is it NQ-open's or TriviaQA's file, or one of their form?"


def score_nq(
    gold: GoldInput,
    predictions: PredictionInput,
    *,
    allow_missing: bool = False,
    name: str = "",
) -> Result:
    """EM by any alias and by the first one, of the first prediction; oracle EM of all predictions.

    A gold record without an id has its question as id.
    """
    golds = read_gold(gold, _read_official, Question)
    aligned = align(
        golds,
        predictions,
        as_answers,
        allow_missing=allow_missing,
        answers_only=True,
        is_empty=_is_empty,
    )
    questions = {}
    for key, question in golds.items():
        questions[key] = _score_question(question, aligned[key] or ())
    values = {}
    columns = {"n": [1.0] * len(questions)}
    statistics = {}
    for metric in _METRICS:
        columns[metric] = column(questions.values(), metric)
        values[metric] = mean(columns[metric])
        statistics[metric] = ratio_of(metric, "n")
    return Result(
        dataset="nq",
        name=result_name(name, predictions),
        metrics=values,
        counts={"n": len(questions)},
        intervals=bootstrap_intervals(columns, statistics),
        questions=questions,
    )


def _is_empty(prediction: Any) -> bool:
    # A prediction may be one answer as a plain text: an empty text is a missing answer.
    return prediction in ([], "")


def _score_question(question: Question, predicted: tuple[str, ...]) -> dict[str, Any]:
    aliases: list[str] = []
    for annotation in question.annotations:
        for answers in annotation.answers:
            aliases.extend(answers)
    scores: dict[str, Any] = dict.fromkeys(_METRICS, 0.0)
    if predicted:
        # The first prediction counts; oracle EM takes the best of all.
        scores["em"] = exact_match(predicted[0], aliases)
        scores["em_first"] = exact_match_first(predicted[0], aliases)
        scores["em_oracle"] = oracle_exact_match(predicted, aliases)
    scores["question"] = question.text
    scores["gold"] = aliases
    scores["predicted"] = list(predicted)
    return scores


def _read_official(source: Path | ParsedJson) -> Iterator[Question]:
    for row in read_rows(source, _FIX, "Data"):
        # Records without an id go by their question.
        key = row.text("id", "QuestionId", "question", "Question")
        answers = _answers(row)
        if not answers:
            raise row.bad("the list of answers is empty")
        text = row.text("question", "Question", default=key)
        yield Question(key, text, single_answer(answers))


def _answers(row: Row) -> tuple[str, ...]:
    if row.has("Answer"):
        # TriviaQA's script compares with the normalized aliases.
        return trivia_answers(row, "NormalizedAliases", "HumanAnswers")
    return row.texts("answer", "answers", "golden_answers")
