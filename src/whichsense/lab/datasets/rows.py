"""Rows of a dataset's file, and the checked parts that readers take from them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TypeGuard

from whichsense.errors import BadInput, DamagedData, require
from whichsense.files import plain_suffix, read_json, read_jsonl
from whichsense.lab.datasets.records import Annotation, AnnotationKind, QAPair, Record
from whichsense.types import frozen

# JSON objects of a dataset file, checked field by field: an error names file, record, field and fix.

# An object with these keys alone holds several splits.
_SPLITS = frozenset(("train", "dev", "test", "val", "validation"))
_TEXT = {str}  # types that a list of texts may have
_SHOWN = 60  # characters of a wrong value in an error message


class Row:
    """One JSON object and its place in the file.

    An accessor that takes several keys uses the first that is present: releases spell fields differently.
    """

    __slots__ = ("fix", "value", "where")

    def __init__(self, value: Any, where: str, fix: str) -> None:
        self.where = where
        self.fix = fix
        if not isinstance(value, dict):
            raise self.bad(f"an object was expected, not {_show(value)}")
        self.value = value

    def bad(self, problem: str) -> DamagedData:
        return DamagedData(f"{self.where}: {problem}. {self.fix}")

    def has(self, key: str) -> bool:
        return self.value.get(key) is not None

    def field(self, *keys: str) -> Any:
        """Return the value of the field, whatever its type."""
        value = self._first(keys)
        if value is None:
            raise self.bad(f"no field '{keys[0]}'")
        return value

    def text(self, *keys: str, default: str | None = None) -> str:
        value = self._first(keys)
        if value is None and default is not None:
            return default
        if _is_number(value):  # ids are numbers in some releases
            return str(value)
        if not isinstance(value, str):
            raise self._wrong(keys, value, "a text")
        return value

    def texts(self, *keys: str, optional: bool = False) -> tuple[str, ...]:
        value = self._first(keys)
        if value is None and optional:
            return ()
        if isinstance(value, str):  # a single text counts as a list of one
            return (value,)
        if not isinstance(value, list) or not _TEXT.issuperset(map(type, value)):
            raise self._wrong(keys, value, "a list of texts")
        return tuple(value)

    def text_lists(self, key: str) -> tuple[tuple[str, ...], ...]:
        return tuple(one.texts(key) for one in self._each(key, "a list of lists of texts"))

    def number(self, key: str) -> int:
        value = self.value.get(key)
        if not _is_number(value):
            raise self._wrong((key,), value, "a whole number")
        return value

    def numbers(self, key: str) -> tuple[int, ...]:
        values = self._list(key, "a list of whole numbers")
        if not all(_is_number(value) for value in values):
            raise self._wrong((key,), values, "a list of whole numbers")
        return tuple(values)

    def number_lists(self, key: str) -> tuple[tuple[int, ...], ...]:
        return tuple(
            one.numbers(key) for one in self._each(key, "a list of lists of whole numbers")
        )

    def choice(self, key: str, known: Sequence[str]) -> Any:
        """Read a text that must be one of a few."""
        text = self.text(key)
        if text not in known:
            raise self.bad(f"'{key}' must be one of {', '.join(known)}, not '{text}'")
        return text

    def flag(self, key: str) -> bool:
        value = self.value.get(key)
        if not isinstance(value, bool):
            raise self._wrong((key,), value, "true or false")
        return value

    def row(self, key: str) -> Row:
        return Row(self.field(key), f"{self.where}, {key}", self.fix)

    def rows(self, *keys: str, optional: bool = False) -> list[Row]:
        value = self._first(keys)
        if value is None and optional:
            return []
        if isinstance(value, dict):
            # Hugging Face turns a list of objects into an object of lists
            value = _transpose(value)
        if not isinstance(value, list):
            raise self._wrong(keys, value, "a list")
        # CondAmbigQA nests a list in some records.
        items = chain.from_iterable(item if isinstance(item, list) else [item] for item in value)
        return [
            Row(item, f"{self.where}, {keys[0]}[{number}]", self.fix)
            for number, item in enumerate(items)
        ]

    def _first(self, keys: tuple[str, ...]) -> Any:
        for key in keys:
            value = self.value.get(key)
            if value is not None:
                return value
        return None

    def _each(self, key: str, wanted: str) -> Iterator[Row]:
        for item in self._list(key, wanted):
            yield Row({key: item}, self.where, self.fix)

    def _list(self, key: str, wanted: str) -> list[Any]:
        value = self.field(key)
        if not isinstance(value, list):
            raise self._wrong((key,), value, wanted)
        return value

    def _wrong(self, keys: tuple[str, ...], value: Any, wanted: str) -> DamagedData:
        if value is None:
            return self.bad(f"no field '{keys[0]}'")
        return self.bad(f"'{keys[0]}' must be {wanted}, not {_show(value)}")


@frozen
class ParsedJson:
    """The parsed content of a JSON file: readers take it in place of the file's path."""

    value: Any
    name: str
    """The name in error messages."""

    def __str__(self) -> str:
        return self.name


def read_rows(source: Path | ParsedJson, fix: str, *inside: str, plain: str = "") -> Iterator[Row]:
    """Yield the objects of a file or of parsed JSON.

    JSON lines, a list, or a list under one of the keys `inside` (the first that is present). An object of objects
    counts as a list of them, each with its key as "id": ASQA's release has this form. With `plain`, an object of other
    values does too, and `plain` names the value: `{id: text}`.
    """
    if isinstance(source, Path) and plain_suffix(source) == ".jsonl":
        for number, item in _numbered_lines(source, fix):
            yield Row(item, f"'{source}', line {number}", fix)
        return
    value = _look_inside(_read_whole(source, fix), source, inside)
    if isinstance(value, dict):
        for key, item in value.items():
            yield Row(_add_id(key, item, plain), f"'{source}', record '{key}'", fix)
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield Row(item, f"'{source}', record {number}", fix)
    else:
        raise DamagedData(f"'{source}': a list of records was expected. {fix}")


