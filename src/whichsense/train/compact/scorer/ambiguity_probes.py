"""Fitting the linear probes of ambiguity: what the n-grams of a question say, and the encoder's states of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from whichsense.datasets import Question
from whichsense.jobs.progress import Progress, silent
from whichsense.models.compact.encoder.runtime import Floats
from whichsense.models.compact.scene import Compact
from whichsense.models.compact.scorer.probes import NgramProbe, StateProbe, ngrams
from whichsense.train.compact.scorer.linear import (
    SparseMatrix,
    fit_logistic,
    fit_sparse_logistic,
)

_FEWEST = 3  # questions that have an n-gram
_NGRAM_RIDGE = 0.5
_STATE_RIDGE = 2000.0  # there are a quarter as many states as questions


@dataclass(frozen=True)
class AmbiguityProbes:
    """Features of the question alone, whatever the evidence."""

    wording: NgramProbe = field(default_factory=NgramProbe)
    impression: StateProbe = field(default_factory=StateProbe)

    def features(self, question: str, states: Floats) -> dict[str, float]:
        return {"wording": self.wording(question), "alone": self.impression(states)}


def fit_ngram_probe(questions: Sequence[Question], fewest: int = _FEWEST) -> NgramProbe:
    """From questions whose annotators said whether there are several readings."""
    features = [ngrams(question.text) for question in questions]
    counts: Counter[str] = Counter()
    for own in features:
        counts.update(own)
    known = sorted(ngram for ngram, count in counts.items() if count >= fewest)
    columns_of = {ngram: column for column, ngram in enumerate(known)}
    rows = []
    columns = []
    values = []
    for row, own in enumerate(features):
        for ngram in own:
            if ngram in columns_of:
                rows.append(row)
                columns.append(columns_of[ngram])
                # Rows have norm 1, whatever the number of n-grams.
                values.append(1 / np.sqrt(len(own)))
    matrix = SparseMatrix(
        np.array(rows, np.int64),
        np.array(columns, np.int64),
        np.array(values, np.float64),
        (len(questions), len(known)),
    )
    weights = fit_sparse_logistic(matrix, _labels(questions), _NGRAM_RIDGE)
    by_ngram = dict(zip(known, weights[:-1].tolist(), strict=True))
    return NgramProbe(by_ngram, float(weights[-1]))


def fit_state_probe(
    compact: Compact,
    questions: Sequence[Question],
    progress: Progress = silent,
    *,
    ridge: float = _STATE_RIDGE,
) -> StateProbe:
    """From questions whose annotators said whether there are several readings."""
    states = []
    for number, question in enumerate(questions, 1):
        states.append(compact.alone(question.text))
        progress(number / len(questions), number)
    values = np.array(states, np.float64)  # questions × states
    mean = values.mean(axis=0)
    spread = values.std(axis=0) + 1e-6
    scaled = (values - mean) / spread
    fitted = fit_logistic(scaled, _labels(questions), ridge)
    # Scaling is folded into the weights, so that the probe takes raw states.
    weights = fitted[:-1] / spread
    bias = float(fitted[-1] - mean @ weights)
    return StateProbe(weights.astype(np.float32), bias)


def _labels(questions: Sequence[Question]) -> NDArray[np.float64]:
    return np.array([question.is_ambiguous for question in questions], np.float64)
