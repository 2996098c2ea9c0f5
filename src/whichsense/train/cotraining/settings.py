"""Co-training recipes: which readers, how many, and which questions they label."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from whichsense.config import from_table
from whichsense.errors import BadConfig
from whichsense.train.recipes.recipe import Recipe, load_recipe
from whichsense.train.tasks.seq2seq.answer_prediction import AnswerPredictionOptions


@dataclass(frozen=True, slots=True)
class CoTraining:
    """The settings of a co-training recipe. The defaults are the paper's: six models, two iterations."""

    reader: str
    """The recipe of the readers, relative to this file: an answer-prediction recipe."""
    partial: str = "nq_open/train"
    """Questions of which one answer is known."""
    partial_limit: int = 0
    models: int = 6
    iterations: int = 2
    variants: tuple[str, ...] = ()
    """Changes of the reader's recipe, taken in turn, so that the models differ in more than their seed."""
    agreement: Literal["known", "free"] = "known"
    """When a question counts as having one answer: no model adds one to the known answer; or no model, asked without
    it, gives another (the pseudo-code's line 17)."""
    ensemble: tuple[int, ...] = (4, 5, 6)
    """Sizes of the final ensemble that are tried on the development questions."""
    changes: tuple[str, ...] = ()
    """Changes of the reader's recipe for all models."""
    tiny: bool = False

    def __post_init__(self) -> None:
        if self.models < 1 or self.iterations < 1:
            raise BadConfig("Co-training needs at least one model and one iteration.")


def load_cotraining(path: Path, *, tiny: bool = False) -> CoTraining:
    """Read a co-training recipe; `tiny` takes its `[tiny]` table."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadConfig(f"There is no recipe '{path}'. Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"'{path}' is not valid TOML: {error}") from None
    tiny_changes = table.pop("tiny", {})
    table.pop("about", "")
    if tiny:
        table |= {**tiny_changes, "tiny": True}
    return from_table(CoTraining, table, where=str(path))


def load_reader_recipe(settings: CoTraining, where: Path, number: int) -> Recipe:
    """The recipe of one model: the reader's, with its seed and its variant."""
    changes = list(settings.changes)
    if settings.variants:
        changes.append(settings.variants[number % len(settings.variants)])
    changes.append(f"train.seed={number}")
    recipe = load_recipe(where / settings.reader, changes, tiny=settings.tiny)
    if not isinstance(recipe.options, AnswerPredictionOptions):
        raise BadConfig(
            f"'{settings.reader}' trains '{recipe.task}'; co-training needs an answer-prediction recipe."
        )
    return recipe