@frozen
class Rows:
    """The objects of a file or of parsed JSON, read when they are iterated."""

    source: Path | ParsedJson
    fix: str
    """The advice in an error."""
    inside: str = ""
    """The split's key in a file that holds several."""

    def __iter__(self) -> Iterator[Row]:
        return read_rows(self.source, self.fix)

    def under(self, key: str) -> Iterator[Row]:
        return read_rows(self.source, self.fix, key)


def _look_inside(value: Any, source: Path | ParsedJson, inside: Sequence[str]) -> Any:
    """Return what is under the keys; raise `DamagedData` for an object with other splits."""
    for key in inside:
        if isinstance(value, dict) and key in value:
            value = value[key]
    if isinstance(value, dict) and inside and value and _SPLITS.issuperset(value):
        known = ", ".join(value)
        raise DamagedData(f"'{source}' has no '{inside[0]}'. It has: {known}.")
    return value


def _add_id(key: str, item: Any, plain: str) -> Any:
    if isinstance(item, dict):
        return {"id": key, **item}
    return {"id": key, plain: item} if plain else item


def _is_number(value: Any) -> TypeGuard[int]:
    """Tell whether it is a whole number; Python counts True as one, JSON does not."""
    return isinstance(value, int) and not isinstance(value, bool)


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) < _SHOWN else text[: _SHOWN - 3] + "…"


def _transpose(columns: dict[str, Any]) -> Any:
    """Turn an object of equally long lists into a list of objects; return anything else as it is."""
    lists = [column for column in columns.values() if isinstance(column, list)]
    lengths = set(map(len, lists))
    if len(lists) != len(columns) or len(lengths) > 1:
        return columns
    return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]


@contextmanager
def _add_fix(fix: str) -> Iterator[None]:
    """Report errors of the file as a whole together with the fix."""
    try:
        yield
    except BadInput as error:
        raise DamagedData(f"{error} {fix}") from None


def _numbered_lines(path: Path, fix: str) -> Iterator[tuple[int, Any]]:
    with _add_fix(fix):
        yield from read_jsonl(path)


def _read_whole(source: Path | ParsedJson, fix: str) -> Any:
    if isinstance(source, ParsedJson):
        return source.value
    with _add_fix(fix):
        if plain_suffix(source) == ".parquet":
            return _read_parquet(source)
        return read_json(source)


def _read_parquet(path: Path) -> Any:
    arrow = require("pyarrow", "documents")
    parquet = require("pyarrow.parquet", "documents")
    try:
        return parquet.read_table(path).to_pylist()
    except (arrow.ArrowException, OSError) as error:
        raise BadInput(
            f"'{path}' is not a Parquet file, or is broken: {str(error)[:200]}."
        ) from None


# What several readers need: ids for questions without one, and AmbigNQ's form of annotations.

Reader = Callable[[Rows], Iterator[Record]]


class IdMaker:
    """Ids for datasets without any: a hash of the text, so that they do not depend on the order of the records."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def from_text(self, text: str) -> str:
        digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        return self.make_unique(digest[:16])

    def make_unique(self, key: str) -> str:
        """Return the key itself the first time, then `key#2`, `key#3` …"""
        self._seen[key] += 1
        count = self._seen[key]
        return key if count == 1 else f"{key}#{count}"


def single_answer(answers: tuple[str, ...]) -> tuple[Annotation, ...]:
    """Return the annotations of a question with one answer; none where there is no answer."""
    return several_answers((QAPair(answers),) if answers else ())


def several_answers(pairs: tuple[QAPair, ...]) -> tuple[Annotation, ...]:
    """Return the annotations of a question with these answers, however many."""
    kind: AnnotationKind = "multipleQAs" if len(pairs) > 1 else "singleAnswer"
    return (Annotation(kind, pairs),) if pairs else ()


def split_references(question: str) -> tuple[str, ...]:
    """Return the wordings that AmbigNQ accepts for a rewrite.

    >>> split_references("Who sang it in 1990?|Who was the 1990 singer?")
    ('Who sang it in 1990?', 'Who was the 1990 singer?')
    """
    return tuple(filter(None, map(str.strip, question.split("|"))))


def parse_annotations(row: Row) -> tuple[Annotation, ...]:
    """Return the annotations of a row in AmbigNQ's form."""
    annotations = tuple(map(_parse_annotation, row.rows("annotations")))
    if not annotations:
        raise row.bad("'annotations' is empty")
    return annotations


def _parse_annotation(row: Row) -> Annotation:
    kind = row.text("type")
    if kind == "singleAnswer":
        answers = _required_texts(row, "answer")
        pair = QAPair(answers, evidence=row.texts("evidence", optional=True))
        return Annotation("singleAnswer", (pair,))
    if kind == "multipleQAs":
        pairs = tuple(map(_parse_pair, row.rows("qaPairs")))
        if not pairs:
            raise row.bad("'qaPairs' is empty")
        return Annotation("multipleQAs", pairs)
    raise row.bad(f"'type' must be 'singleAnswer' or 'multipleQAs', not '{kind}'")


def _parse_pair(row: Row) -> QAPair:
    question = row.text("question")
    answers = _required_texts(row, "answer")
    evidence = row.texts("evidence", optional=True)
    return QAPair(answers, split_references(question), evidence)


def _required_texts(row: Row, key: str) -> tuple[str, ...]:
    texts = row.texts(key)
    if not texts:
        raise row.bad(f"'{key}' is empty")
    return texts
