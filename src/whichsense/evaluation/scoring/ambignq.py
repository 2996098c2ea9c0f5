"""AmbigNQ: F1 over answers, and over answers with their questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from whichsense.datasets import Annotation, Question
from whichsense.datasets.readers.ambiguous import read_ambignq
from whichsense.datasets.rows import ParsedJson
from whichsense.errors import BadInput
from whichsense.evaluation.scoring.inputs import (
    GoldInput,
    PredictionInput,
    input_name,
    read_gold,
    result_name,
)
from whichsense.evaluation.scoring.predictions import align, as_answers
from whichsense.evaluation.scoring.result import (
    Interval,
    Result,
    Statistic,
    bootstrap_intervals,
    column,
    mean,
    ratio_of,
)
from whichsense.metrics import ambignq as metrics

_FIX = "Is it AmbigNQ's file, light or full?"
_NO_QUESTIONS = "The predictions hold no questions: BLEU and EDIT-F1 are left out."

_Scores = Mapping[str, Any]  # one question's scores, and what the report shows of it


def score_ambignq(
    gold: GoldInput,
    predictions: PredictionInput,
    *,
    variant: metrics.Variant = "released",
    allow_missing: bool = False,
    name: str = "",
) -> Result:
    """Score `{id: [answer…]}` or `{id: [{question, answer}…]}` against AmbigNQ's questions."""
    golds = read_gold(gold, _read_official, Question)
    aligned = align(golds, predictions, _parse_prediction, allow_missing=allow_missing)
    has_questions = _check_questions(aligned, input_name(predictions, "predictions"))
    questions: dict[str, _Scores] = {}
    answers = 0
    for key, question in golds.items():
        prediction = aligned[key]
        answers += len(prediction.answers) if prediction else 0
        questions[key] = _score_question(question, prediction, variant, has_questions)
    multi = sum(scores["multi"] for scores in questions.values())
    values = _means(questions, has_questions)
    values["answers_per_question"] = answers / len(golds)
    return Result(
        dataset="ambignq",
        name=result_name(name, predictions),
        metrics=values,
        counts={"n": len(questions), "n_multi": multi},
        intervals=_intervals(questions, has_questions and multi > 0, multi > 0),
        questions=questions,
        settings={"variant": variant},
        notes=() if has_questions else (_NO_QUESTIONS,),
    )


def _read_official(source: Path | ParsedJson) -> Iterator[Question]:
    return read_ambignq(source, "", _FIX)


def _check_questions(
    predictions: Mapping[str, metrics.Prediction | None], where: str
) -> bool:
    """Whether the predictions have questions: all must, or none."""
    given = set()
    for prediction in predictions.values():
        if prediction:  # not a missing one
            given.add(bool(prediction.questions))
    if len(given) > 1:
        raise BadInput(
            f"'{where}': some predictions have questions and some do not. All must, or none."
        )
    return given.pop()


def _score_question(
    question: Question,
    prediction: metrics.Prediction | None,
    variant: metrics.Variant,
    has_questions: bool,
) -> _Scores:
    if not question.annotations:
        raise BadInput(
            f"Gold question '{question.id}' has no annotation to score against. Leave it out."
        )
    names = metrics.METRICS if has_questions else metrics.METRICS[:1]
    annotations = list(map(_convert_annotation, question.annotations))
    scores = dict.fromkeys(names, 0.0)
    if prediction:
        scores = metrics.score_question(question.text, annotations, prediction, variant)
    multi = question.is_ambiguous
    return {
        "f1_ans": scores["f1_ans"],
        "f1_ans_multi": scores["f1_ans"] if multi else None,
        **scores,
        "multi": multi,
        "question": question.text,
        "gold": _show_gold(annotations),
        "predicted": _show_prediction(prediction),
    }


def _show_gold(annotations: Sequence[metrics.Annotation]) -> list[str]:
    shown: dict[str, None] = {}  # distinct, in order
    for annotation in annotations:
        for aliases in annotation.answers:
            shown[" / ".join(aliases)] = None
    return list(shown)


def _show_prediction(prediction: metrics.Prediction | None) -> list[str]:
    if prediction is None:
        return []
    if not prediction.questions:
        return list(prediction.answers)
    shown = []
    for question, answer in zip(prediction.questions, prediction.answers, strict=True):
        shown.append(f"{question} → {answer}")
    return shown


def _means(
    questions: Mapping[str, _Scores], has_questions: bool
) -> dict[str, float | None]:
    every = list(questions.values())
    multi = [scores for scores in every if scores["multi"]]
    values: dict[str, float | None] = {
        "f1_ans": mean(column(every, "f1_ans")),
        "f1_ans_multi": mean(column(multi, "f1_ans")),
    }
    # The question metrics leave out questions with a single answer, as in the paper.
    for metric in metrics.QUESTION_METRICS:
        values[metric] = mean(column(multi, metric)) if has_questions else None
    # Comb., by which the AmbigQA leaderboard ranks systems (REFUEL).
    f1_ans, f1_edit = values["f1_ans"], values["f1_edit"]
    values["comb"] = None
    if f1_ans is not None and f1_edit is not None:
        values["comb"] = f1_ans + f1_edit
    return values


def _intervals(
    questions: Mapping[str, _Scores], with_pairs: bool, has_multi: bool
) -> dict[str, Interval]:
    rows = list(questions.values())
    columns: dict[str, list[float]] = {
        "n": [1.0] * len(rows),
        "n_multi": column(rows, "multi"),
        "f1_ans": column(rows, "f1_ans"),
    }
    statistics: dict[str, Statistic] = {"f1_ans": ratio_of("f1_ans", "n")}
    over_multi = ["f1_ans"]
    if with_pairs:
        over_multi += metrics.QUESTION_METRICS
    for metric in over_multi:
        # Over the questions of which no annotator gave a single answer; 0 elsewhere.
        name = "f1_ans_multi" if metric == "f1_ans" else metric
        columns[f"{metric} of multi"] = [row[metric] * row["multi"] for row in rows]
        if has_multi:
            statistics[name] = ratio_of(f"{metric} of multi", "n_multi")
    return bootstrap_intervals(columns, statistics)


def _convert_annotation(annotation: Annotation) -> metrics.Annotation:
    if annotation.is_single:
        return metrics.Annotation(annotation.answers)
    # The metric takes all wordings of a rewrite in one text, as the official file has them.
    questions = ["|".join(pair.questions) for pair in annotation.pairs]
    return metrics.Annotation(annotation.answers, tuple(questions))


def _parse_prediction(value: Any) -> metrics.Prediction:
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return metrics.Prediction(as_answers(value))
    answers = []
    questions = []
    for pair in value:
        if not _is_pair(pair):
            raise TypeError("Each pair needs a 'question' and an 'answer', both texts.")
        answers.append(pair["answer"])
        questions.append(pair["question"])
    return metrics.Prediction(tuple(answers), tuple(questions))


def _is_pair(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    question, answer = value.get("question"), value.get("answer")
    return isinstance(question, str) and isinstance(answer, str)
