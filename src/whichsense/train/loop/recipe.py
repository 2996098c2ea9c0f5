"""Recipes: a short TOML file that says what is trained, on what, and how.

task = "reranker"                 # a name of whichsense.train.catalog
about = "…"
[train]                           # whichsense.train.loop.settings.Settings
[model] [data] …                  # the task's own tables: its Options
[before]                          # recipes to train first: whichsense.train.loop.chain
[tiny.train] [tiny.model] …       # what `--tiny` changes: a minute on a CPU, over the embedded sample
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whichsense.config import from_table
from whichsense.errors import BadConfig, did_you_mean
from whichsense.train.catalog import task_module
from whichsense.train.loop.run import Task
from whichsense.train.loop.settings import Settings

_PACKAGE = Path(__file__).parents[2]
HOMES = (_PACKAGE / "recipes", _PACKAGE.parents[1] / "recipes")
"""Where recipes that ship lie: in an installed package, in a checkout."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe, read and checked. Nothing is loaded yet."""

    name: str
    task: str
    train: Settings
    options: Any
    table: Mapping[str, Any]
    """All of it as one table, with the changes made: what the run's record keeps."""
    before: Mapping[str, str] = field(default_factory=dict)
    """Settings that are the model folders of other recipes, and these recipes' names."""

    def make(self) -> Task:
        """The task, ready for the loop."""
        made: Task = task_module(self.task).make(self.options)
        return made


def load_recipe(
    path: str | Path, changes: Sequence[str] = (), *, tiny: bool = False
) -> Recipe:
    """Read a recipe: a file, or the name of one that ships.

    `changes` are `table.key=value` as a command line gives them; `tiny` takes its tiny size.
    """
    path = found(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"'{path}' is not valid TOML: {error}") from None
    small = table.pop("tiny", {})
    if tiny:
        if not small:
            raise BadConfig(
                f"'{path}' has no [tiny] table, so it cannot be trained with --tiny."
            )
        _merge(table, small)
    for change in changes:
        _merge(table, parsed_change(change))
    return _checked(table, path)


def found(path: str | Path) -> Path:
    """A recipe's file: the one given, or, by its name, one that ships with the package."""
    if Path(path).is_file():
        return Path(path)
    home = next((folder for folder in HOMES if folder.is_dir()), HOMES[0])
    shipped = {one.stem: one for one in home.glob("*.toml")}
    name = Path(path).name.removesuffix(".toml")
    if name in shipped:
        return shipped[name]
    raise BadConfig(f"There is no recipe '{path}'. {did_you_mean(name, shipped)}")


def _checked(table: dict[str, Any], path: Path) -> Recipe:
    rest = dict(table)
    task, about = rest.pop("task", None), rest.pop("about", "")
    if not isinstance(task, str) or not isinstance(about, str):
        raise BadConfig(
            f"{path}: 'task' must name what is trained, and 'about' may say more."
        )
    train = from_table(_Train, {"train": rest.pop("train", {})}, where=str(path)).train
    before = from_table(
        _Before, {"before": rest.pop("before", {})}, where=str(path)
    ).before
    options = from_table(task_module(task).Options, rest, where=str(path))
    return Recipe(path.stem, task, train, options, table, before)


@dataclass(frozen=True, slots=True)
class _Before:
    before: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Train:
    """The loop's settings under the name that the recipe gives them, so that errors name their keys in full."""

    train: Settings


def parsed_change(change: str) -> dict[str, Any]:
    """A change of one setting, as a nested table. What is not a TOML value is taken as a text.

    >>> parsed_change("train.steps=50"), parsed_change("model.base=my/bert")
    ({'train': {'steps': 50}}, {'model': {'base': 'my/bert'}})
    """
    key, equals, text = change.partition("=")
    names = [name.strip() for name in key.split(".")]
    if not equals or not all(names):
        raise BadConfig(
            f"'{change}' is no setting: write --set table.key=value, for example train.steps=100."
        )
    try:
        value: Any = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    for name in reversed(names):
        value = {name: value}
    found: dict[str, Any] = value
    return found


def _merge(table: dict[str, Any], changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(table.get(key), dict):
            _merge(table[key], value)
        else:
            table[key] = value
