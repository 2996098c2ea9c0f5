"""Records as their files hold them, checked field by field: an error names file, record, field and fix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense.datasets.faults import DamagedData
from whichsense.errors import BadInput, require
from whichsense.files import plain_suffix, read_json, read_jsonl


class Row:
    """One JSON object, and where it stands."""

    __slots__ = ("fix", "value", "where")

    def __init__(self, value: Any, where: str, fix: str) -> None:
        self.where, self.fix = where, fix
        if not isinstance(value, dict):
            raise self.bad(f"an object was expected, not {_named(value)}")
        self.value = value

    def bad(self, problem: str) -> DamagedData:
        return DamagedData(f"{self.where}: {problem}. {self.fix}")

    def has(self, key: str) -> bool:
        return self.value.get(key) is not None

    def field(self, *keys: str) -> Any:
        """The first of several names that is there: releases differ in how they spell a field."""
        value = self._first(keys)
        if value is None:
            raise self.bad(f"no field '{keys[0]}'")
        return value

    def _first(self, keys: tuple[str, ...]) -> Any:
        for key in keys:
            if (value := self.value.get(key)) is not None:
                return value
        return None

    def text(self, *keys: str, default: str | None = None) -> str:
        value = self._first(keys)
        if value is None and default is not None:
            return default
        if isinstance(value, int) and not isinstance(
            value, bool
        ):  # ids are numbers in some releases
            return str(value)
        if not isinstance(value, str):
            raise self._wrong(keys, value, "a text")
        return value

    def texts(self, *keys: str, optional: bool = False) -> tuple[str, ...]:
        value = self._first(keys)
        if value is None and optional:
            return ()
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or not _TEXT.issuperset(map(type, value)):
            raise self._wrong(keys, value, "a list of texts")
        return tuple(value)

    def rows(self, *keys: str, optional: bool = False) -> list[Row]:
        value = self._first(keys)
        if value is None and optional:
            return []
        if isinstance(
            value, dict
        ):  # Hugging Face turns a list of objects into an object of lists
            value = _transposed(value)
        if not isinstance(value, list):
            raise self._wrong(keys, value, "a list")
        flat = [
            part
            for item in value
            for part in (item if isinstance(item, list) else [item])
        ]
        return [
            Row(item, f"{self.where}, {keys[0]}[{number}]", self.fix)
            for number, item in enumerate(flat)
        ]

    def _wrong(self, keys: tuple[str, ...], value: Any, wanted: str) -> DamagedData:
        if value is None:
            return self.bad(f"no field '{keys[0]}'")
        return self.bad(f"'{keys[0]}' must be {wanted}, not {_named(value)}")

    def row(self, key: str) -> Row:
        return Row(self.field(key), f"{self.where}, {key}", self.fix)


_TEXT = {str}


def _named(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    return shown if len(shown) < 60 else shown[:57] + "…"


def _transposed(columns: dict[str, Any]) -> Any:
    lists = [column for column in columns.values() if isinstance(column, list)]
    if len(lists) != len(columns) or len({len(column) for column in lists}) > 1:
        return columns
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)
    ]


@contextmanager
def _damage(fix: str) -> Iterator[None]:
    """What is wrong with the file as such, told with what to do about it."""
    try:
        yield
    except BadInput as error:
        raise DamagedData(f"{error} {fix}") from None


def json_lines(path: Path, fix: str) -> Iterator[Row]:
    """The objects of a JSON-lines file with their line numbers, read as they are asked for."""
    for number, value in _numbered(path, fix):
        yield Row(value, f"'{path}', line {number}", fix)


def _numbered(path: Path, fix: str) -> Iterator[tuple[int, Any]]:
    with _damage(fix):
        yield from read_jsonl(path)


def _whole(path: Path, fix: str) -> Any:
    with _damage(fix):
        return _table(path) if plain_suffix(path) == ".parquet" else read_json(path)


def _table(path: Path) -> Any:
    arrow, parquet = (
        require("pyarrow", "documents"),
        require("pyarrow.parquet", "documents"),
    )
    try:
        return parquet.read_table(path).to_pylist()
    except (arrow.ArrowException, OSError) as error:
        raise BadInput(
            f"'{path}' is not a Parquet file, or is broken: {str(error)[:200]}."
        ) from None


@dataclass(frozen=True, slots=True)
class ParsedJson:
    """The parsed content of a JSON file: readers take it in place of the file's path."""

    value: Any
    name: str
    """What error messages call it."""

    def __str__(self) -> str:
        return self.name


_SPLITS = frozenset(("train", "dev", "test", "val", "validation"))


def records(
    path: Path | ParsedJson, fix: str, *inside: str, plain: str = ""
) -> Iterator[Row]:
    """The objects of a file or of parsed JSON.

    JSON lines, a list, or a list under one of the keys `inside` (the first one there).

    An object of objects counts as a list of them, each with its key as "id": ASQA is released so. With `plain`, an
    object of anything else does too, with that as the name of the value: `{id: text}`.
    """
    if isinstance(path, ParsedJson):
        value = path.value
    elif plain_suffix(path) == ".jsonl":
        yield from json_lines(path, fix)
        return
    else:
        value = _whole(path, fix)
    for key in inside:
        if isinstance(value, dict) and key in value:
            value = value[key]
    if isinstance(value, dict):
        if inside and value and _SPLITS.issuperset(value):
            raise DamagedData(
                f"'{path}' has no '{inside[0]}'. It has: {', '.join(value)}."
            )
        for key, item in value.items():
            named = {plain: item} if plain and not isinstance(item, dict) else item
            found = {"id": key, **named} if isinstance(named, dict) else named
            yield Row(found, f"'{path}', record '{key}'", fix)
    elif isinstance(value, list):
        yield from (
            Row(item, f"'{path}', record {number}", fix)
            for number, item in enumerate(value, 1)
        )
    else:
        raise DamagedData(f"'{path}': a list of records was expected. {fix}")
