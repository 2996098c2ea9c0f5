"""Fitting the compact model's scorer: features of candidates and questions with labels → nets with true probabilities.

Everything here is small and runs in numpy in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.scorer import Net

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class FitSettings:
    """`hidden` 0 is a linear model."""

    hidden: int = 16
    steps: int = 800
    rate: float = 0.02
    decay: float = 3e-2
    seed: int = 0


def fit(
    rows: Sequence[Mapping[str, float]],
    labels: Sequence[float],
    groups: Sequence[int],
    settings: FitSettings = FitSettings(),  # noqa: B008 (frozen)
) -> Net:
    """A net that gives the probability of a label. `groups` says which rows belong to one question.

    A fifth of the questions is kept out of the fit, and the probabilities are made true on them (Platt scaling).
    """
    names = tuple(rows[0])
    values = np.array([[row[name] for name in names] for row in rows], dtype=np.float32)
    wanted = np.array(labels, dtype=np.float32)
    held = np.isin(groups, [group for group in set(groups) if group % 5 == 0])
    if held.all() or not held.any():
        held[: len(held) // 5] = True
    mean, spread = values[~held].mean(axis=0), values[~held].std(axis=0)
    spread = np.where(spread < 1e-3, 1.0, spread).astype(np.float32)
    scaled = (values - mean) / spread
    net = Net(names, mean, spread, _layers(scaled[~held], wanted[~held], settings))
    return calibrated(net, [row for row, out in zip(rows, held, strict=True) if out], wanted[held].tolist())


def calibrated(net: Net, rows: Sequence[Mapping[str, float]], labels: Sequence[float]) -> Net:
    """The same net, scaled and shifted so that its probabilities are true on these rows."""
    given = np.clip(replace(net, slope=1.0, shift=0.0).probabilities(rows), 1e-6, 1 - 1e-6)
    logits, wanted = np.log(given / (1 - given)), np.array(labels)
    slope, shift = 1.0, 0.0
    for _ in range(50):  # Newton's method: two numbers, a convex loss
        chance = 1 / (1 + np.exp(-np.clip(slope * logits + shift, -30, 30)))
        error, weight = chance - wanted, chance * (1 - chance)
        gradient = np.array([(error * logits).sum() + 1e-2 * (slope - 1), error.sum() + 1e-2 * shift])
        cross = (weight * logits).sum()
        hessian = np.array([[(weight * logits**2).sum() + 1e-2, cross], [cross, weight.sum() + 1e-2]])
        step = np.linalg.solve(hessian, gradient)
        slope, shift = slope - float(step[0]), shift - float(step[1])
        if np.abs(step).max() < 1e-8:
            break
    return replace(net, slope=slope, shift=shift)


def _layers(values: Floats, labels: Floats, settings: FitSettings) -> tuple[tuple[Floats, Floats], ...]:
    """Adam on the cross entropy, all rows at once."""
    random = np.random.default_rng(settings.seed)
    sizes = [values.shape[1], *([settings.hidden] if settings.hidden else []), 1]
    weights = [(random.standard_normal((b, a)) / np.sqrt(a)).astype(np.float32) for a, b in pairwise(sizes)]
    biases = [np.zeros(size, dtype=np.float32) for size in sizes[1:]]
    parameters = [*weights, *biases]
    first, second = ([np.zeros_like(p) for p in parameters] for _ in range(2))
    for step in range(1, settings.steps + 1):
        gradients = _gradients(values, labels, weights, biases)
        rate = settings.rate * 0.5 * (1 + np.cos(np.pi * step / settings.steps))
        for number, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            first[number] += 0.1 * (gradient - first[number])
            second[number] += 0.01 * (gradient**2 - second[number])
            moved = first[number] / (1 - 0.9**step) / (np.sqrt(second[number] / (1 - 0.99**step)) + 1e-8)
            decay = settings.decay * parameter if number < len(weights) else 0.0
            parameter[...] -= (rate * (moved + decay)).astype(np.float32)
    return tuple(zip(weights, biases, strict=True))


def _gradients(values: Floats, labels: Floats, weights: Sequence[Floats], biases: Sequence[Floats]) -> list[Floats]:
    inputs, current = [], values
    for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        current = np.tanh(current) if number else current
        inputs.append(current)
        current = current @ weight.T + bias
    chance = 1 / (1 + np.exp(-np.clip(current, -30, 30)))
    error: Floats = ((chance - labels[:, None]) / len(labels)).astype(np.float32)
    of_weights, of_biases = list[Floats](), list[Floats]()
    for number in reversed(range(len(weights))):
        of_weights.insert(0, error.T @ inputs[number])
        of_biases.insert(0, error.sum(axis=0))
        if number:
            error = np.asarray((error @ weights[number]) * (1 - inputs[number] ** 2), dtype=np.float32)
    return [*of_weights, *of_biases]


def expected_calibration_error(probabilities: Sequence[float], labels: Sequence[float], bins: int = 10) -> float:
    """How far confidence is from accuracy, over bins of equal width, weighted by how many fall into each.

    >>> expected_calibration_error([0.8] * 10, [1] * 8 + [0] * 2)
    0.0
    >>> round(expected_calibration_error([0.9] * 10, [1] * 5 + [0] * 5), 3)
    0.4
    """
    given, right = np.array(probabilities), np.array(labels)
    place = np.minimum((given * bins).astype(int), bins - 1)
    gaps = [abs(given[place == b].sum() - right[place == b].sum()) for b in range(bins)]
    return round(float(sum(gaps) / max(len(given), 1)), 12)
