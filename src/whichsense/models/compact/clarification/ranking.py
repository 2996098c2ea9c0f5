"""A linear ranker over sparse features, and the choice that is best on average over what it finds probable."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

WEIGHTS = Path(__file__).with_name("weights.json")
_CONSIDERED = 14  # most probable candidates that are compared with each other
_NEGLIGIBLE = 1e-3
_RECALL = 0.55  # how much missing words count, beside words too many
_SHARPNESS = 1.5  # chosen on CAmbigNQ's part_train by cross-validation


@dataclass(frozen=True)
class Ranker:
    """The score of a candidate is the sum of its features' weights; unknown features weigh nothing."""

    weights: Mapping[str, float]

    def score(self, features: Mapping[str, float]) -> float:
        weights = self.weights
        return sum(weights.get(name, 0.0) * value for name, value in features.items())


@cache
def load_ranker(name: str) -> Ranker:
    """One of the rankers that ship with the package: "options" or "leads"."""
    table = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return Ranker(table[name])


def by_expectation(
    texts: Sequence[str], scores: Sequence[float]
) -> list[tuple[int, float]]:
    """The most probable texts, ordered by their expected overlap with the right one, which scores make more or less
    probable: (place, overlap).

    >>> places = by_expectation(["the film", "the 1961 film", "the 1961 film version"], [1.0, 0.9, 0.8])
    >>> [place for place, _ in places]
    [1, 2, 0]
    """
    order = sorted(range(len(texts)), key=lambda place: -scores[place])[:_CONSIDERED]
    chances = []
    for place in order:
        chances.append(math.exp(_SHARPNESS * (scores[place] - scores[order[0]])))
    total = sum(chances)
    expected = []
    for place in order:
        value = 0.0
        for other, chance in zip(order, chances, strict=True):
            if chance > _NEGLIGIBLE:
                value += chance / total * overlap(texts[place], texts[other])
        expected.append((place, value))
    return sorted(expected, key=lambda pair: -pair[1])


def overlap(text: str, right: str) -> float:
    """The longest common substring as a share of each text; what is missing counts a little more than what is too much.

    >>> overlap("the film", "film"), overlap("film", "the film")
    (0.775, 0.725)
    """
    if not text or not right:
        return 0.0
    matcher = SequenceMatcher(None, text, right, autojunk=False)
    size = matcher.find_longest_match(0, len(text), 0, len(right)).size
    return (1 - _RECALL) * size / len(text) + _RECALL * size / len(right)
