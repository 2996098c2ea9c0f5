"""Linear nets of the scorer, fitted to features with labels. Everything here runs in numpy, in seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.scorer.scorer import FAR, Net

_Floats = NDArray[np.float32]
_Doubles = NDArray[np.float64]
_FeatureRow = Mapping[str, float]
_RIDGE = 5.0  # keeps weights small
_BIAS_RIDGE = 1e-6
_LARGEST_LOGIT = 30.0  # further out exp would overflow
_NEWTON_STEPS = 100
_LONGEST_STEP = 0.5  # far from the optimum Newton's steps overshoot
_GRADIENT_STEPS = 300


def fit(rows: Sequence[_FeatureRow], labels: Sequence[float]) -> Net:
    """A logistic regression: the net's probabilities are calibrated as they are."""
    features = _standardize(rows)
    weights = fit_logistic(features.values, np.array(labels), _RIDGE)
    return features.net(weights[:-1], weights[-1])


def cross_fit(
    rows: Sequence[_FeatureRow],
    labels: Sequence[float],
    groups: Sequence[int],
    folds: int = 5,
) -> tuple[Net, list[float]]:
    """The net that `fit` gives, and for every row the probability by a net that was fitted without its group.

    Whatever is fitted or tuned on top of probabilities needs the latter: those of rows that were seen are too good.
    `groups` says which rows belong to one question.
    """
    fold_of_row = np.unique(groups, return_inverse=True)[1] % folds
    probabilities = np.zeros(len(rows))
    for fold in range(folds):
        seen = np.flatnonzero(fold_of_row != fold).tolist()
        unseen = np.flatnonzero(fold_of_row == fold).tolist()
        seen_rows = [rows[place] for place in seen]
        seen_labels = [labels[place] for place in seen]
        net = fit(seen_rows, seen_labels)
        unseen_rows = [rows[place] for place in unseen]
        probabilities[unseen] = net.probabilities(unseen_rows)
    return fit(rows, labels), probabilities.tolist()


def fit_within(
    rows: Sequence[_FeatureRow],
    values: Sequence[float],
    groups: Sequence[int],
    ridge: float = 20.0,
) -> Net:
    """A net that orders the rows of each group by their values: least squares on differences within a group."""
    features = _standardize(rows)
    group_of_row = np.unique(groups, return_inverse=True)[1]
    both = np.c_[features.values, np.array(values)]
    groups_count = group_of_row.max() + 1
    sums = np.zeros((groups_count, both.shape[1]))
    np.add.at(sums, group_of_row, both)
    # Each row is compared with the mean of its group.
    means = sums / np.bincount(group_of_row)[:, None]
    centred = both - means[group_of_row]
    left = centred[:, :-1]
    right = centred[:, -1]
    damping = ridge * np.eye(len(features.names))
    # The normal equations of a ridge regression.
    weights = np.linalg.solve(left.T @ left + damping, left.T @ right)
    return features.net(weights, 0.0)


@dataclass(frozen=True)
class _Standardized:
    """Rows × features, as a net sees them: in units of their spread, and clipped."""

    names: tuple[str, ...]
    mean: _Floats
    spread: _Floats
    values: _Doubles

    def net(self, weights: _Doubles, bias: float) -> Net:
        weights32 = weights.astype(np.float32)
        return Net(self.names, self.mean, self.spread, weights32, float(bias))


def _standardize(rows: Sequence[_FeatureRow]) -> _Standardized:
    names = tuple(rows[0])
    table = []
    for row in rows:
        table.append([row[name] for name in names])
    values = np.array(table, dtype=np.float32)
    mean = values.mean(axis=0)
    spread = values.std(axis=0)
    # A feature that hardly varies is not blown up.
    spread = np.where(spread < 1e-3, 1.0, spread).astype(np.float32)
    scaled = np.clip((values - mean) / spread, -FAR, FAR)
    return _Standardized(names, mean, spread, scaled.astype(np.float64))


