"""How ambiguous a question is to the encoder when it reads it without a passage: a linear model over its states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whichsense.models.compact.encoder.runtime import Floats

_DIGITS = 6


def pooled(early: Floats, late: Floats) -> Floats:
    """What is kept of a question's states (tokens × width), after the first layers and after all: of each the state of
    [CLS], and the mean of what stands behind it, without the last sign."""
    return np.concatenate(
        [
            part
            for states in (early, late)
            for part in (states[0], states[1:-1].mean(axis=0))
        ]
    )


@dataclass(frozen=True)
class Impression:
    """Weights of pooled states; without any, it has none."""

    weights: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    bias: float = 0.0

    def __call__(self, states: Floats) -> float:
        """Log odds that the question has several readings.

        >>> Impression(np.array([2.0, -1.0], np.float32), bias=0.5)(np.array([1.0, 1.0], np.float32))
        1.5
        """
        return self.bias + float(states @ self.weights) if len(self.weights) else 0.0

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Impression:
        return cls(np.asarray(table["weights"], dtype=np.float32), float(table["bias"]))

    def to_table(self) -> dict[str, Any]:
        return {
            "weights": [float(f"{weight:.{_DIGITS}g}") for weight in self.weights],
            "bias": self.bias,
        }
