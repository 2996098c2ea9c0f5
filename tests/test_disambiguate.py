"""Rewrites of one question differ wherever there is something to choose from."""

from __future__ import annotations

from itertools import permutations

from whichsense.stages.disambiguate import distinct

ASKED = "Who won the race?"


def test_the_likelier_keeps_what_two_want() -> None:
    first = [("Who won the race in 2012?", -0.1), ("Who won the first race?", -0.5)]
    second = [
        ("who won the race in 2012", -0.3),
        ("Who won the second race?", -0.4),
    ]  # the same to a person
    assert distinct(ASKED, [first, second]) == [
        "Who won the race in 2012?",
        "Who won the second race?",
    ]
    assert distinct(ASKED, [second, first]) == [
        "Who won the second race?",
        "Who won the race in 2012?",
    ]


def test_the_question_itself_is_the_last_choice() -> None:
    assert distinct(
        ASKED, [[("who won the race", -0.01), ("Who won the race in 2012?", -2.0)]]
    ) == ["Who won the race in 2012?"]
    assert distinct(ASKED, [[("Who won the race?", -0.01)], [], [("", -0.1)]]) == [
        ASKED,
        ASKED,
        ASKED,
    ]


def test_all_differ_where_each_has_enough() -> None:
    texts = [f"Who won the race of {year}?" for year in (2011, 2012, 2013)]
    for order in permutations(range(3)):
        choices = [
            [(texts[(place + shift) % 3], -0.1 * shift - 0.01 * order[place]) for shift in range(3)]
            for place in range(3)
        ]
        same = [
            [(text, score) for text, score in zip(texts, (-0.1, -0.2, -0.3), strict=True)]
            for _ in range(3)
        ]
        assert sorted(distinct(ASKED, choices)) == texts and sorted(distinct(ASKED, same)) == texts
