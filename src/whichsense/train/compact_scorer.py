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
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class FitSettings:
    """`hidden` 0 is a linear model, fitted exactly, with `ridge` to keep weights small. With hidden units, `members`
    nets are fitted on questions drawn anew for each, and their mean is one wider net."""

    hidden: int = 0
    ridge: float = 5.0
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

    A linear model's probabilities are true as they are. With hidden units a fifth of the questions is kept out of the
    fit, and the probabilities are made true on them (Platt scaling).
    """
    names = tuple(rows[0])
    values = np.array([[row[name] for name in names] for row in rows], dtype=np.float32)
    wanted, place = np.array(labels, dtype=np.float32), np.unique(groups, return_inverse=True)[1]
    held = (place % 5 == 0) & bool(settings.hidden)
    mean, spread = values[~held].mean(axis=0), values[~held].std(axis=0)
    spread = np.where(spread < 1e-3, 1.0, spread).astype(np.float32)
    scaled = np.clip((values - mean) / spread, -FAR, FAR)[~held].astype(np.float32)
    if not settings.hidden:
        found = logistic(np.c_[scaled, np.ones(len(scaled))], wanted, np.r_[np.full(len(names), settings.ridge), 1e-6])
        layer = found[None, :-1].astype(np.float32), found[-1:].astype(np.float32)
        return Net(names, mean, spread, (layer,))
    made, random = [], np.random.default_rng(settings.seed)
    for member in range(settings.members):
        drawn = random.poisson(1.0, place.max() + 1)[place[~held]]
        made.append(_layers(scaled, wanted[~held], drawn.astype(np.float32), replace(settings, seed=member)))
    net = Net(names, mean, spread, _joined(made))
    return calibrated(net, [row for row, out in zip(rows, held, strict=True) if out], wanted[held].tolist())


def cross_fitted(
    rows: Sequence[Mapping[str, float]],
    labels: Sequence[float],
    groups: Sequence[int],
    settings: FitSettings = FitSettings(),  # noqa: B008 (frozen)
    folds: int = 5,
) -> tuple[Net, list[float]]:
    """The net that `fit` gives, and for every row the probability by a net that was fitted without its question.

    What is fitted or tuned on top of probabilities needs the latter: those of rows that were seen are too good.
    """
    fold = np.unique(groups, return_inverse=True)[1] % folds
    found = np.zeros(len(rows))
    for number in range(folds):
        seen, own = (np.flatnonzero((fold == number) == out).tolist() for out in (False, True))
        net = fit([rows[k] for k in seen], [labels[k] for k in seen], [groups[k] for k in seen], settings)
        found[own] = net.probabilities([rows[k] for k in own])
    return fit(rows, labels, groups, settings), found.tolist()


def fit_within(
    rows: Sequence[Mapping[str, float]], values: Sequence[float], groups: Sequence[int], ridge: float = 20.0
) -> Net:
    """A linear net that orders the rows of each group by their values: least squares on what differs within a group."""
    names = tuple(rows[0])
    table = np.array([[row[name] for name in names] for row in rows], dtype=np.float32)
    mean, spread = table.mean(axis=0), table.std(axis=0)
    spread = np.where(spread < 1e-3, 1.0, spread).astype(np.float32)
    scaled = np.clip((table - mean) / spread, -FAR, FAR).astype(np.float64)
    place = np.unique(groups, return_inverse=True)[1]
    both = np.c_[scaled, np.array(values)]
    sums = np.zeros((place.max() + 1, both.shape[1]))
    np.add.at(sums, place, both)
    apart = both - (sums / np.bincount(place)[:, None])[place]
    left, right = apart[:, :-1], apart[:, -1]
    weights = np.linalg.solve(left.T @ left + ridge * np.eye(len(names)), left.T @ right)
    return Net(names, mean, spread, ((weights[None].astype(np.float32), np.zeros(1, np.float32)),))


def _joined(made: Sequence[tuple[tuple[Floats, Floats], ...]]) -> tuple[tuple[Floats, Floats], ...]:
    """The mean of several nets as one: their hidden units side by side."""
    wide = [np.concatenate([one[0][part] for one in made]).astype(np.float32) for part in (0, 1)]
    out = (np.concatenate([one[1][0] for one in made], axis=1) / len(made)).astype(np.float32)
    bias = np.mean([one[1][1] for one in made], axis=0).astype(np.float32)
    return (wide[0], wide[1]), (out, bias)


def calibrated(net: Net, rows: Sequence[Mapping[str, float]], labels: Sequence[float]) -> Net:
    """The same net, scaled and shifted so that its probabilities are true on these rows."""
    given = np.clip(replace(net, slope=1.0, shift=0.0).probabilities(rows), 1e-6, 1 - 1e-6)
    logits = np.log(given / (1 - given))
    slope, shift = logistic(
        np.c_[logits, np.ones(len(logits))], labels, np.full(2, 1e-2), np.array([1.0, 0.0])
    ).tolist()
    return replace(net, slope=slope, shift=shift)


def logistic(
    values: Doubles, labels: Sequence[float] | Floats, ridge: Doubles, start: Doubles | None = None
) -> Doubles:
    """Weights of a logistic regression, drawn to where they start (zero) by `ridge`. Newton's method: convex."""
    start = np.zeros(values.shape[1]) if start is None else start
    found = start.copy()
    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(values @ found, -30, 30)))
        gradient = values.T @ (chance - labels) + ridge * (found - start)
        hessian = (values * (chance * (1 - chance))[:, None]).T @ values + np.diag(ridge)
        step = np.clip(np.linalg.solve(hessian, gradient), -0.5, 0.5)  # from afar Newton's steps overshoot
        found -= step
        if np.abs(step).max() < 1e-8:
            break
    return found


def _layers(values: Floats, labels: Floats, counts: Floats, settings: FitSettings) -> tuple[tuple[Floats, Floats], ...]:
    """Adam on the cross entropy, all rows at once, each counted so often."""
    random = np.random.default_rng(settings.seed)
    sizes = [values.shape[1], settings.hidden, 1]
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
