"""Fitting what the words of a question say of its ambiguity: a logistic regression over phrases, in numpy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from whichsense.datasets import Question
from whichsense.models.compact.scorer.probes import NgramProbe, ngrams

_FEWEST = 3  # questions that a phrase must stand in
_RIDGE = 0.5
_STEPS = 300
Doubles = NDArray[np.float64]


def fit_wording(questions: Sequence[Question], fewest: int = _FEWEST) -> NgramProbe:
    """From questions whose annotators said whether there are several readings."""
    made = [ngrams(question.text) for question in questions]
    counts = Counter(phrase for some in made for phrase in some)
    known = {
        phrase: place
        for place, phrase in enumerate(
            sorted(p for p, n in counts.items() if n >= fewest)
        )
    }
    rows = np.array(
        [row for row, some in enumerate(made) for phrase in some if phrase in known],
        np.int64,
    )
    columns = np.array(
        [known[phrase] for some in made for phrase in some if phrase in known], np.int64
    )
    values = 1 / np.sqrt(np.array([len(some) for some in made], np.float64))[rows]
    labels = np.array([question.is_ambiguous for question in questions], np.float64)
    # The last column is the bias, which all have and which is not drawn to zero.
    every = np.arange(len(made))
    rows, columns = np.r_[rows, every], np.r_[columns, np.full(len(made), len(known))]
    found = _logistic(
        rows, columns, np.r_[values, np.ones(len(made))], labels, len(known) + 1
    )
    return NgramProbe(
        dict(zip(known, found[:-1].tolist(), strict=True)), float(found[-1])
    )


def _logistic(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: Doubles,
    labels: Doubles,
    width: int,
) -> Doubles:
    """Weights of a regression over few values in many columns. Nesterov's method: convex, and no matrix is made."""
    ridge = np.r_[np.full(width - 1, _RIDGE), 0.0]

    def times(weights: Doubles) -> Doubles:
        return np.bincount(rows, values * weights[columns], len(labels)).astype(
            np.float64
        )

    def back(errors: Doubles) -> Doubles:
        return np.bincount(columns, values * errors[rows], width).astype(np.float64)

    longest = np.ones(width)
    for _ in range(20):  # the largest eigenvalue bounds the curvature
        longest = back(times(longest / np.linalg.norm(longest)))
    step = 1 / (0.25 * float(np.linalg.norm(longest)) + _RIDGE)
    found, ahead, before = np.zeros(width), np.zeros(width), 1.0
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(times(ahead), -30, 30)))
        new = ahead - step * (back(chance - labels) + ridge * ahead)
        after = (1 + np.sqrt(1 + 4 * before * before)) / 2
        ahead = new + (before - 1) / after * (new - found)
        found, before = new, after
    return found
