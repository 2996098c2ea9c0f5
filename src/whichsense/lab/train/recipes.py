"""Recipes: TOML files that name a task, its options and the settings of the loop; tasks by name."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from whichsense.config import from_table
from whichsense.errors import BadConfig, did_you_mean
from whichsense.lab.train.loop import Settings
from whichsense.lab.train.task import Task, TaskSpec
from whichsense.types import frozen

# Recipe files: find one by path or name, and merge what it includes and which variant is asked for.
#
# include = "shared/compact.toml"   # a file whose tables lie under the recipe's own; the path is relative to this file
# [model] …
# [variants.reranker-small]         # another recipe, by its full name: the tables above, with these keys replaced
# about = "…" model = { base = "bert-base-cased" }
# tiny.model.longest = 64           # what `--tiny` changes can differ too
#
# `whichsense train reranker-small` finds the variant among the recipes that ship. A variant in
# another file is written FILE.toml:NAME.

_PACKAGE = Path(__file__).parents[2]
HOMES = (_PACKAGE / "recipes", _PACKAGE.parents[1] / "recipes")
"""Where the shipped recipes are: in an installed package, in a checkout."""


@frozen
class RecipeTable:
    """One recipe's tables with include and variant merged; [tiny] is still separate."""

    name: str
    path: Path
    table: dict[str, Any]


def read_recipe_table(recipe: str | Path) -> RecipeTable:
    """Read a recipe: a file, FILE.toml:VARIANT, or the name of a recipe or variant that ships."""
    path, variant = _locate(recipe)
    table = _read_toml(path)
    variants = _pop_variants(table, path)
    _apply_include(table, path)
    if not variant:
        return RecipeTable(path.stem, path, table)
    if variant not in variants:
        raise BadConfig(f"'{path}' has no variant '{variant}'. {did_you_mean(variant, variants)}")
    merge_tables(table, variants[variant])
    return RecipeTable(variant, path, table)


def shipped_recipes() -> list[str]:
    """Return the names of all recipes that ship, variants included."""
    return sorted(_shipped())


def merge_tables(table: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Put `changes` into `table` in place; tables are merged key by key, anything else is replaced.

    >>> table = {"train": {"steps": 9, "seed": 1}, "more": ["a"]}
    >>> merge_tables(table, {"train": {"steps": 2}, "more": []})
    >>> table
    {'train': {'steps': 2, 'seed': 1}, 'more': []}
    """
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(table.get(key), dict):
            merge_tables(table[key], value)
        else:
            table[key] = value


def _locate(recipe: str | Path) -> tuple[Path, str]:
    """Return the file of a recipe and the name of its variant, which is empty for the file's own recipe."""
    if Path(recipe).is_file():
        return Path(recipe), ""
    file, colon, variant = str(recipe).rpartition(":")
    if colon and Path(file).is_file():
        return Path(file), variant
    shipped = _shipped()
    name = Path(recipe).name.removesuffix(".toml")
    if name not in shipped:
        raise BadConfig(f"There is no recipe '{recipe}'. {did_you_mean(name, shipped)}")
    path = shipped[name]
    return path, "" if path.stem == name else name


def _shipped() -> dict[str, Path]:
    """Recipe name → the file that holds it."""
    home = next((folder for folder in HOMES if folder.is_dir()), HOMES[0])
    shipped = {}
    for path in home.glob("*.toml"):
        shipped[path.stem] = path
        for variant in _pop_variants(_read_toml(path), path):
            shipped[variant] = path
    return shipped


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"'{path}' is not valid TOML: {error}") from None


def _pop_variants(table: dict[str, Any], path: Path) -> dict[str, dict[str, Any]]:
    variants = table.pop("variants", {})
    if not isinstance(variants, dict):
        raise BadConfig(f"{path}: write variants as tables: [variants.NAME].")
    for name, changes in variants.items():
        if not isinstance(changes, dict):
            raise BadConfig(f"{path}: write variants as tables: [variants.{name}].")
    return variants


