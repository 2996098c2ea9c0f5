"""Fitting the compact model's scorer: features of candidates and questions with labels → linear nets.

Everything here is small and runs in numpy in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.scorer.scorer import FAR, Net

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
_RIDGE = 5.0  # keeps weights small


def fit(rows: Sequence[Mapping[str, float]], labels: Sequence[float]) -> Net:
    """A net that gives the probability of a label: logistic regression, whose probabilities are true as they are."""
    names, mean, spread, scaled = _scaled(rows)
    ridge = np.r_[np.full(len(names), _RIDGE), 1e-6]
    found = logistic(np.c_[scaled, np.ones(len(scaled))], np.array(labels), ridge)
    return _net(names, mean, spread, found[:-1], found[-1])


def cross_fitted(
    rows: Sequence[Mapping[str, float]],
    labels: Sequence[float],
    groups: Sequence[int],
    folds: int = 5,
) -> tuple[Net, list[float]]:
    """The net that `fit` gives, and for every row the probability by a net that was fitted without its question.

    What is fitted or tuned on top of probabilities needs the latter: those of rows that were seen are too good.
    `groups` says which rows belong to one question.
    """
    fold = np.unique(groups, return_inverse=True)[1] % folds
    found = np.zeros(len(rows))
    for number in range(folds):
        seen, own = (
            np.flatnonzero((fold == number) == out).tolist() for out in (False, True)
        )
        net = fit([rows[k] for k in seen], [labels[k] for k in seen])
        found[own] = net.probabilities([rows[k] for k in own])
    return fit(rows, labels), found.tolist()


def fit_within(
    rows: Sequence[Mapping[str, float]],
    values: Sequence[float],
    groups: Sequence[int],
    ridge: float = 20.0,
) -> Net:
    """A net that orders the rows of each group by their values: least squares on what differs within a group."""
    names, mean, spread, scaled = _scaled(rows)
    place = np.unique(groups, return_inverse=True)[1]
    both = np.c_[scaled, np.array(values)]
    sums = np.zeros((place.max() + 1, both.shape[1]))
    np.add.at(sums, place, both)
    apart = both - (sums / np.bincount(place)[:, None])[place]
    left, right = apart[:, :-1], apart[:, -1]
    weights = np.linalg.solve(
        left.T @ left + ridge * np.eye(len(names)), left.T @ right
    )
    return _net(names, mean, spread, weights, 0.0)


def _scaled(
    rows: Sequence[Mapping[str, float]],
) -> tuple[tuple[str, ...], Floats, Floats, Doubles]:
    """Names of the features, their means and spreads, and the rows in units of these, as a net sees them."""
    names = tuple(rows[0])
    values = np.array([[row[name] for name in names] for row in rows], dtype=np.float32)
    mean, spread = values.mean(axis=0), values.std(axis=0)
    spread = np.where(spread < 1e-3, 1.0, spread).astype(np.float32)
    return (
        names,
        mean,
        spread,
        np.clip((values - mean) / spread, -FAR, FAR).astype(np.float64),
    )


def _net(
    names: tuple[str, ...], mean: Floats, spread: Floats, weights: Doubles, bias: float
) -> Net:
    return Net(names, mean, spread, weights.astype(np.float32), float(bias))


def logistic(values: Doubles, labels: Doubles, ridge: Doubles) -> Doubles:
    """Weights of a logistic regression, drawn to zero by `ridge`. Newton's method: convex."""
    found = np.zeros(values.shape[1])
    for _ in range(100):
        chance = 1 / (1 + np.exp(-np.clip(values @ found, -30, 30)))
        gradient = values.T @ (chance - labels) + ridge * found
        hessian = (values * (chance * (1 - chance))[:, None]).T @ values + np.diag(
            ridge
        )
        step = np.clip(
            np.linalg.solve(hessian, gradient), -0.5, 0.5
        )  # from afar Newton's steps overshoot
        found -= step
        if np.abs(step).max() < 1e-8:
            break
    return found


def expected_calibration_error(
    probabilities: Sequence[float], labels: Sequence[float], bins: int = 10
) -> float:
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
