"""What the encoder's states of a question say of its ambiguity, learnt from questions whose annotators said so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from whichsense.datasets import Annotation, QAPair, Question
from whichsense.train.compact.scorer import impression
from whichsense.train.compact.scorer.impression import fit_impression

WIDTH = 12


@dataclass(frozen=True)
class Scripted:
    """States by the question's number: the first one tells, the others are noise, and one is always the same."""

    def alone(self, question: str) -> np.ndarray:
        number = int(question.rsplit(maxsplit=1)[-1])
        states = np.random.default_rng(number).normal(size=WIDTH)
        states[0] = 5.0 + (1.0 if number % 2 else -1.0) + 0.3 * states[0]
        states[1] = 7.0
        return states.astype(np.float32)


def asked(number: int) -> Question:
    pair = QAPair((f"who is number {number}",), ("one",))
    kind, pairs = (
        ("multipleQAs", (pair, pair)) if number % 2 else ("singleAnswer", (pair,))
    )
    return Question(str(number), f"who is number {number}", (Annotation(kind, pairs),))


def test_what_tells_is_found_among_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        impression, "_RIDGE", 5.0
    )  # the shipped one is for thousands of questions
    compact = Scripted()
    found = fit_impression(compact, [asked(number) for number in range(300)])  # type: ignore[arg-type]
    others = [asked(number) for number in range(1000, 1200)]
    said = [found(compact.alone(one.text)) > 0 for one in others]
    assert (
        np.mean(
            [told == one.is_ambiguous for told, one in zip(said, others, strict=True)]
        )
        > 0.97
    )
    assert np.argmax(np.abs(found.weights)) == 0 and found.weights[0] > 0
    assert abs(found.weights[1]) < 1e-3 and np.isfinite(
        found.bias
    )  # what is always the same says nothing
