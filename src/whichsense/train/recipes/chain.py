"""A recipe and those that it builds on, one after another.

A recipe may say which others come before it, and where the folders of their models belong:

    [before]
    "model.start" = "compact-reader"      # trained first; its model folder becomes the value of model.start

Those that have ended are not trained again, so that the same command goes on where a stopped one was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from whichsense.jobs.progress import show_progress, unsaid
from whichsense.train.loop.processes import is_first_process
from whichsense.train.loop.run import Trained, train
from whichsense.train.recipes.recipe import Recipe, load_recipe

SHARED = ("data.", "lists.", "train.device", "train.workers")
"""Changes of a recipe that go for those before it, too."""


def train_recipe(
    path: str | Path,
    out: Path | None = None,
    changes: Sequence[str] = (),
    *,
    tiny: bool = False,
    say: Callable[[str], None] = unsaid,
) -> Trained:
    """Train a recipe, after those that it builds on; their folders lie beside its own."""
    return _Stages(tiny, say).train(path, out, changes)


@dataclass
class _Stages:
    tiny: bool
    say: Callable[[str], None]
    done: dict[Path, Trained] = field(default_factory=dict)

    def train(
        self, path: str | Path, out: Path | None, changes: Sequence[str]
    ) -> Trained:
        read = load_recipe(path, changes, tiny=self.tiny)
        folder = out or Path("runs") / self._named(read.name)
        if folder not in self.done:
            self.done[folder] = self._trained(
                self._after(path, read, folder, changes), folder
            )
        return self.done[folder]

    def _after(
        self, path: str | Path, read: Recipe, folder: Path, changes: Sequence[str]
    ) -> Recipe:
        """The recipe with the models of those before it in their places."""
        given = {change.partition("=")[0].strip() for change in changes}
        passed_on = [change for change in changes if change.startswith(SHARED)]
        added = []
        for key, name in read.before.items():
            if key not in given:
                self.say(f"Before {read.name}: {name}.")
                added.append(
                    f"{key}={self.train(name, folder.parent / self._named(name), passed_on).model}"
                )
        return load_recipe(path, [*changes, *added], tiny=self.tiny) if added else read

    def _trained(self, read: Recipe, folder: Path) -> Trained:
        task = read.make()  # with a bar of its own, where it searches
        with show_progress("training", "steps") as progress:
            done = train(
                task,
                read.train,
                folder,
                recipe=read.table,
                progress=progress,
                say=self.say,
            )
        if is_first_process():
            task.finish(done.model)
        return done

    def _named(self, name: str) -> str:
        return f"{name}-tiny" if self.tiny else name