def fit_logistic(values: _Doubles, labels: _Doubles, ridge: float) -> _Doubles:
    """The weights of a logistic regression, and last its bias, by Newton's method. `values`: rows × features."""
    values = np.c_[values, np.ones(len(values))]
    ridges = np.full(values.shape[1], ridge)
    ridges[-1] = _BIAS_RIDGE
    weights = np.zeros(values.shape[1])
    for _ in range(_NEWTON_STEPS):
        probabilities = _sigmoid(values @ weights)
        gradient = values.T @ (probabilities - labels) + ridges * weights
        curvature = (probabilities * (1 - probabilities))[:, None]
        hessian = (values * curvature).T @ values + np.diag(ridges)
        step = np.linalg.solve(hessian, gradient)
        step = np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        # The problem is convex, so that clipped steps arrive, too.
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return weights


@dataclass(frozen=True)
class SparseMatrix:
    """Values at places of a matrix; all other places hold 0."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: _Doubles
    shape: tuple[int, int]

    def with_ones(self) -> SparseMatrix:
        """With a last column of ones."""
        height, width = self.shape
        every = np.arange(height)
        return SparseMatrix(
            np.r_[self.rows, every],
            np.r_[self.columns, np.full(height, width)],
            np.r_[self.values, np.ones(height)],
            (height, width + 1),
        )

    def times(self, vector: _Doubles) -> _Doubles:
        products = self.values * vector[self.columns]
        return np.bincount(self.rows, products, self.shape[0]).astype(np.float64)

    def transposed_times(self, vector: _Doubles) -> _Doubles:
        products = self.values * vector[self.rows]
        return np.bincount(self.columns, products, self.shape[1]).astype(np.float64)


def fit_sparse_logistic(
    matrix: SparseMatrix, labels: _Doubles, ridge: float
) -> _Doubles:
    """The same over thousands of sparse features, whose Hessian would not fit: Nesterov's accelerated gradient.

    The bias, which is last, has no ridge.
    """
    matrix = matrix.with_ones()
    width = matrix.shape[1]
    ridges = np.full(width, ridge)
    ridges[-1] = 0.0
    # The largest eigenvalue, by power iteration, bounds the curvature.
    vector = np.ones(width)
    for _ in range(20):
        unit = vector / np.linalg.norm(vector)
        vector = matrix.transposed_times(matrix.times(unit))
    # The slope of the sigmoid is at most 1/4.
    curvature = 0.25 * float(np.linalg.norm(vector)) + ridge
    rate = 1 / curvature
    weights = np.zeros(width)
    ahead = np.zeros(width)
    momentum = 1.0
    for _ in range(_GRADIENT_STEPS):
        errors = _sigmoid(matrix.times(ahead)) - labels
        gradient = matrix.transposed_times(errors) + ridges * ahead
        updated = ahead - rate * gradient
        next_momentum = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
        ahead = updated + (momentum - 1) / next_momentum * (updated - weights)
        weights = updated
        momentum = next_momentum
    return weights


def _sigmoid(logits: _Doubles) -> _Doubles:
    clipped = np.clip(logits, -_LARGEST_LOGIT, _LARGEST_LOGIT)
    return np.asarray(1 / (1 + np.exp(-clipped)))


def expected_calibration_error(
    probabilities: Sequence[float], labels: Sequence[float], bins: int = 10
) -> float:
    """How far confidence is from accuracy, over bins of equal width, weighted by how many fall into each.

    >>> expected_calibration_error([0.8] * 10, [1] * 8 + [0] * 2)
    0.0
    >>> round(expected_calibration_error([0.9] * 10, [1] * 5 + [0] * 5), 3)
    0.4
    """
    given = np.array(probabilities)
    right = np.array(labels)
    bin_of_item = np.minimum((given * bins).astype(int), bins - 1)
    total = 0.0
    for number in range(bins):
        inside = bin_of_item == number
        confidence = given[inside].sum()
        accuracy = right[inside].sum()
        total += abs(confidence - accuracy)
    return round(float(total / max(len(given), 1)), 12)
