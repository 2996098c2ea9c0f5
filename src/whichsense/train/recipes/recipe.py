"""Recipes: a short TOML file that says what is trained, on what, and how.

task = "reranker"                 # a name of whichsense.train.recipes.catalog
about = "…"
[train]                           # whichsense.train.loop.settings.Settings
[model] [data] …                  # the task's own tables: its Options
[before]                          # recipes to train first: whichsense.train.recipes.chain
[tiny.train] [tiny.model] …       # what `--tiny` changes: a minute on a CPU, over the embedded sample
include, [variants.NAME]          # what recipes share: whichsense.train.recipes.files
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whichsense.config import from_table
from whichsense.errors import BadConfig
from whichsense.train.loop.settings import Settings
from whichsense.train.loop.task import Task
from whichsense.train.recipes.catalog import task_spec
from whichsense.train.recipes.files import merge_tables, read_recipe_table


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

    def make(self) -> Task[Any, Any]:
        """The task, ready for the loop."""
        return task_spec(self.task).build(self.options)


def load_recipe(
    recipe: str | Path, changes: Sequence[str] = (), *, tiny: bool = False
) -> Recipe:
    """Read and check a recipe: a file, FILE.toml:VARIANT, or the name of a recipe that ships.

    `changes` are `table.key=value` as a command line gives them; `tiny` takes its tiny size.
    """
    source = read_recipe_table(recipe)
    table = source.table
    tiny_changes = table.pop("tiny", {})
    if tiny:
        if not tiny_changes:
            raise BadConfig(
                f"'{source.path}' has no [tiny] table, so it cannot be trained with --tiny."
            )
        merge_tables(table, tiny_changes)
    for change in changes:
        merge_tables(table, _parse_change(change))
    return _build_recipe(source.name, table, str(source.path))


def _build_recipe(name: str, table: dict[str, Any], where: str) -> Recipe:
    """Check the tables of a recipe; `where` is the file that errors name."""
    task_tables = dict(table)
    task = task_tables.pop("task", None)
    about = task_tables.pop("about", "")
    if not isinstance(task, str) or not isinstance(about, str):
        raise BadConfig(
            f"{where}: 'task' must name what is trained, and 'about' may say more."
        )
    # Nested under their own names, so that errors name keys in full: train.steps.
    train_table = {"train": task_tables.pop("train", {})}
    before_table = {"before": task_tables.pop("before", {})}
    settings = from_table(_Train, train_table, where).train
    before = from_table(_Before, before_table, where).before
    options = from_table(task_spec(task).options, task_tables, where)
    return Recipe(name, task, settings, options, table, before)


@dataclass(frozen=True, slots=True)
class _Before:
    before: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Train:
    train: Settings


def _parse_change(change: str) -> dict[str, Any]:
    """Turn `table.key=value` into a nested table. A value that is not valid TOML is a string.

    >>> _parse_change("train.steps=50"), _parse_change("model.base=my/bert")
    ({'train': {'steps': 50}}, {'model': {'base': 'my/bert'}})
    """
    key, equals, text = change.partition("=")
    names = [name.strip() for name in key.split(".")]
    if not equals or not all(names):
        raise BadConfig(
            f"'{change}' is not a setting: write --set table.key=value, for example train.steps=100."
        )
    value: Any
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    *tables, last = names
    nested: dict[str, Any] = {last: value}
    for table in reversed(tables):
        nested = {table: nested}
    return nested
