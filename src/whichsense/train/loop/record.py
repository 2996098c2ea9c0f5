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

NAME = "run.json"


def begin(
    folder: Path, settings: Settings, recipe: Mapping[str, Any], data: Sequence[Path]
) -> None:
    """Write the record, or check that the run which is there is this one. Every start is added to its list."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    now = provenance(data, settings.seed)
    bound = {
        "recipe": json.loads(json.dumps(_binding(recipe))),
        "train": settings.binding,
        "data": now["data"],
    }
    starts = []
    if path.exists():
        found = read_json(path)
        found["recipe"] = _binding(found.get("recipe", {}))
        for part, value in bound.items():
            if found.get(part) != value:
                raise BadConfig(
                    f"'{folder}' holds a run with another {_difference(found.get(part), value, part)}. "
                    "Take the same recipe to go on with it, or another --out to begin anew."
                )
        starts = found["starts"]
    starts.append({key: value for key, value in now.items() if key != "data"})
    write_atomically(
        path,
        json.dumps({**bound, "starts": starts}, indent=2, ensure_ascii=False) + "\n",
    )


def _binding(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without what may change: its words, and settings that change nothing about the weights."""
    told = {key: value for key, value in recipe.items() if key != "about"}
    if "train" in told:
        told["train"] = {
            key: value for key, value in told["train"].items() if key not in FREE
        }
    return told


def _difference(before: Any, now: Any, name: str) -> str:
    """The first setting that is not the same.

    >>> _difference({"seed": 1, "a": {"b": 1}}, {"seed": 1, "a": {"b": 2}}, "train")
    'train.a.b (1 before, now 2)'
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            if before.get(key) != now.get(key):
                return _difference(before.get(key), now.get(key), f"{name}.{key}")
    return f"{name} ({before!r} before, now {now!r})"