def _apply_include(table: dict[str, Any], path: Path) -> None:
    """Put the tables of the included file under the recipe's own."""
    include = table.pop("include", None)
    if include is None:
        return
    if not isinstance(include, str) or not (path.parent / include).is_file():
        raise BadConfig(
            f"{path}: 'include' must be the path of a TOML file, relative to this one, not {include!r}."
        )
    included = _read_toml(path.parent / include)
    for key in ("include", "variants"):
        if key in included:
            raise BadConfig(
                f"{path.parent / include}: '{key}' belongs in a recipe, not in a file that recipes include."
            )
    merge_tables(included, table)
    table.clear()
    table.update(included)


# Tasks by the name that a recipe gives. A module loads when a recipe asks for it.
#
# Each has a spec: the dataclass of the task's options, and what builds the task from them.

# name → module under whichsense.lab, and the name of its spec where that is not SPEC
TASKS = {
    "dual-encoder": "tasks.rankers:DUAL_ENCODER",
    "reranker": "tasks.rankers:RERANKER",
    "extractive-reader": "tasks.extractive:EXTRACTIVE_READER",
    "ambiguity-detector": "tasks.extractive:AMBIGUITY_DETECTOR",
    "answer-prediction": "tasks.generation:ANSWER_PREDICTION",
    "question-disambiguation": "tasks.generation:QUESTION_DISAMBIGUATION",
    "verification": "tasks.generation:VERIFICATION",
    "disambiguate-first": "tasks.generation:DISAMBIGUATE_FIRST",
    "clarification": "tasks.clarified:CLARIFIER",
    "clarified-reader": "tasks.clarified:OPTION_READER",
    "long-answer": "tasks.clarified:LONG_ANSWER",
    "static": "tasks.static_encoder:STATIC",
    "compact-teacher": "compact.teacher",
    "compact-encoder": "compact.encoder_task",
    "compact-writer": "compact.writer_task",
    "compact-verifier": "compact.verifier_task",
    "compact-support": "compact.support_task",
    "compact-tag": "compact.tag_task",
    "compact": "compact.final_task",
}


def task_spec(name: str) -> TaskSpec[Any]:
    """Load the spec of a task; an unknown name is an error that suggests one."""
    if name not in TASKS:
        raise BadConfig(f"No task named '{name}'. {did_you_mean(name, TASKS)}")
    module, _, spec_name = TASKS[name].partition(":")
    found = importlib.import_module(f"whichsense.lab.{module}")
    spec: TaskSpec[Any] = getattr(found, spec_name or "SPEC")
    return spec


# Recipes: a short TOML file that says what is trained, on what, and how.
#
# task = "reranker"                 # a name of whichsense.lab.train.recipes
# about = "…"
# [train]                           # whichsense.lab.train.loop.Settings
# [model] [data] …                  # the task's own tables: its Options
# [before]                          # recipes to train first: whichsense.lab.train.chain
# [tiny.train] [tiny.model] …       # what `--tiny` changes: a minute on a CPU, over the embedded sample
# include, [variants.NAME]          # what recipes share: whichsense.lab.train.recipes


@frozen
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
        """Return the task, ready for the loop."""
        return task_spec(self.task).build(self.options)


def load_recipe(recipe: str | Path, changes: Sequence[str] = (), *, tiny: bool = False) -> Recipe:
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
        raise BadConfig(f"{where}: 'task' must name what is trained, and 'about' may say more.")
    # Nested under their own names, so that errors name keys in full: train.steps.
    train_table = {"train": task_tables.pop("train", {})}
    before_table = {"before": task_tables.pop("before", {})}
    settings = from_table(_Train, train_table, where).train
    before = from_table(_Before, before_table, where).before
    options = from_table(task_spec(task).options, task_tables, where)
    return Recipe(name, task, settings, options, table, before)


@frozen
class _Before:
    before: dict[str, str]


@frozen
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
