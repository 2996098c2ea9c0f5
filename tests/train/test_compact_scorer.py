"""The scorer's fit finds what there is to find, and its probabilities are true."""

from __future__ import annotations

import numpy as np
import pytest

from whichsense.lab.compact.scorer_fitting import cross_fit, fit

calibration = pytest.importorskip("sklearn.calibration")


def made(count: int, seed: int) -> tuple[list[dict[str, float]], list[float], list[float]]:
    """Rows whose label has a known probability; the third feature says nothing, and the second acts by its square."""
    random = np.random.default_rng(seed)
    one, two, noise = (random.standard_normal(count) for _ in range(3))
    chance = 1 / (1 + np.exp(-(1.5 * one + two**2 - 2.0)))
    labels = (random.random(count) < chance).astype(float).tolist()
    rows = [
        {"one": a, "two": b, "noise": c, "same": 1.0}
        for a, b, c in zip(one, two, noise, strict=True)
    ]
    return rows, labels, chance.tolist()


def test_probabilities_are_true_on_rows_that_were_not_seen() -> None:
    rows, labels, _ = made(4000, 0)
    net = fit(rows, labels)
    fresh, right, chance = made(4000, 1)
    found = net.probabilities(fresh)
    # As many questions in each bin: the mean gap is the calibration error.
    shares, said = calibration.calibration_curve(right, found, n_bins=10, strategy="quantile")
    assert np.abs(shares - said).mean() < 0.05
    assert float(np.abs(np.array(found) - chance).mean()) < 0.25
    weights = dict(zip(net.names, net.weights.tolist(), strict=True))
    assert (
        weights["one"] > 0.5
        and abs(weights["noise"]) < 0.2
        and weights["same"] == pytest.approx(0, abs=1e-3)
    )


def test_what_is_said_of_unseen_rows_does_not_depend_on_their_labels() -> None:
    rows, labels, _ = made(400, 0)
    groups = [place // 4 for place in range(400)]
    other = [
        1 - label if group == 7 else label for label, group in zip(labels, groups, strict=True)
    ]
    (net, unseen), (net_again, unseen_again) = (
        cross_fit(rows, given, groups) for given in (labels, other)
    )
    own = slice(28, 32)
    assert unseen[own] == pytest.approx(unseen_again[own]) != net.probabilities(rows[own])
    assert net.probabilities(rows[own]) != pytest.approx(net_again.probabilities(rows[own]))
    assert unseen != pytest.approx(unseen_again)
