"""What the teacher and the encoder share as tasks: lists of passages to train on, and how batches are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadConfig, BadInput
from whichsense.models.compact.encoder.inputs import LONGEST_QUESTION, LONGEST_TITLE
from whichsense.train.compact.data.config import DataConfig, ListConfig
from whichsense.train.compact.data.lists import load_lists
from whichsense.train.compact.data.pack import Pack

_SHORTEST = LONGEST_QUESTION + LONGEST_TITLE + 5  # tokens; three are separators
_UNANSWERED_WEIGHT = 0.25  # of a list none of whose passages holds an answer


@dataclass(frozen=True, slots=True)
class ListDraw:
    """A recipe's `[draw]`: what a batch holds."""

    lists: int = 40
    passages: int = 16


def load_training_lists(
    data: DataConfig, lists: ListConfig, vocabulary: Sequence[str], longest: int
) -> tuple[Pack, Pack]:
    """The lists to train on and those to evaluate on. `longest`: tokens of a pair."""
    if longest < _SHORTEST:
        raise BadConfig(
            f"model.longest must be {_SHORTEST} or more: question and title alone may need so many."
        )
    train, dev = load_lists(data, lists, vocabulary)
    if not train.has_answer.any():
        raise BadInput(
            "For no training question the index found a passage with its answer. Is it the right index?"
        )
    return train, dev


def draw_numbers(
    probabilities: NDArray[np.float64], size: int, epoch: int, seed: int
) -> list[tuple[int, list[int]]]:
    """An epoch's batches: the number of each and its lists. There are as many as would hold every list once."""
    rng = np.random.default_rng([seed, epoch])
    count = max(1, len(probabilities) // size)
    drawn = rng.choice(len(probabilities), (count, size), p=probabilities)
    return list(enumerate(drawn.tolist()))


def batch_rng(seed: int, epoch: int, number: int) -> np.random.Generator:
    """A batch's own generator: batches are built in any order, by any thread or process."""
    # The last number keeps it apart from the generator of `draw_numbers`.
    return np.random.default_rng([seed, epoch, number, 1])


def list_probabilities(
    lists: Pack, weights: Mapping[str, float]
) -> NDArray[np.float64]:
    """How often each list is drawn, by the weight of its dataset."""
    by_source = np.array([_weight(one.source, weights) for one in lists.asked])
    # A list without an answer teaches only what to decline.
    by_answer = np.where(lists.has_answer, 1.0, _UNANSWERED_WEIGHT)
    return normalize_weights(1.0, by_source * by_answer)


def normalize_weights(
    share: float, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scale weights so that their sum is `share`."""
    if weights.min() < 0 or (share and not weights.any()):
        raise BadConfig(
            "data.weights: 0 or more for each dataset, and not 0 for all from which something is drawn."
        )
    return share * weights / (weights.sum() or 1.0)


def _weight(source: str, weights: Mapping[str, float]) -> float:
    return weights.get(longest_prefix(source, weights), 1.0)


def longest_prefix(source: str, keys: Iterable[str]) -> str:
    """The longest key that a dataset's name, or a file's name without its folder, starts with; else the name itself.

    >>> longest_prefix("situatedqa/geo.dev", ["situatedqa", "squad"]), longest_prefix("data/mine.json", ["mine"])
    ('situatedqa', 'mine')
    """
    name = Path(source).name
    fits = []
    for key in keys:
        if source.startswith(key) or name.startswith(key):
            fits.append(key)
    return max(fits, key=len, default=source)
