"""Reading gold and prediction files, and saying exactly what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from whichsense.errors import BadInput
from whichsense.files import read_json

Value = TypeVar("Value")

_SHOWN = 3
_PREDICTION_KEYS = (
    "prediction",
    "predictions",
    "answers",
    "answer",
    "text",
    "clarification_question",
)


def named(ids: Iterable[str]) -> str:
    """The first few of many ids, and how many there are.

    >>> named(["a", "b", "c", "d", "e"])
    "5 ('a', 'b', 'c', …)"
    """
    found = list(ids)
    more = ", …" if len(found) > _SHOWN else ""
    return f"{len(found)} ({', '.join(repr(one) for one in found[:_SHOWN])}{more})"


def by_id(golds: Iterable[tuple[str, Value]], where: str | Path) -> dict[str, Value]:
    """Gold questions by their id; an id that stands there twice, or a file without any, is an error."""
    table: dict[str, Value] = {}
    twice = []
    for key, value in golds:
        twice += [key] if key in table else []
        table[key] = value
    if twice:
        raise BadInput(
            f"'{where}': ids that stand there more than once: {named(twice)}. Each question needs its own."
        )
    if not table:
        raise BadInput(
            f"'{where}' holds no questions: a list of records, or an object keyed by id, is needed."
        )
    return table


def read_predictions(path: str | Path, gold: Sequence[str] = ()) -> dict[str, Any]:
    """Predictions by id: an object, or a list or JSON lines of objects with `id` and `prediction`.

    With `gold`, a plain list of as many predictions as there are gold ids is matched by position.
    """
    body = read_json(path)
    if isinstance(body, dict):
        return {str(key): value for key, value in body.items()}
    if not isinstance(body, list):
        raise BadInput(
            f"'{path}' must hold an object of the form {{id: prediction}}, not {_kind(body)}."
        )
    if gold and body and not any(isinstance(one, dict) for one in body):
        if len(body) != len(gold):
            raise BadInput(
                f"'{path}' holds {len(body)} predictions for {len(gold)} questions."
            )
        return dict(zip(gold, body, strict=True))
    table: dict[str, Any] = {}
    for number, record in enumerate(body, 1):
        for key, value in _entries(record, path, number):
            if key in table:
                raise BadInput(
                    f"'{path}', record {number}: id '{key}' stands there twice."
                )
            table[key] = value
    return table


def _entries(record: Any, path: str | Path, number: int) -> list[tuple[str, Any]]:
    if not isinstance(record, dict):
        raise BadInput(
            f"'{path}', record {number}: an object with 'id' and 'prediction' is needed, not {_kind(record)}."
        )
    identity = next((record[key] for key in ("id", "sample_id") if key in record), None)
    if identity is None and "question" not in record:  # {id: prediction} on each line
        return [(str(key), value) for key, value in record.items()]
    found = next((key for key in _PREDICTION_KEYS if key in record), None)
    if found is None:
        raise BadInput(
            f"'{path}', record {number}: no 'prediction'. It has: {', '.join(record)}."
        )
    return [(str(record["question"] if identity is None else identity), record[found])]


def aligned(
    gold: Mapping[str, Any],
    predictions: Mapping[str, Any],
    where: str | Path,
    check: Callable[[Any], Value],
    *,
    allow_missing: bool,
    empty: Callable[[Any], bool] = lambda value: value == [],
) -> dict[str, Value | None]:
    """Each gold id with its checked prediction; None where it is missing or empty and that is allowed."""
    missing = [key for key in gold if key not in predictions]
    extra = [key for key in predictions if key not in gold]
    if extra:
        raise BadInput(
            f"'{where}': ids that are not in the gold file: {named(extra)}. Is it the right gold file?"
        )
    hollow = [key for key in gold if key in predictions and empty(predictions[key])]
    if not allow_missing:
        for problem, ids in (("missing ids", missing), ("empty predictions", hollow)):
            if ids:
                raise BadInput(
                    f"'{where}': {problem}: {named(ids)}. Add --allow-missing to score them as zero."
                )
    absent, wrong = {*missing, *hollow}, {}
    checked: dict[str, Value | None] = {}
    for key in gold:
        try:
            checked[key] = None if key in absent else check(predictions[key])
        except TypeError as error:
            wrong[key] = str(error)
    if wrong:
        raise BadInput(
            f"'{where}': wrong type: {named(wrong)}. {next(iter(wrong.values()))}"
        )
    if len(absent) == len(gold):
        raise BadInput(
            f"'{where}': not one of the {len(gold)} questions has a prediction."
        )
    return checked


def _kind(value: Any) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), "a number")


def as_text(value: Any) -> str:
    """A prediction that is one text."""
    if not isinstance(value, str):
        raise TypeError(f"A text is needed, not {_kind(value)}.")
    return value


def as_answers(value: Any) -> tuple[str, ...]:
    """A prediction that is one answer or several."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise TypeError(
            f"An answer or a list of answers is needed, not {_kind(value)} of something else."
        )
    return tuple(values)
