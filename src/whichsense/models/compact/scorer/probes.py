"""Linear probes of ambiguity: log odds that a question has several readings, from the question alone.

`NgramProbe` looks at the words ("who sang", "when did it come out"), `StateProbe` at the encoder's states of the
question without a passage. Neither sees the evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from whichsense.models.compact.encoder.runtime import Floats
from whichsense.text.words import words

_LONGEST_PREFIX = 4  # words
_LONGEST = 15  # words; longer questions count as this long
_DIGITS = 6  # significant digits of a saved weight


def ngrams(question: str) -> list[str]:
    """The features of a question, each once: unigrams, bigrams, prefixes (^) and the length (#).

    >>> ngrams("Who sang it?")
    ['#3', '^who', '^who sang', '^who sang it', 'it', 'sang', 'sang it', 'who', 'who sang']
    """
    unigrams = words(question)
    features = {*unigrams, f"#{min(len(unigrams), _LONGEST)}"}
    for first, second in pairwise(unigrams):
        features.add(f"{first} {second}")
    for count in range(1, min(len(unigrams), _LONGEST_PREFIX) + 1):
        features.add("^" + " ".join(unigrams[:count]))
    return sorted(features)


@dataclass(frozen=True)
class NgramProbe:
    """A logistic regression over n-grams. An unknown n-gram has weight 0."""

    weights: Mapping[str, float] = field(default_factory=dict)
    bias: float = 0.0

    def __call__(self, question: str) -> float:
        """Log odds that the question has several readings.

        >>> NgramProbe({"who": 3.0, "sang": 1.5}, bias=-1.0)("Who sang it?")
        0.5
        """
        features = ngrams(question)
        total = sum(self.weights.get(ngram, 0.0) for ngram in features)
        # Divided by the norm of the indicator vector, so that length alone is no evidence.
        return self.bias + total / math.sqrt(len(features))

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> NgramProbe:
        weights: dict[str, float] = {}
        for ngram, weight in table["weights"].items():
            weights[str(ngram)] = float(weight)
        return cls(weights, float(table["bias"]))

    def to_table(self) -> dict[str, Any]:
        weights = {ngram: round(weight, 3) for ngram, weight in self.weights.items()}
        return {"weights": weights, "bias": self.bias}


@dataclass(frozen=True)
class StateProbe:
    """A logistic regression over pooled encoder states. Without weights it returns 0."""

    weights: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    bias: float = 0.0

    def __call__(self, states: Floats) -> float:
        """Log odds that the question has several readings. `states` comes from `pool_states`.

        >>> StateProbe(np.array([2.0, -1.0], np.float32), bias=0.5)(np.array([1.0, 1.0], np.float32))
        1.5
        """
        if not len(self.weights):
            return 0.0
        return self.bias + float(states @ self.weights)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> StateProbe:
        weights = np.asarray(table["weights"], dtype=np.float32)
        return cls(weights, float(table["bias"]))

    def to_table(self) -> dict[str, Any]:
        weights = [float(f"{weight:.{_DIGITS}g}") for weight in self.weights]
        return {"weights": weights, "bias": self.bias}


def pool_states(early: Floats, late: Floats) -> Floats:
    """Pool a question's states (tokens × width) after the first layers and after all layers into one vector
    (4 · width): of each the [CLS] state and the mean over the question's tokens, without the final [SEP]."""
    parts = []
    for states in (early, late):
        parts.append(states[0])
        parts.append(states[1:-1].mean(axis=0))
    return np.concatenate(parts)
