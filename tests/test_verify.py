"""Verification: likely readings stay, the best one in any case; a threshold is tuned on validation questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from whichsense.errors import BadInput
from whichsense.lab.metrics.ambignq import f1_answers
from whichsense.stages.verify import EMVerifier, above, tuned_threshold
from whichsense.testing import FakeReader, passage_hit
from whichsense.types import Case, Reading

HITS = [passage_hit("Ann won in 2012, Bob in 2013.")]


def readings(*scores: tuple[str, float]) -> list[Reading]:
    return [Reading(f"who? {answer}", answer, confidence=score) for answer, score in scores]


def test_at_least_one_stays() -> None:
    assert [one.answer for one in above(readings(("a", -9.0), ("b", -7.0)), -6.1)] == ["b"]
    assert [one.answer for one in above(readings(("a", -1.0), ("b", -7.0), ("c", -6.1)), -6.1)] == [
        "a",
        "c",
    ]
    assert above([], -6.1) == []


def test_em_verification() -> None:
    verifier = EMVerifier(FakeReader({"Ann": "Ann"}))
    given = [("Bob", "ann"), ("Bob", "Cy"), ()]
    cases = []
    for answers in given:
        own = tuple(readings(*((answer, 0.0) for answer in answers)))
        cases.append(Case("who?", tuple(HITS), readings=own))
    kept = [[one.answer for one in case.readings] for case in verifier.verify(cases)]
    assert kept == [["ann"], ["Bob"], []]


def test_verification_leaves_alone_what_is_merely_possible() -> None:
    possible = tuple(readings(("Ann", 0.1)))
    case = Case("who?", tuple(HITS), readings=tuple(readings(("Bob", 0.4))))
    case = replace(case, possible=possible)
    (verified,) = EMVerifier(FakeReader({"Bob": "Bob"})).verify([case])
    assert [one.answer for one in verified.readings] == ["Bob"]
    assert verified.possible == possible


def f1(gold: Sequence[Sequence[str]], kept: Sequence[Reading]) -> float:
    return f1_answers(gold, [one.answer for one in kept])


def test_the_threshold_is_tuned() -> None:
    scored = [
        readings(("a", -1.0), ("x", -5.0)),
        readings(("b", -2.0), ("c", -3.0)),
        readings(("y", -8.0)),
    ]
    golds = [[["a"]], [["b"], ["c"]], [["y"]]]
    threshold, score = tuned_threshold(scored, golds, f1)
    assert score == 1.0 and -5.0 < threshold <= -3.0
    with pytest.raises(BadInput, match="tuned on questions"):
        tuned_threshold([], [], f1)
    with pytest.raises(BadInput, match="nothing to tune"):
        tuned_threshold([[]], [[["a"]]], f1)
