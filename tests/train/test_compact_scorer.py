"""The scorer's fit finds what there is to find, and its probabilities are true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from whichsense.train.compact_scorer import FitSettings, calibrated, cross_fitted, expected_calibration_error, fit


def made(count: int, seed: int) -> tuple[list[dict[str, float]], list[float], list[float]]:
    """Rows whose label has a known probability; the third feature says nothing, and the second acts by its square."""
    random = np.random.default_rng(seed)
    one, two, noise = (random.standard_normal(count) for _ in range(3))
    chance = 1 / (1 + np.exp(-(1.5 * one + two**2 - 2.0)))
    labels = (random.random(count) < chance).astype(float).tolist()
    rows = [{"one": a, "two": b, "noise": c, "same": 1.0} for a, b, c in zip(one, two, noise, strict=True)]
    return rows, labels, chance.tolist()


@pytest.mark.parametrize("hidden", [0, 16])
def test_probabilities_are_true_on_rows_that_were_not_seen(hidden: int) -> None:
    rows, labels, _ = made(4000, 0)
    net = fit(rows, labels, [place // 4 for place in range(4000)], FitSettings(hidden=hidden))
    fresh, right, chance = made(4000, 1)
    found = net.probabilities(fresh)
    assert expected_calibration_error(found, right) < 0.05
    error = float(np.abs(np.array(found) - chance).mean())
    assert error < (0.07 if hidden else 0.25)


def test_a_hidden_layer_finds_what_a_line_cannot() -> None:
    rows, labels, _ = made(4000, 0)
    groups = [place // 4 for place in range(4000)]
    fresh, _, chance = made(4000, 1)
    errors = [
        float(np.abs(np.array(fit(rows, labels, groups, FitSettings(hidden=h)).probabilities(fresh)) - chance).mean())
        for h in (0, 16)
    ]
    assert errors[1] < 0.7 * errors[0]


def test_calibration_mends_what_is_too_sure() -> None:
    rows, labels, _ = made(4000, 0)
    net = fit(rows, labels, [place // 4 for place in range(4000)])
    sure = replace(net, slope=net.slope * 4, shift=net.shift + 1)
    fresh, right, _ = made(4000, 2)
    assert expected_calibration_error(sure.probabilities(fresh), right) > 0.08
    assert expected_calibration_error(calibrated(sure, rows, labels).probabilities(fresh), right) < 0.04


def test_what_is_said_of_unseen_rows_does_not_depend_on_their_labels() -> None:
    rows, labels, _ = made(400, 0)
    groups = [place // 4 for place in range(400)]
    other = [1 - label if group == 7 else label for label, group in zip(labels, groups, strict=True)]
    (net, unseen), (net_again, unseen_again) = (
        cross_fitted(rows, given, groups, FitSettings(hidden=0, steps=50)) for given in (labels, other)
    )
    own = slice(28, 32)
    assert unseen[own] == pytest.approx(unseen_again[own]) != net.probabilities(rows[own])
    assert net.probabilities(rows[own]) != pytest.approx(net_again.probabilities(rows[own]))
    assert unseen != pytest.approx(unseen_again)
