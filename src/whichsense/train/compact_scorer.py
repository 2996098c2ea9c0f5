"""Fitting the compact model's scorer: features of candidates and questions with labels → nets with true probabilities.

Everything here is small and runs in numpy in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.scorer import FAR, Net

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class FitSettings:
    """`hidden` 0 is a linear model. With hidden units, `members` nets are fitted on questions drawn anew for each, and
    their mean is one wider net."""

    hidden: int = 8
    members: int = 8
    steps: int = 300
    rate: float = 0.02
    decay: float = 0.3
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
    names, random = tuple(rows[0]), np.random.default_rng(settings.seed)
    values = np.array([[row[name] for name in names] for row in rows], dtype=np.float32)
    wanted, place = np.array(labels, dtype=np.float32), np.unique(groups, return_inverse=True)[1]
    held = place % 5 == 0
    mean, spread = values[~held].mean(axis=0), values[~held].std(axis=0)
    spread = np.where(spread < 1e-3, 1.0, spread).astype(np.float32)
    scaled = np.clip((values - mean) / spread, -FAR, FAR)[~held].astype(np.float32)
    count = settings.members if settings.hidden else 1
    made = []
    for member in range(count):
        drawn = random.poisson(1.0, place.max() + 1)[place[~held]] if count > 1 else np.ones(len(scaled))
        made.append(_layers(scaled, wanted[~held], drawn.astype(np.float32), replace(settings, seed=member)))
    net = Net(names, mean, spread, _joined(made))
    return calibrated(net, [row for row, out in zip(rows, held, strict=True) if out], wanted[held].tolist())


def _joined(made: Sequence[tuple[tuple[Floats, Floats], ...]]) -> tuple[tuple[Floats, Floats], ...]:
    """The mean of several nets as one: their hidden units side by side."""
    if len(made[0]) == 1:
        return made[0]
    wide = [np.concatenate([one[0][part] for one in made]).astype(np.float32) for part in (0, 1)]
    out = (np.concatenate([one[1][0] for one in made], axis=1) / len(made)).astype(np.float32)
    bias = np.mean([one[1][1] for one in made], axis=0).astype(np.float32)
    return (wide[0], wide[1]), (out, bias)


def calibrated(net: Net, rows: Sequence[Mapping[str, float]], labels: Sequence[float]) -> Net:
    """The same net, scaled and shifted so that its probabilities are true on these rows."""
    given = np.clip(replace(net, slope=1.0, shift=0.0).probabilities(rows), 1e-6, 1 - 1e-6)
    logits, wanted = np.log(given / (1 - given)), np.array(labels)
    slope, shift = 1.0, 0.0
    for _ in range(100):  # Newton's method: two numbers, a convex loss
        chance = 1 / (1 + np.exp(-np.clip(slope * logits + shift, -30, 30)))
        error, weight = chance - wanted, chance * (1 - chance)
        gradient = np.array([(error * logits).sum() + 1e-2 * (slope - 1), error.sum() + 1e-2 * shift])
        cross = (weight * logits).sum()
        hessian = np.array([[(weight * logits**2).sum() + 1e-2, cross], [cross, weight.sum() + 1e-2]])
        step = np.clip(np.linalg.solve(hessian, gradient), -0.5, 0.5)  # from afar Newton's steps overshoot
        slope, shift = slope - float(step[0]), shift - float(step[1])
        if np.abs(step).max() < 1e-8:
            break
    return replace(net, slope=slope, shift=shift)


def _layers(values: Floats, labels: Floats, counts: Floats, settings: FitSettings) -> tuple[tuple[Floats, Floats], ...]:
    """Adam on the cross entropy, all rows at once, each counted so often."""
    random = np.random.default_rng(settings.seed)
    sizes = [values.shape[1], *([settings.hidden] if settings.hidden else []), 1]
    weights = [(random.standard_normal((b, a)) / np.sqrt(a)).astype(np.float32) for a, b in pairwise(sizes)]
    biases = [np.zeros(size, dtype=np.float32) for size in sizes[1:]]
    parameters = [*weights, *biases]
    first, second = ([np.zeros_like(p) for p in parameters] for _ in range(2))
    for step in range(1, settings.steps + 1):
        gradients = _gradients(values, labels, counts, list(zip(weights, biases, strict=True)))
        rate = settings.rate * 0.5 * (1 + np.cos(np.pi * step / settings.steps))
        for number, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            first[number] += 0.1 * (gradient - first[number])
            second[number] += 0.01 * (gradient**2 - second[number])
            moved = first[number] / (1 - 0.9**step) / (np.sqrt(second[number] / (1 - 0.99**step)) + 1e-8)
            decay = settings.decay * parameter if number < len(weights) else 0.0
            parameter[...] -= (rate * (moved + decay)).astype(np.float32)
    return tuple(zip(weights, biases, strict=True))


def _gradients(values: Floats, labels: Floats, counts: Floats, layers: Sequence[tuple[Floats, Floats]]) -> list[Floats]:
    inputs, current = [], values
    for number, (weight, bias) in enumerate(layers):
        current = np.tanh(current) if number else current
        inputs.append(current)
        current = current @ weight.T + bias
    chance = 1 / (1 + np.exp(-np.clip(current, -30, 30)))
    error: Floats = (counts[:, None] * (chance - labels[:, None]) / counts.sum()).astype(np.float32)
    of_weights, of_biases = list[Floats](), list[Floats]()
    for number in reversed(range(len(layers))):
        of_weights.insert(0, error.T @ inputs[number])
        of_biases.insert(0, error.sum(axis=0))
        if number:
            error = np.asarray((error @ layers[number][0]) * (1 - inputs[number] ** 2), dtype=np.float32)
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
