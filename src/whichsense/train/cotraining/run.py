"""Run co-training: train the readers, let them label, and repeat.

Everything is a file of the run's folder, written whole or not at all: the same call resumes a stopped run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from whichsense.datasets import Question
from whichsense.errors import BadConfig
from whichsense.files import read_json, write_atomically
from whichsense.jobs.progress import unsaid
from whichsense.train.cotraining.settings import CoTraining, load_reader_recipe
from whichsense.train.cotraining.silver import read_silver, write_silver
from whichsense.train.cotraining.voting import best_ensemble
from whichsense.train.loop.checkpoint import MODEL
from whichsense.train.loop.run import train
from whichsense.train.recipes.recipe import Recipe
from whichsense.train.tasks.seq2seq.answer_prediction import build_task


@dataclass(frozen=True, slots=True)
class CoTrained:
    """The models that vote together, and how well they do it on the development questions."""

    models: tuple[Path, ...]
    f1_ans: float
    silver: tuple[int, int]
    """Questions that were added in the last iteration: with several answers, with one."""


def cotrain(
    settings: CoTraining,
    where: Path,
    folder: Path,
    say: Callable[[str], None] = unsaid,
    *,
    train_model: Callable[..., Any] = train,
) -> CoTrained:
    """Run all iterations, or those that are missing. `where`: the folder that the reader's recipe is named from."""
    _check_settings(settings, folder)
    recipes = []
    for number in range(settings.models):
        recipes.append(load_reader_recipe(settings, where, number))
    added: list[Question] = []
    files: list[Path] = []
    models: list[Path] = []
    for iteration in range(1, settings.iterations + 1):
        place = folder / f"iteration-{iteration}"
        silver = place / "silver.jsonl"
        folders = [place / f"model-{number + 1}" for number in range(settings.models)]
        models = [model / MODEL for model in folders]
        # The silver data is written last: where it is, the models are trained.
        if not silver.exists():
            for number, (recipe, model) in enumerate(
                zip(recipes, folders, strict=True)
            ):
                say(f"iteration {iteration}, model {number + 1} of {settings.models}")
                _train_reader(train_model, recipe, model, added, files)
            write_silver(silver, settings, recipes[0].options, models)
        added = list(read_silver(silver))
        files = [silver]
        say(f"iteration {iteration}: {len(added):,} questions added")
    several = sum(question.is_ambiguous for question in added)
    members, score = best_ensemble(settings.ensemble, recipes[0].options, models)
    chosen = tuple(models[member] for member in members)
    return CoTrained(chosen, score, (several, len(added) - several))


def _train_reader(
    train_model: Callable[..., Any],
    recipe: Recipe,
    folder: Path,
    added: Sequence[Question],
    files: Sequence[Path],
) -> None:
    task = build_task(recipe.options, added, files)
    train_model(task, recipe.train, folder, recipe=recipe.table)


def _check_settings(settings: CoTraining, folder: Path) -> None:
    """Write the settings; a run that was begun with others is an error."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "cotraining.json"
    body = json.loads(json.dumps(asdict(settings)))
    if path.exists() and read_json(path) != body:
        raise BadConfig(
            f"'{folder}' holds a run with other settings. Take those of {path}, or another --out."
        )
    write_atomically(path, json.dumps(body, indent=2) + "\n")
