"""Read predictions from files or objects, and give each gold question its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from whichsense.errors import BadInput
from whichsense.evaluation.scoring.inputs import (
    PredictionInput,
    describe_ids,
    input_name,
)
from whichsense.files import read_json

_Value = TypeVar("_Value")

_PREDICTION_KEYS = (
    "prediction",
    "predictions",
    "answers",
    "answer",
    "text",
    "clarification_question",
)
_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    type(None): "null",
}


def read_predictions(
    predictions: PredictionInput,
    gold_ids: Sequence[str] = (),
    *,
    answers_only: bool = False,
) -> dict[str, Any]:
    """Predictions by id, in the official JSON form.

    A file or object is a mapping, or a list or JSON lines of objects with `id` and `prediction`. A list of cases
    follows the order of `gold_ids`; with `answers_only` (NQ's form) so does a list of answers. Cases and readings
    become question-answer pairs, with `answers_only` answers.
    """
    where = input_name(predictions, "predictions")
    body: Any = predictions
    if isinstance(predictions, str | Path):
        body = read_json(predictions)
    if isinstance(body, Mapping):
        # JSON has texts for keys; a mapping from Python may have numbers.
        table = {str(key): value for key, value in body.items()}
    elif not isinstance(body, list | tuple):
        raise BadInput(
            f"'{where}' must hold an object of the form {{id: prediction}}, not {_kind(body)}."
        )
    elif _follows_gold(body, answers_only):
        table = _match_by_position(body, gold_ids, where)
    else:
        table = _table_of_records(body, where)
    if isinstance(predictions, str | Path):  # JSON already
        return table
    return {key: _as_json(value, answers_only) for key, value in table.items()}


def _follows_gold(body: Sequence[Any], answers_only: bool) -> bool:
    """Whether a list has one prediction per gold question, in their order."""
    if not body or any(isinstance(item, dict) for item in body):
        return False
    return answers_only or hasattr(body[0], "readings")


def _as_json(prediction: Any, answers_only: bool) -> Any:
    """The official form of a case (anything with `readings`) or of a list of readings; JSON stays as it is."""
    readings = getattr(prediction, "readings", prediction)
    if not isinstance(readings, list | tuple):
        return prediction
    converted: list[Any] = []
    for reading in readings:
        if not hasattr(reading, "answer"):
            converted.append(reading)
        elif answers_only:
            converted.append(reading.answer)
        else:
            converted.append({"question": reading.question, "answer": reading.answer})
    return converted


def _table_of_records(body: Sequence[Any], where: str) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for number, record in enumerate(body, 1):
        for key, value in _entries(record, where, number):
            if key in table:
                raise BadInput(
                    f"'{where}', record {number}: id '{key}' occurs a second time."
                )
            table[key] = value
    return table


def _match_by_position(
    values: Sequence[Any], gold_ids: Sequence[str], where: str
) -> dict[str, Any]:
    if len(values) != len(gold_ids):
        raise BadInput(
            f"'{where}' holds {len(values)} predictions for {len(gold_ids)} questions."
        )
    return dict(zip(gold_ids, values, strict=True))


def _entries(record: Any, where: str, number: int) -> list[tuple[str, Any]]:
    """The ids and predictions of one record."""
    if not isinstance(record, dict):
        raise BadInput(
            f"'{where}', record {number}: an object with 'id' and 'prediction' is needed, not {_kind(record)}."
        )
    identity = record.get("id", record.get("sample_id"))
    if identity is None and "question" not in record:
        # {id: prediction} on each line
        return [(str(key), value) for key, value in record.items()]
    if identity is None:  # datasets without ids go by the question
        identity = record["question"]
    for key in _PREDICTION_KEYS:
        if key in record:
            return [(str(identity), record[key])]
    fields = ", ".join(record)
    raise BadInput(f"'{where}', record {number}: no 'prediction'. It has: {fields}.")


def _is_empty_list(value: Any) -> bool:
    """Whether a prediction is an empty list."""
    return isinstance(value, list) and not value


def align(
    gold: Mapping[str, Any],
    predictions: PredictionInput,
    check: Callable[[Any], _Value],
    *,
    allow_missing: bool,
    answers_only: bool = False,
    is_empty: Callable[[Any], bool] = _is_empty_list,
) -> dict[str, _Value | None]:
    """Give each gold id its prediction, converted by `check`; None where it is missing or empty and that is allowed."""
    where = input_name(predictions, "predictions")
    table = read_predictions(predictions, list(gold), answers_only=answers_only)
    unknown = [key for key in table if key not in gold]
    if unknown:
        raise BadInput(
            f"'{where}': ids that are not in the gold file: {describe_ids(unknown)}. Is it the right gold file?"
        )
    missing = []
    empty = []
    for key in gold:
        if key not in table:
            missing.append(key)
        elif is_empty(table[key]):
            empty.append(key)
    if not allow_missing:
        _reject_gaps(where, missing, empty)
    absent = {*missing, *empty}  # scored as zero
    checked = _check_all(gold, table, where, check, absent)
    if len(absent) == len(gold):
        raise BadInput(
            f"'{where}': not one of the {len(gold)} questions has a prediction."
        )
    return checked


def _reject_gaps(where: str, missing: Sequence[str], empty: Sequence[str]) -> None:
    advice = "Add --allow-missing (in Python allow_missing=True) to score them as zero."
    if missing:
        raise BadInput(f"'{where}': missing ids: {describe_ids(missing)}. {advice}")
    if empty:
        raise BadInput(f"'{where}': empty predictions: {describe_ids(empty)}. {advice}")


def _check_all(
    gold: Mapping[str, Any],
    predictions: Mapping[str, Any],
    where: str,
    check: Callable[[Any], _Value],
    absent: set[str],
) -> dict[str, _Value | None]:
    checked: dict[str, _Value | None] = {}
    problems: dict[str, str] = {}
    for key in gold:
        checked[key] = None
        if key in absent:
            continue
        try:
            checked[key] = check(predictions[key])
        except TypeError as error:  # collected, so that the message counts them
            problems[key] = str(error)
    if problems:
        first = next(iter(problems.values()))
        raise BadInput(f"'{where}': wrong type: {describe_ids(problems)}. {first}")
    return checked


def _kind(value: Any) -> str:
    """The JSON type of a value, for messages."""
    return _KINDS.get(type(value), "a number")


def as_text(value: Any) -> str:
    """Check a prediction that is one text."""
    if not isinstance(value, str):
        raise TypeError(f"A text is needed, not {_kind(value)}.")
    return value


def as_answers(value: Any) -> tuple[str, ...]:
    """Check a prediction that is one answer or several."""
    answers = [value] if isinstance(value, str) else value
    problem = f"An answer or a list of answers is needed, not {_kind(value)} of something else."
    if not isinstance(answers, list):
        raise TypeError(problem)
    for answer in answers:
        if not isinstance(answer, str):
            raise TypeError(problem)
    return tuple(answers)
