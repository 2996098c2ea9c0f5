"""What the words of a question say of its ambiguity."""

from __future__ import annotations

import random

from whichsense.datasets import Annotation, QAPair, Question
from whichsense.train.compact.scorer.wording import fit_wording


def asked(number: int, text: str, *, ambiguous: bool) -> Question:
    pairs = tuple(
        QAPair((f"{text} {part}",), (f"a{part}",)) for part in range(1 + ambiguous)
    )
    kind = "multipleQAs" if ambiguous else "singleAnswer"
    return Question(str(number), text, (Annotation(kind, pairs),))


def drawn(count: int, seed: int) -> list[Question]:
    """Questions of who sang something have several readings mostly, those of capitals never."""
    luck = random.Random(seed)
    found = []
    for number in range(count):
        song = luck.random() < 0.5
        name = f"{luck.choice('abcdefgh')}{luck.choice('xyz')}"
        text = f"who sang the song {name}" if song else f"what is the capital of {name}"
        found.append(asked(number, text, ambiguous=song and luck.random() < 0.9))
    return found


def test_it_learns_what_such_questions_are_asked_of() -> None:
    wording = fit_wording(drawn(400, seed=1))
    assert (
        wording("who sang the song ax")
        > 1.5
        > -2
        > wording("what is the capital of ax")
    )
    assert wording("who sang ballads") > 0 > wording("what is the capital")
    assert wording.weights["who sang"] > 0 > wording.weights["#6"]


def test_words_that_say_nothing_leave_the_share_of_ambiguous_questions() -> None:
    same = [
        asked(number, f"when did x{number} end", ambiguous=number % 4 == 0)
        for number in range(200)
    ]
    chance = fit_wording(same)("when did anything end")
    assert -1.3 < chance < -0.9  # log odds of a quarter: -1.1
    assert abs(fit_wording(same, fewest=500)("when did anything end") - chance) < 0.1


def test_it_is_the_same_each_time() -> None:
    assert fit_wording(drawn(60, seed=2)) == fit_wording(drawn(60, seed=2))
