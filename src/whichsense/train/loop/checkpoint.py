"""Checkpoints: written to a temporary file and renamed, so that a kill at any moment leaves one to resume from."""

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

MODEL = "model"
"""The folder of the best model, inside the run's folder."""
_CHECKPOINTS = "checkpoints"
_NEW_MODEL, _OLD_MODEL = ".model.new", ".model.old"


@dataclass(slots=True)
class RunState:
    """How far a run is. With the weights and the optimizer's state this is all that resuming needs."""

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

    def note(
        self, metrics: dict[str, float], metric: str, higher_is_better: bool
    ) -> bool:
        """Take in an evaluation; returns whether it is the best so far."""
        value = metrics[metric]
        if self.best is None:
            is_best = True
        elif higher_is_better:
            is_best = value > self.best
        else:
            is_best = value < self.best
        if is_best:
            self.best = value
            self.best_step = self.step
            self.best_metrics = metrics
            self.without_gain = 0
        else:
            self.without_gain += 1
        return is_best


def save(
    folder: Path,
    state: RunState,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    keep: int,
) -> None:
    """Write one file with everything, then remove older checkpoints beyond `keep`."""
    checkpoints = folder / _CHECKPOINTS
    checkpoints.mkdir(parents=True, exist_ok=True)
    path = checkpoints / f"step-{state.step:09d}.pt"
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    body = {
        "state": asdict(state),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    try:
        with open(temporary, "wb") as file:
            torch.save(body, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    # A kill may have left temporary files of other processes.
    older = sorted(checkpoints.glob("step-*.pt"))[:-keep]
    for stale in (*older, *checkpoints.glob("*.tmp")):
        stale.unlink(missing_ok=True)


def newest(folder: Path) -> Path | None:
    """The checkpoint that a run resumes from."""
    return max((folder / _CHECKPOINTS).glob("step-*.pt"), default=None)


def load(
    path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> RunState:
    """Load the weights into model and optimizer; an error says what to do with a file that does not fit."""
    try:
        body: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict(body["model"])
        optimizer.load_state_dict(body["optimizer"])
        return RunState(**body["state"])
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, EOFError) as error:
        why = str(error).splitlines()[0]
        raise BadInput(
            f"'{path}' is not a checkpoint of this recipe: {why}. Remove it, or choose another --out."
        ) from None


def save_model(
    folder: Path, write: Callable[[Path], None], about: dict[str, Any]
) -> None:
    """Replace `folder/model` by the best model so far in two renames. `about` is written into it as selected.json."""
    new = folder / _NEW_MODEL
    old = folder / _OLD_MODEL
    place = folder / MODEL
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    new.mkdir(parents=True)
    write(new)
    write_atomically(new / "selected.json", json.dumps(about, indent=2) + "\n")
    if place.exists():
        os.replace(place, old)
    os.replace(new, place)
    shutil.rmtree(old, ignore_errors=True)


def repair(folder: Path) -> None:
    """Bring back the old model after a kill between the two renames of `save_model`."""
    old = folder / _OLD_MODEL
    place = folder / MODEL
    if old.exists() and not place.exists():
        os.replace(old, place)
