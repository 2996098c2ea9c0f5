"""The record of a run: recipe, command, commit, checksums and seed, written before the first step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from whichsense.errors import BadConfig
from whichsense.files import read_json, write_atomically
from whichsense.provenance import provenance
from whichsense.train.loop.settings import FREE, Settings

_FILE = "run.json"


def begin(
    folder: Path, settings: Settings, recipe: Mapping[str, Any], data: Sequence[Path]
) -> None:
    """Write the record, or check that the folder holds this same run. Every start is added to its list."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _FILE
    start = provenance(data, settings.seed)
    # What a resumed run must have in common with the one that began.
    binding = {
        "recipe": json.loads(json.dumps(_binding_tables(recipe))),
        "train": settings.binding,
        "data": start.pop("data"),
    }
    starts = []
    if path.exists():
        before = read_json(path)
        before["recipe"] = _binding_tables(before.get("recipe", {}))
        for part, value in binding.items():
            if before.get(part) != value:
                difference = _first_difference(before.get(part), value, part)
                raise BadConfig(
                    f"'{folder}' holds a run with another {difference}. "
                    "Take the same recipe to resume it, or another --out to begin anew."
                )
        starts = before["starts"]
    starts.append(start)
    body = json.dumps({**binding, "starts": starts}, indent=2, ensure_ascii=False)
    write_atomically(path, body + "\n")


def _binding_tables(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without its description, and without settings that do not change the weights."""
    tables = dict(recipe)
    tables.pop("about", None)
    if "train" in tables:
        tables["train"] = dict(tables["train"])
        for name in FREE:
            tables["train"].pop(name, None)
    return tables


def _first_difference(before: Any, now: Any, name: str) -> str:
    """The first setting that is not the same.

    >>> _first_difference({"seed": 1, "a": {"b": 1}}, {"seed": 1, "a": {"b": 2}}, "train")
    'train.a.b (1 before, now 2)'
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            if before.get(key) != now.get(key):
                return _first_difference(before.get(key), now.get(key), f"{name}.{key}")
    return f"{name} ({before!r} before, now {now!r})"
