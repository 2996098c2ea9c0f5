"""Settings: a TOML file becomes a frozen dataclass; a key that does not exist is an error that names it."""

from __future__ import annotations

import dataclasses
import os
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from whichsense.errors import BadConfig, did_you_mean
from whichsense.types import Method

Record = TypeVar("Record")
NAME = "whichsense.toml"


@dataclass(frozen=True, slots=True)
class RetrieveConfig:
    """Where evidence comes from. Without an index the embedded sample is searched."""

    index: str = ""
    method: Method | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that a `whichsense.toml` may say."""

    retrieve: RetrieveConfig = field(default_factory=RetrieveConfig)


def found() -> Config:
    """The settings of this folder: the file that WHICHSENSE_CONFIG names, or whichsense.toml, or the defaults."""
    named = os.environ.get("WHICHSENSE_CONFIG")
    if named:
        return load(named)
    return load(NAME) if Path(NAME).exists() else Config()


def load(path: str | Path) -> Config:
    """Read a TOML file, with errors that name the file, the key and the fix."""
    return load_as(Config, path)


def load_as(record: type[Record], path: str | Path) -> Record:
    """The same for any frozen dataclass: recipes and system files are read with it too."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadConfig(f"There is no file '{path}'. Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"'{path}' is not valid TOML: {error}") from None
    return from_table(record, table, where=str(path))


def from_table(
    record: type[Record], table: Mapping[str, Any], where: str = "config"
) -> Record:
    """Build a dataclass from a table, checking names and types all the way down.

    >>> from_table(Config, {"retrieve": {"method": "bm25"}}).retrieve.method
    'bm25'
    >>> from_table(Config, {"retrieve": {"metod": "bm25"}})
    Traceback (most recent call last):
    ...
    whichsense.errors.BadConfig: config: unknown key 'retrieve.metod'. Did you mean 'method'?
    """
    return typing.cast(Record, _build(record, table, where, ""))


def _build(record: Any, table: Mapping[str, Any], where: str, prefix: str) -> Any:
    hints = typing.get_type_hints(record)
    known = [item.name for item in dataclasses.fields(record)]
    for key in table:
        if key not in known:
            raise BadConfig(
                f"{where}: unknown key '{prefix}{key}'. {did_you_mean(key, known)}"
            )
    values = {
        key: _value(hints[key], value, where, f"{prefix}{key}")
        for key, value in table.items()
    }
    try:
        return record(**values)
    except TypeError:
        needed = [
            i.name
            for i in dataclasses.fields(record)
            if _is_required(i) and i.name not in values
        ]
        raise BadConfig(
            f"{where}: missing {', '.join(prefix + name for name in needed)}."
        ) from None


def _is_required(item: dataclasses.Field[Any]) -> bool:
    return (
        item.default is dataclasses.MISSING
        and item.default_factory is dataclasses.MISSING
    )


def _value(hint: Any, value: Any, where: str, key: str) -> Any:
    record = _record(hint)
    if record is not None:
        if not isinstance(value, Mapping):
            raise BadConfig(f"{where}: '{key}' must be a table, not {value!r}.")
        return _build(record, value, where, f"{key}.")
    inner = (
        _record(typing.get_args(hint)[0]) if typing.get_origin(hint) is tuple else None
    )
    if inner is not None and isinstance(value, list):  # [[key]], [[key]], …
        return tuple(
            _value(inner, item, where, f"{key}[{number}]")
            for number, item in enumerate(value)
        )
    if not _fits(hint, value):
        raise BadConfig(f"{where}: '{key}' must be {_name(hint)}, not {value!r}.")
    if typing.get_origin(hint) is tuple:
        return tuple(value)
    return float(value) if hint is float else value


def _record(hint: Any) -> Any:
    """The dataclass that a table is read into; None where the setting is no table. It may be optional."""
    options = (
        typing.get_args(hint)
        if typing.get_origin(hint) in (types.UnionType, typing.Union)
        else (hint,)
    )
    return next(
        (option for option in options if dataclasses.is_dataclass(option)), None
    )


def _fits(hint: Any, value: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(option, value) for option in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin in (tuple, list):
        return isinstance(value, list) and all(
            _fits(arguments[0], item) for item in value
        )
    if (
        isinstance(value, bool) and hint is not bool
    ):  # bool is an int to Python, not to a person
        return hint is Any
    accepted = {float: (int, float)}.get(hint, origin or hint)
    return hint is Any or isinstance(value, accepted)


def _name(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(hint)))
    return (
        getattr(hint, "__name__", str(hint))
        if typing.get_origin(hint) is None
        else str(hint)
    )
