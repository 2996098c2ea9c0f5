"""AmbigNQ: F1 over answers, and over answers with their questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from whichsense.datasets.readers import ambignq
from whichsense.datasets.records import Annotation
from whichsense.errors import BadInput
from whichsense.evaluation.scoring.inputs import (
    aligned,
    as_answers,
    by_id,
    read_predictions,
)
from whichsense.evaluation.scoring.result import (
    Interval,
    Result,
    intervals,
    mean,
    share,
)
from whichsense.metrics import ambignq as metrics

_FIX = "Is it AmbigNQ's file, light or full?"


def score_ambignq(
    gold: str | Path,
    predicted: str | Path,
    *,
    variant: metrics.Variant = "released",
    allow_missing: bool = False,
    name: str = "",
) -> Result:
    """Score a prediction file against a gold file, both in the official forms."""
    golds = by_id(((one.id, one) for one in ambignq(Path(gold), "", _FIX)), gold)
    predictions = aligned(
        golds,
        read_predictions(predicted),
        predicted,
        _prediction,
        allow_missing=allow_missing,
    )
    given = [one for one in predictions.values() if one]
    with_questions = bool(given[0].questions)
    if any(bool(one.questions) != with_questions for one in given):
        raise BadInput(
            f"'{predicted}': some predictions have questions and some do not. All must, or none."
        )
    names = metrics.METRICS if with_questions else metrics.METRICS[:1]
    questions = {}
    for key, one in golds.items():
        annotations = [_annotation(annotation) for annotation in one.annotations]
        scores = dict.fromkeys(names, 0.0)
        if prediction := predictions[key]:
            scores = metrics.score_question(one.text, annotations, prediction, variant)
        questions[key] = _shown(one.text, annotations, prediction, scores)
    notes = (
        ()
        if with_questions
        else ("The predictions hold no questions: BLEU and EDIT-F1 are left out.",)
    )
    answers = sum(len(one.answers) for one in predictions.values() if one)
    lengths = answers / max(len(predictions), 1)
    values = {**_means(questions, with_questions), "answers_per_question": lengths}
    multi = sum(one["multi"] for one in questions.values())
    counts = {"n": len(questions), "n_multi": multi}
    found = _intervals(questions, with_questions and multi > 0, multi > 0)
    label = name or Path(predicted).stem
    return Result(
        "ambignq", label, values, counts, found, questions, {"variant": variant}, notes
    )


def _means(
    questions: Mapping[str, Mapping[str, Any]], pairs: bool
) -> dict[str, float | None]:
    multi = [one for one in questions.values() if one["multi"]]
    values: dict[str, float | None] = {
        "f1_ans": mean([one["f1_ans"] for one in questions.values()]),
        "f1_ans_multi": mean([one["f1_ans"] for one in multi]),
    }
    for metric in metrics.QUESTION_METRICS:
        values[metric] = mean([one[metric] for one in multi]) if pairs else None
    answers, edit = values["f1_ans"], values["f1_edit"]
    values["comb"] = (
        answers + edit if answers is not None and edit is not None else None
    )
    return values


def _intervals(
    questions: Mapping[str, Mapping[str, Any]], pairs: bool, multi: bool
) -> dict[str, Interval]:
    columns = ("f1_ans", *(metrics.QUESTION_METRICS if pairs else ()))
    rows = [
        [
            1.0,
            float(one["multi"]),
            one["f1_ans"],
            *(one[metric] * one["multi"] for metric in columns),
        ]
        for one in questions.values()
    ]
    measures = {"f1_ans": share(2, 0)}
    if multi:
        measures["f1_ans_multi"] = share(3, 1)
        measures |= {metric: share(4 + i, 1) for i, metric in enumerate(columns[1:])}
    return intervals(rows, measures)


def _shown(
    question: str,
    annotations: Sequence[metrics.Annotation],
    prediction: metrics.Prediction | None,
    scores: Mapping[str, float],
) -> dict[str, Any]:
    multi = not any(one.single for one in annotations)
    predicted = [] if prediction is None else list(prediction.answers)
    if prediction and prediction.questions:
        predicted = [
            f"{q} → {a}"
            for q, a in zip(prediction.questions, prediction.answers, strict=True)
        ]
    gold = [" / ".join(names) for one in annotations for names in one.answers]
    return {
        "f1_ans": scores["f1_ans"],
        "f1_ans_multi": scores["f1_ans"] if multi else None,
        **scores,
        "multi": multi,
        "question": question,
        "gold": list(dict.fromkeys(gold)),
        "predicted": predicted,
    }


def _annotation(given: Annotation) -> metrics.Annotation:
    rewrites = (
        ()
        if given.is_single
        else tuple("|".join(pair.questions) for pair in given.pairs)
    )
    return metrics.Annotation(given.answers, rewrites)


def _prediction(value: Any) -> metrics.Prediction:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        if not all(isinstance(one, dict) and _is_pair(one) for one in value):
            raise TypeError("Each pair needs a 'question' and an 'answer', both texts.")
        pairs = cast("list[dict[str, str]]", value)
        return metrics.Prediction(
            tuple(one["answer"] for one in pairs),
            tuple(one["question"] for one in pairs),
        )
    return metrics.Prediction(as_answers(value))


def _is_pair(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("question"), str) and isinstance(
        value.get("answer"), str
    )
