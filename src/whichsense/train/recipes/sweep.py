"""A recipe trained once for each value of a setting: seeds, thresholds, learning rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from whichsense.errors import BadInput
from whichsense.jobs.workers import Executor, run_here
from whichsense.train.loop.run import Trained
from whichsense.train.recipes.chain import train_recipe


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of a sweep. A worker trains it in a folder that every machine sees."""

    recipe: str
    folder: Path
    changes: tuple[str, ...]
    change: str
    """The one by which the runs differ."""
    tiny: bool


def sweep_changes(sweep: str) -> list[str]:
    """The changes of a sweep, one for each run.

    >>> sweep_changes("train.seed=0,1")
    ['train.seed=0', 'train.seed=1']
    """
    key, equals, values = sweep.partition("=")
    if not equals or not all(values.split(",")):
        raise BadInput(
            f"'{sweep}' is not a sweep. Write KEY=VALUE,VALUE: train.seed=0,1,2"
        )
    return [f"{key.strip()}={value.strip()}" for value in values.split(",")]


def train_sweep(
    recipe: str | Path,
    folder: Path,
    changes: Sequence[str],
    sweep: str,
    *,
    tiny: bool = False,
    executor: Executor = run_here,
) -> Iterator[tuple[str, Trained]]:
    """Train a recipe for each value; yields the change and what was trained, as they are completed.

    Each run has its own folder below `folder`, with the recipes that it builds on. A run that was ended is resumed.
    """
    runs = []
    for change in sweep_changes(sweep):
        place = folder.resolve() / change
        runs.append(_Run(str(recipe), place, tuple(changes), change, tiny))
    for run, trained in executor(_train, runs):
        yield run.change, trained


def _train(run: _Run) -> Trained:
    name = Path(run.recipe).stem
    changes = [*run.changes, run.change]
    return train_recipe(run.recipe, run.folder / name, changes, tiny=run.tiny)
