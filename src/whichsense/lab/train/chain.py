"""Train a recipe after those that it builds on; sweep over variants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from whichsense.errors import BadInput
from whichsense.jobs.limits import show_progress, unsaid
from whichsense.jobs.workers import Executor, run_here
from whichsense.lab.train.loop import Trained, train
from whichsense.lab.train.processes import is_first_process
from whichsense.lab.train.recipes import Recipe, load_recipe
from whichsense.types import frozen

# A recipe and those that it builds on, one after another.
#
# A recipe may name others that come before it, and the settings that are their model folders:
#
#     [before]
#     "model.start" = "compact-reader"      # trained first; its model folder becomes the value of model.start
#
# Recipes that have ended are not trained again, so that the same command resumes a stopped one.

_SHARED = ("data.", "lists.", "train.device", "train.workers")
"""Changes of a recipe that are passed on to those before it."""


def train_recipe(
    path: str | Path,
    out: Path | None = None,
    changes: Sequence[str] = (),
    *,
    tiny: bool = False,
    say: Callable[[str], None] = unsaid,
) -> Trained:
    """Train a recipe, after those that it builds on; their folders are beside its own."""
    return _Chain(tiny, say).train(path, out, changes)


@dataclass
class _Chain:
    tiny: bool
    say: Callable[[str], None]
    trained: dict[Path, Trained] = field(default_factory=dict)
    """By folder: two recipes of a chain may build on the same one."""

    def train(self, path: str | Path, out: Path | None, changes: Sequence[str]) -> Trained:
        recipe = load_recipe(path, changes, tiny=self.tiny)
        folder = out or Path("runs") / self._folder_name(recipe.name)
        if folder not in self.trained:
            starts = self._train_before(recipe, folder, changes)
            if starts:
                recipe = load_recipe(path, [*changes, *starts], tiny=self.tiny)
            self.trained[folder] = self._train_one(recipe, folder)
        return self.trained[folder]

    def _train_before(self, recipe: Recipe, folder: Path, changes: Sequence[str]) -> list[str]:
        """Train the recipes before this one; returns the changes that put their models into place."""
        given = {change.partition("=")[0].strip() for change in changes}
        passed_on = [change for change in changes if change.startswith(_SHARED)]
        starts = []
        for key, name in recipe.before.items():
            # A model that the caller gives need not be trained.
            if key in given:
                continue
            self.say(f"Before {recipe.name}: {name}.")
            beside = folder.parent / self._folder_name(name)
            trained = self.train(name, beside, passed_on)
            starts.append(f"{key}={trained.model}")
        return starts

    def _train_one(self, recipe: Recipe, folder: Path) -> Trained:
        # Before the progress bar of training: a task that searches shows one of its own.
        task = recipe.make()
        with show_progress("training", "steps") as progress:
            trained = train(
                task, recipe.train, folder, recipe=recipe.table, progress=progress, say=self.say
            )
        if is_first_process():
            task.finish(trained.model)
        return trained

    def _folder_name(self, recipe: str) -> str:
        return f"{recipe}-tiny" if self.tiny else recipe


# A recipe trained once for each value of a setting: seeds, thresholds, learning rates.


@frozen
class _Run:
    """One run of a sweep. A worker trains it in a folder that every machine sees."""

    recipe: str
    folder: Path
    changes: tuple[str, ...]
    change: str
    """The one by which the runs differ."""
    tiny: bool


def sweep_changes(sweep: str) -> list[str]:
    """Return the changes of a sweep, one for each run.

    >>> sweep_changes("train.seed=0,1")
    ['train.seed=0', 'train.seed=1']
    """
    key, equals, values = sweep.partition("=")
    if not equals or not all(values.split(",")):
        raise BadInput(f"'{sweep}' is not a sweep. Write KEY=VALUE,VALUE: train.seed=0,1,2")
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
