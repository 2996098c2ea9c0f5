"""Read gold questions from files or objects, and reject what cannot be scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from whichsense.datasets import Question
from whichsense.datasets.rows import ParsedJson
from whichsense.errors import BadInput

_Record = TypeVar("_Record", bound=Question)

GoldInput = str | Path | Mapping[str, Any] | Iterable[Any]
"""A file in the official form, its parsed JSON, or a dataset's records."""

PredictionInput = str | Path | Mapping[str, Any] | Sequence[Any]
"""A file, a mapping {id: prediction}, a list of records with an id, or one case per gold question in their order."""

_SHOWN = 3  # ids named in an error message


def describe_ids(ids: Iterable[str]) -> str:
    """Name the first few of many ids, and say how many there are.

    >>> describe_ids(["a", "b", "c", "d", "e"])
    "5 ('a', 'b', 'c', …)"
    """
    names = list(ids)
    shown = ", ".join(map(repr, names[:_SHOWN]))
    more = ", …" if len(names) > _SHOWN else ""
    return f"{len(names)} ({shown}{more})"


def input_name(source: object, otherwise: str) -> str:
    """The path of a file, as messages show it; `otherwise` for objects."""
    return str(source) if isinstance(source, str | Path) else otherwise


def result_name(name: str, predictions: object) -> str:
    """The name of a result: the given one, or the prediction file's."""
    return name or Path(input_name(predictions, "predictions")).stem


def read_gold(
    gold: GoldInput,
    read: Callable[[Path | ParsedJson], Iterator[Question]],
    kind: type[_Record],
) -> dict[str, _Record]:
    """Gold questions by id. `read` reads the official form; records of the type `kind` are taken as they are."""
    questions = _gold_questions(gold, read)
    where = input_name(gold, "gold")
    table: dict[str, _Record] = {}
    repeated = []
    for question in questions:
        if not isinstance(question, kind):
            name = type(question).__name__
            raise BadInput(
                f"'{where}' must hold {kind.__name__} records, not {name}. Is it the right dataset?"
            )
        if question.id in table:
            repeated.append(question.id)
        table[question.id] = question
    if repeated:
        raise BadInput(
            f"'{where}': ids that occur more than once: {describe_ids(repeated)}. Each question needs its own."
        )
    if not table:
        raise BadInput(
            f"'{where}' holds no questions: a list of records, or an object keyed by id, is needed."
        )
    return table


def _gold_questions(
    gold: GoldInput, read: Callable[[Path | ParsedJson], Iterator[Question]]
) -> Iterable[Question]:
    if isinstance(gold, str | Path):
        return read(Path(gold))
    if isinstance(gold, Mapping):
        return read(ParsedJson(gold, "gold"))
    items = list(gold)
    if items and isinstance(items[0], Question):  # a dataset's records
        return items
    return read(ParsedJson(items, "gold"))
