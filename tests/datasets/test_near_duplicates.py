"""near_duplicates equals the obvious slow way, without comparing all with all."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whichsense.lab.datasets import dataset, find_near_duplicates
from whichsense.text.words import words

TEXTS = st.lists(st.lists(st.sampled_from("abcdefghi"), max_size=9).map(" ".join), max_size=12)


def slowly(questions: list[str], against: list[str], threshold: float) -> dict[int, int]:
    found = {}
    for number, question in enumerate(questions):
        for other, text in enumerate(against):
            one, two = set(words(question)), set(words(text))
            same = one == two or len(one & two) / len(one | two) >= threshold
            if same:
                found[number] = other
                break
    return found


@given(TEXTS, TEXTS, st.sampled_from([0.1, 0.3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 0.9, 1.0]))
def test_it_equals_the_slow_way(questions: list[str], against: list[str], threshold: float) -> None:
    assert find_near_duplicates(questions, against, threshold) == slowly(
        questions, against, threshold
    )


def test_case_and_punctuation_do_not_matter() -> None:
    assert find_near_duplicates(["WHO sang 'Hurt'?", "???"], ["who sang hurt", "!"]) == {0: 0, 1: 1}


def test_a_threshold_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="threshold"):
        find_near_duplicates(["a"], ["a"], 0)


def test_few_pairs_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tens of thousands against thousands all pairs would take minutes."""
    chance = random.Random(7)
    vocabulary = [f"w{rank}" for rank in range(20_000)]
    weights = [1 / (rank + 5) for rank in range(20_000)]

    def texts(count: int) -> list[str]:
        return [
            " ".join(chosen)
            for chosen in zip(
                *[iter(chance.choices(vocabulary, weights, k=9 * count))] * 9, strict=True
            )
        ]

    compared = 0

    def counted(one: frozenset[str], other: frozenset[str], threshold: float) -> bool:
        nonlocal compared
        compared += 1
        return overlap_enough(one, other, threshold)

    overlap_enough = dataset._overlap_enough
    monkeypatch.setattr(dataset, "_overlap_enough", counted)
    find_near_duplicates(texts(8_000), texts(2_000))
    assert 0 < compared < 8_000 * 2_000 / 500
