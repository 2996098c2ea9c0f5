"""Fitting what the encoder's states of a question say of its ambiguity: a logistic regression, in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whichsense.datasets import Question
from whichsense.jobs.progress import Progress, silent
from whichsense.models.compact.scene import Compact
from whichsense.models.compact.scorer.probes import StateProbe
from whichsense.train.compact.scorer.linear import logistic

_RIDGE = 2000.0  # there are a quarter as many states as questions


def fit_impression(
    compact: Compact, questions: Sequence[Question], progress: Progress = silent
) -> StateProbe:
    """From questions whose annotators said whether there are several readings."""
    states = []
    for number, question in enumerate(questions, 1):
        states.append(compact.alone(question.text))
        progress(number / len(questions), number)
    values = np.array(states, np.float64)
    mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-6
    scaled = np.c_[(values - mean) / spread, np.ones(len(values))]
    labels = np.array([question.is_ambiguous for question in questions], np.float64)
    found = logistic(scaled, labels, np.r_[np.full(len(mean), _RIDGE), 1e-6])
    weights = found[:-1] / spread
    return StateProbe(weights.astype(np.float32), float(found[-1] - mean @ weights))
