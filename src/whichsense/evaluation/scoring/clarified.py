"""CAmbigNQ's clarification-based QA: an answer for each option, end to end, and beside answering without asking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from whichsense.datasets import ClarifiedQuestion, Question
from whichsense.datasets.rows import ParsedJson, Row, read_rows
from whichsense.errors import BadInput
from whichsense.evaluation.scoring.inputs import (
    GoldInput,
    PredictionInput,
    read_gold,
    result_name,
)
from whichsense.evaluation.scoring.overlaps import (
    overlap_columns,
    overlap_metrics,
    overlap_statistics,
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
from whichsense.metrics.answers import normal_form
from whichsense.metrics.cambignq import (
    Overlap,
    answer_overlap,
    distinct_answers,
    distinct_answers_released,
    ratio,
)

_Variant = Literal["released", "paper"]

_FIX = "Is it CAmbigNQ's file, with 'clarification_answers'?"
# The answers that are compared with the gold ones, in four ways.
_GROUPS = ("answer", "end_to_end", "served", "direct")
_PER_QUESTION = ("options", "distinct_answers", "words_per_answer")
_Scores = dict[str, Any]  # one question's scores, and what the report shows of it


@dataclass(frozen=True, slots=True)
class _Prediction:
    """What a system says of one question."""

    options: tuple[str, ...] = ()
    """The answer of each option, empty where none was found."""
    direct: tuple[str, ...] = ()
    """The answers that it would give without asking."""
    asks: bool = False
    """Whether it would ask at all."""


def score_clarified(
    gold: GoldInput,
    predictions: PredictionInput,
    *,
    variant: _Variant = "released",
    allow_missing: bool = False,
    name: str = "",
) -> Result:
    """Score the answers of a clarification question's options against CAmbigNQ's records.

    A prediction is `{"options": [{"option", "answer"}…], "answers": [answer…], "asked": true}`, or a list with one
    answer for each option. Questions whose options have no known answers are left out.
    """
    every = read_gold(gold, _read_official, ClarifiedQuestion)
    aligned = align(every, predictions, _as_prediction, allow_missing=allow_missing)
    golds = {key: one for key, one in every.items() if one.clarified_answers}
    if not golds:
        raise BadInput("No question has answers for the options of its clarification.")
    overlaps: dict[str, list[Overlap]] = {group: [] for group in _GROUPS}
    questions: dict[str, _Scores] = {}
    options = []
    for key, question in golds.items():
        prediction = aligned[key] or _Prediction()
        options.append(prediction.options)
        own = _overlaps(question, prediction, variant)
        for group, overlap in own.items():
            overlaps[group].append(overlap)
        questions[key] = _score_question(question, prediction, own)
    rows = list(questions.values())
    left_out = len(every) - len(golds)
    notes = [f"Left out, without known answers: {left_out}."] if left_out else []
    return Result(
        dataset="cambignq-answers",
        name=result_name(name, predictions),
        metrics=_metrics(rows, overlaps, options),
        counts={"n": len(rows)},
        intervals=_intervals(rows, overlaps),
        questions=questions,
        settings={"variant": variant},
        notes=notes,
    )


def _as_prediction(value: Any) -> _Prediction:
    if isinstance(value, list):
        return _Prediction(as_answers(value), asks=len(value) > 1)
    if not isinstance(value, Mapping) or not isinstance(value.get("options"), list):
        raise TypeError("An object with 'options', or a list of answers, is needed.")
    options = []
    for option in value["options"]:
        if not isinstance(option, Mapping) or "answer" not in option:
            raise TypeError("Each of 'options' needs an 'answer'.")
        options.append(option["answer"])
    return _Prediction(
        as_answers(options),
        as_answers(value.get("answers", [])),
        bool(value.get("asked", len(options) > 1)),
    )


def _overlaps(
    question: ClarifiedQuestion, prediction: _Prediction, variant: _Variant
) -> dict[str, Overlap]:
    """The question's overlap in each of the four ways."""
    options = prediction.options
    compared = {
        "answer": options,
        # Who is not asked chooses no option.
        "end_to_end": options if prediction.asks else (),
        # … and is told all answers at once.
        "served": options if prediction.asks and options else prediction.direct,
        "direct": prediction.direct,
    }
    one_assignment = variant == "paper"
    overlaps = {}
    for group, answers in compared.items():
        overlaps[group] = answer_overlap(
            question.clarified_answers, answers, one_assignment
        )
    return overlaps


def _score_question(
    question: ClarifiedQuestion, prediction: _Prediction, overlaps: dict[str, Overlap]
) -> _Scores:
    scores: _Scores = {}
    for group, overlap in overlaps.items():
        scores[f"{group}_f1"] = ratio([overlap]).f1
    answers = prediction.options
    hits = _included(question.clarified_answers, answers)
    lengths = [len(answer.split()) for answer in answers]
    return scores | {
        "included": sum(hits),
        "included_of": len(question.clarified_answers),
        "options": len(answers),
        "distinct_answers": distinct_answers(answers),
        "words_per_answer": mean(lengths) or 0.0,
        "asked": float(prediction.asks and bool(answers)),
        "question": question.text,
        "gold": [" / ".join(aliases) for aliases in question.clarified_answers],
        "predicted": list(answers),
    }


def _included(gold: Sequence[Sequence[str]], answers: Sequence[str]) -> list[bool]:
    """Appendix E's accuracy: whether an option's answer holds a name of its own gold answer, option by option."""
    hits = []
    for aliases, answer in zip(gold, answers, strict=False):
        text = normal_form(answer)
        hits.append(any(normal_form(alias) in text for alias in aliases))
    return hits


def _metrics(
    rows: Sequence[_Scores],
    overlaps: Mapping[str, Sequence[Overlap]],
    options: Sequence[Sequence[str]],
) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for group in _GROUPS:
        values |= overlap_metrics(group, overlaps[group])
    total = sum(column(rows, "included_of"))
    values["accuracy"] = sum(column(rows, "included")) / total
    values["asked"] = mean(column(rows, "asked"))
    for name in _PER_QUESTION:
        values[name] = mean(column(rows, name))
    values["distinct_answers_released"] = distinct_answers_released(options)
    return values


def _intervals(
    rows: Sequence[_Scores], overlaps: Mapping[str, Sequence[Overlap]]
) -> dict[str, Interval]:
    columns: dict[str, Sequence[float]] = {"n": [1.0] * len(rows)}
    statistics: dict[str, Statistic] = {"accuracy": ratio_of("included", "included_of")}
    for group in _GROUPS:
        columns |= overlap_columns(group, overlaps[group])
        statistics |= overlap_statistics(group)
    for name in (*_PER_QUESTION, "asked", "included", "included_of"):
        columns[name] = column(rows, name)
    for name in (*_PER_QUESTION, "asked"):
        statistics[name] = ratio_of(name, "n")
    return bootstrap_intervals(columns, statistics)


def _read_official(source: Path | ParsedJson) -> Iterator[Question]:
    for row in read_rows(source, _FIX):
        yield ClarifiedQuestion(
            row.text("id"),
            row.text("question"),
            clarification=row.text("clarification_question"),
            clarified_answers=_gold_answers(row),
        )


def _gold_answers(row: Row) -> tuple[tuple[str, ...], ...]:
    """The aliases of each option's answer: a list of lists, or of objects with `answer`."""
    value = row.value.get("clarification_answers")
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return tuple(item.texts("answer") for item in row.rows("clarification_answers"))
    return row.text_lists("clarification_answers")
