"""Recipe files: find one by path or name, and merge what it includes and which variant is asked for.

include = "shared/compact.toml"   # a file whose tables lie under the recipe's own; the path is relative to this file
[model] …
[variants.reranker-small]         # another recipe, by its full name: the tables above, with these keys replaced
about = "…"
model = { base = "bert-base-cased" }
tiny.model.longest = 64           # what `--tiny` changes can differ too

`whichsense train reranker-small` finds the variant among the recipes that ship. A variant in another file is written
FILE.toml:NAME.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense.errors import BadConfig, did_you_mean

_PACKAGE = Path(__file__).parents[2]
HOMES = (_PACKAGE / "recipes", _PACKAGE.parents[1] / "recipes")
"""Where the shipped recipes are: in an installed package, in a checkout."""


@dataclass(frozen=True, slots=True)
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
        raise BadConfig(
            f"'{path}' has no variant '{variant}'. {did_you_mean(variant, variants)}"
        )
    merge_tables(table, variants[variant])
    return RecipeTable(variant, path, table)


def shipped_recipes() -> list[str]:
    """The names of all recipes that ship, variants included."""
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
    """The file of a recipe and the name of its variant, which is empty for the file's own recipe."""
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
