"""Linear probes of ambiguity: what a question's n-grams say, and the encoder's states of it."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from whichsense.lab.compact.scorer_fitting import fit_ngram_probe, fit_state_probe
from whichsense.lab.datasets import Annotation, QAPair, Question

WIDTH = 12


def asked(number: int, text: str, *, ambiguous: bool) -> Question:
    pairs = tuple(QAPair((f"{text} {part}",), (f"a{part}",)) for part in range(1 + ambiguous))
    kind = "multipleQAs" if ambiguous else "singleAnswer"
    return Question(str(number), text, (Annotation(kind, pairs),))


def drawn(count: int, seed: int) -> list[Question]:
    """Questions of who sang something have several readings mostly, those of capitals never."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        song = rng.random() < 0.5
        name = f"{rng.choice('abcdefgh')}{rng.choice('xyz')}"
        text = f"who sang the song {name}" if song else f"what is the capital of {name}"
        found.append(asked(number, text, ambiguous=song and rng.random() < 0.9))
    return found


def test_it_learns_what_such_questions_are_asked_of() -> None:
    wording = fit_ngram_probe(drawn(400, seed=1))
    assert wording("who sang the song ax") > 1.5 > -2 > wording("what is the capital of ax")
    assert wording("who sang ballads") > 0 > wording("what is the capital")
    assert wording.weights["who sang"] > 0 > wording.weights["#6"]


def test_words_that_say_nothing_leave_the_share_of_ambiguous_questions() -> None:
    same = [
        asked(number, f"when did x{number} end", ambiguous=number % 4 == 0) for number in range(200)
    ]
    chance = fit_ngram_probe(same)("when did anything end")
    assert -1.3 < chance < -0.9  # log odds of a quarter: -1.1
    assert abs(fit_ngram_probe(same, fewest=500)("when did anything end") - chance) < 0.1


def test_it_is_the_same_each_time() -> None:
    assert fit_ngram_probe(drawn(60, seed=2)) == fit_ngram_probe(drawn(60, seed=2))


@dataclass(frozen=True)
class Scripted:
    """States by the question's number: the first one tells, the others are noise, and one is always the same."""

    def alone(self, question: str) -> np.ndarray:
        number = int(question.rsplit(maxsplit=1)[-1])
        states = np.random.default_rng(number).normal(size=WIDTH)
        states[0] = 5.0 + (1.0 if number % 2 else -1.0) + 0.3 * states[0]
        states[1] = 7.0
        return states.astype(np.float32)


def numbered(number: int) -> Question:
    pair = QAPair((f"who is number {number}",), ("one",))
    kind, pairs = ("multipleQAs", (pair, pair)) if number % 2 else ("singleAnswer", (pair,))
    return Question(str(number), f"who is number {number}", (Annotation(kind, pairs),))


def test_what_tells_is_found_among_noise() -> None:
    compact = Scripted()
    questions = [numbered(number) for number in range(300)]
    # The default ridge is for thousands of questions.
    probe = fit_state_probe(compact, questions, ridge=5.0)  # type: ignore[arg-type]
    others = [numbered(number) for number in range(1000, 1200)]
    said = [probe(compact.alone(one.text)) > 0 for one in others]
    right = [label == one.is_ambiguous for label, one in zip(said, others, strict=True)]
    assert np.mean(right) > 0.97
    assert np.argmax(np.abs(probe.weights)) == 0 and probe.weights[0] > 0
    # What is always the same says nothing.
    assert abs(probe.weights[1]) < 1e-3 and np.isfinite(probe.bias)
