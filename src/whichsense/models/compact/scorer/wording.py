"""How ambiguous a question sounds: what its words alone say, whatever the evidence.

"Who sang it", "when did it come out": some questions are asked of things that there are several of. A linear model over
words, pairs of neighbours and the beginning, fitted on questions whose annotators were asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from whichsense.text.words import words

_BEGINNING = 4  # words
_LONGEST = 15  # what is longer counts as this long


def phrases(question: str) -> list[str]:
    """What a question is made of, each once: words, pairs of neighbours, how it begins (^), how long it is (#).

    >>> phrases("Who sang it?")
    ['#3', '^who', '^who sang', '^who sang it', 'it', 'sang', 'sang it', 'who', 'who sang']
    """
    told = words(question)
    begins = [
        f"^{' '.join(told[:count])}"
        for count in range(1, min(len(told), _BEGINNING) + 1)
    ]
    return sorted(
        {*told, *map(" ".join, pairwise(told)), *begins, f"#{min(len(told), _LONGEST)}"}
    )


@dataclass(frozen=True)
class Wording:
    """Weights of phrases. One that is not there says nothing."""

    weights: Mapping[str, float] = field(default_factory=dict)
    bias: float = 0.0

    def __call__(self, question: str) -> float:
        """Log odds that the question has several readings.

        >>> Wording({"who": 3.0, "sang": 1.5}, bias=-1.0)("Who sang it?")
        0.5
        """
        found = phrases(question)
        return self.bias + sum(
            self.weights.get(phrase, 0.0) for phrase in found
        ) / math.sqrt(len(found))

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Wording:
        return cls(
            {str(phrase): float(weight) for phrase, weight in table["weights"].items()},
            float(table["bias"]),
        )

    def to_table(self) -> dict[str, Any]:
        return {
            "weights": {
                phrase: round(weight, 3) for phrase, weight in self.weights.items()
            },
            "bias": self.bias,
        }
