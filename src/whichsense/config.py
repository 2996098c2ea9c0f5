"""Settings: a TOML file becomes a frozen dataclass; an unknown key is an error that names it."""

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

Settings = TypeVar("Settings")
_FILE = "whichsense.toml"


@dataclass(frozen=True, slots=True)
class RetrieveConfig:
    """Where evidence comes from. Without an index the embedded sample is searched; "handbook" is the other one."""

    index: str = ""
    method: Method | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a `whichsense.toml`."""

    retrieve: RetrieveConfig = field(default_factory=RetrieveConfig)
    serve: Mapping[str, Any] = field(default_factory=dict)
    """Options of `whichsense serve` by their names, without the dashes before them."""


def find_config() -> Config:
    """Load the file that WHICHSENSE_CONFIG names, or whichsense.toml in this folder, or else the defaults."""
    path = os.environ.get("WHICHSENSE_CONFIG")
    if path:
        return load_config(path)
    if Path(_FILE).exists():
        return load_config(_FILE)
    return Config()


def load_config(path: str | Path) -> Config:
    """Load a TOML file, with errors that name the file, the key and the fix."""
    return load_as(Config, path)


def load_as(record: type[Settings], path: str | Path) -> Settings:
    """Load a TOML file into any frozen dataclass, such as that of a recipe or a system file."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadConfig(f"There is no file '{path}'. Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"'{path}' is not valid TOML: {error}") from None
    return from_table(record, table, where=str(path))


def from_table(record: type[Settings], table: Mapping[str, Any], where: str = "config") -> Settings:
    """Build a dataclass from a table and check the names and types of all its keys.

    >>> from_table(Config, {"retrieve": {"method": "bm25"}}).retrieve.method
    'bm25'
    >>> from_table(Config, {"retrieve": {"metod": "bm25"}})
    Traceback (most recent call last):
    ...
    whichsense.errors.BadConfig: config: unknown key 'retrieve.metod'. Did you mean 'method'?
    """
    return typing.cast(Settings, _build(record, table, where, ""))


def _build(record: Any, table: Mapping[str, Any], where: str, prefix: str) -> Any:
    """Build one dataclass. `prefix` is the dotted path of its table, such as "retrieve."."""
    hints = typing.get_type_hints(record)
    names = [item.name for item in dataclasses.fields(record)]
    values = {}
    for key in table:
        if key not in names:
            raise BadConfig(f"{where}: unknown key '{prefix}{key}'. {did_you_mean(key, names)}")
    for key, value in table.items():
        values[key] = _value(hints[key], value, where, f"{prefix}{key}")
    try:
        return record(**values)
    except TypeError:
        missing = _missing_keys(record, values, prefix)
        raise BadConfig(f"{where}: missing {', '.join(missing)}.") from None


def _missing_keys(record: Any, values: Mapping[str, Any], prefix: str) -> list[str]:
    missing = []
    for item in dataclasses.fields(record):
        has_default = (
            item.default is not dataclasses.MISSING
            or item.default_factory is not dataclasses.MISSING
        )
        if not has_default and item.name not in values:
            missing.append(prefix + item.name)
    return missing


def _value(hint: Any, value: Any, where: str, key: str) -> Any:
    """Convert a TOML value to the type that its field has."""
    record = _dataclass_of(hint)
    if record is not None:
        if not isinstance(value, Mapping):
            raise BadConfig(f"{where}: '{key}' must be a table, not {value!r}.")
        return _build(record, value, where, f"{key}.")
    is_tuple = typing.get_origin(hint) is tuple
    item_record = _dataclass_of(typing.get_args(hint)[0]) if is_tuple else None
    if item_record is not None and isinstance(value, list):  # [[key]], [[key]], …
        items = [
            _value(item_record, item, where, f"{key}[{number}]")
            for number, item in enumerate(value)
        ]
        return tuple(items)
    if not _fits(hint, value):
        raise BadConfig(f"{where}: '{key}' must be {_name(hint)}, not {value!r}.")
    if is_tuple:
        return tuple(value)
    return float(value) if hint is float else value


def _dataclass_of(hint: Any) -> Any:
    """Return the dataclass that a table is read into, which may be optional; None where the setting is not a table."""
    options: tuple[Any, ...] = (hint,)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        options = typing.get_args(hint)
    for option in options:
        if dataclasses.is_dataclass(option):
            return option
    return None


_ALSO: dict[Any, Any] = {float: (int, float)}  # a number may be written as 1


def _fits(hint: Any, value: Any) -> bool:
    """Tell whether a TOML value has the type of a field."""
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(option, value) for option in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin in (tuple, list):
        is_list = isinstance(value, list)
        return is_list and all(_fits(arguments[0], item) for item in value)
    if hint is Any or isinstance(value, bool):  # an int to Python, not to a person
        return hint in (bool, Any)
    return isinstance(value, _ALSO.get(hint, origin or hint))


def _name(hint: Any) -> str:
    """Return a type as an error names it."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(hint)))
    if origin is None:
        return getattr(hint, "__name__", str(hint))
    return str(hint)
