"""Checkpoints: written beside and renamed into place, so that a kill at any moment leaves one to go on from."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from whichsense.errors import BadInput
from whichsense.files import write_atomically

FOLDER, MODEL = "checkpoints", "model"
_OLD = ".model.old"


@dataclass(slots=True)
class State:
    """Where a run is. With the weights and the optimiser's state this is all that resuming needs."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    """Steps done in this epoch."""
    best: float | None = None
    best_step: int = 0
    best_metrics: dict[str, float] = field(default_factory=dict)
    without_gain: int = 0
    ended: str = ""
    """Why the run is over: "steps" or "patience"; empty while it is not."""


def save(
    folder: Path,
    state: State,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    keep: int,
) -> None:
    """One file with everything; older ones beyond `keep` are removed after it is safely there."""
    place = folder / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"step-{state.step:09d}.pt"
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with open(beside, "wb") as file:
            torch.save(
                {
                    "state": asdict(state),
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                },
                file,
            )
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    for stale in [*sorted(place.glob("step-*.pt"))[:-keep], *place.glob("*.tmp")]:
        stale.unlink(missing_ok=True)


def newest(folder: Path) -> Path | None:
    """The checkpoint that a run goes on from."""
    return max((folder / FOLDER).glob("step-*.pt"), default=None)


def load(path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """Fill model and optimiser; an error says what to do with a file that does not fit."""
    try:
        body: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(body["model"])
        optimizer.load_state_dict(body["optimizer"])
        return State(**body["state"])
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, EOFError) as error:
        why = str(error).splitlines()[0]
        raise BadInput(
            f"'{path}' is no checkpoint of this recipe: {why}. Remove it, or choose another --out."
        ) from None


def save_model(
    folder: Path, write: Callable[[Path], None], about: dict[str, Any]
) -> None:
    """The best model so far, in `folder/model`, swapped in whole. `about` lies beside it as selected.json."""
    new, place, old = folder / ".model.new", folder / MODEL, folder / _OLD
    for stale in (new, old):
        shutil.rmtree(stale, ignore_errors=True)
    new.mkdir(parents=True)
    write(new)
    write_atomically(new / "selected.json", json.dumps(about, indent=2) + "\n")
    if place.exists():
        os.replace(place, old)
    os.replace(new, place)
    shutil.rmtree(old, ignore_errors=True)


def repair(folder: Path) -> None:
    """A kill between the two renames leaves the old model under its other name."""
    if (folder / _OLD).exists() and not (folder / MODEL).exists():
        os.replace(folder / _OLD, folder / MODEL)
