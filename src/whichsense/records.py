"""Frozen dataclasses as JSON values and back: a record becomes an object with its fields' names.

Fields with `metadata={"json": False}` stay behind. `decode` checks names and types all
the way down, so that a line which was cut or edited is told and not believed.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from whichsense.errors import BadInput

Record = TypeVar("Record")


def encode(value: Any) -> Any:
    """JSON values of a record, or of a tuple or mapping of records."""
    if dataclasses.is_dataclass(value):
        fields = {}
        for name in _fields_of(type(value)):
            fields[name] = encode(getattr(value, name))
        return fields
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    return value


def decode(record: type[Record], value: Any, where: str = "") -> Record:
    """The record that `encode` wrote. Raises `BadInput` with the place of what is wrong."""
    hints = _fields_of(record)
    where = where or record.__name__
    if not isinstance(value, Mapping):
        raise BadInput(f"{where}: {value!r} is not a JSON object.")
    for name in hints:
        if name not in value:
            raise BadInput(f"{where}: the field '{name}' is missing.")
    for name in value:
        if name not in hints:
            raise BadInput(f"{where}: there is no field '{name}'.")
    fields = {}
    for name, hint in hints.items():
        fields[name] = _decode_field(hint, value[name], f"{where}.{name}")
    return record(**fields)


def _fields_of(record: Any) -> dict[str, Any]:
    """The types of a record's fields that are serialised, by their names."""
    fields: dict[str, Any] = _cached_fields_of(record)
    return fields


@cache
def _cached_fields_of(record: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(record)
    serialised = {}
    for field in dataclasses.fields(record):
        if field.metadata.get("json", True):
            serialised[field.name] = hints[field.name]
    return serialised


def _decode_field(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):  # only X | None occurs
        return None if value is None else _decode_field(arguments[0], value, where)
    if dataclasses.is_dataclass(hint):
        return decode(typing.cast("type[Any]", hint), value, where)
    if origin is tuple:
        _expect(isinstance(value, list), value, where, "a list")
        items = []
        for number, item in enumerate(value):
            items.append(_decode_field(arguments[0], item, f"{where}[{number}]"))
        return tuple(items)
    if origin is not None:  # Mapping[str, X]
        _expect(isinstance(value, Mapping), value, where, "a JSON object")
        pairs = {}
        for key, item in value.items():
            pairs[key] = _decode_field(arguments[1], item, f"{where}.{key}")
        return pairs
    _expect(_is_a(hint, value), value, where, hint.__name__)
    return value


def _is_a(kind: type[Any], value: Any) -> bool:
    """JSON may write a float as 1, and in Python True is an int, but neither is a mistake to pass over."""
    if kind is float:
        return type(value) in (int, float)
    return type(value) is kind


def _expect(fits: bool, value: Any, where: str, kind: str) -> None:
    if not fits:
        raise BadInput(f"{where}: {value!r} is not {kind}.")
