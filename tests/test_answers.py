"""Answers that mean the same are one; those that contradict each other stay apart."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whichsense.text.answers import (
    Date,
    fullest_form,
    group_answers,
    parse_date,
    parse_numbers,
    same_answer,
)

SAME = [
    ("4 July 1776", "July 4, 1776"),
    ("July 4th, 1776", "the 4th of July 1776"),
    ("Sunday, 4 July 1776", "1776-07-04"),
    ("May 1997", "1997"),
    ("May 5", "5 May 1997"),
    ("twelve", "12"),
    ("twenty-one", "21"),
    ("1.5 million", "1,500,000"),
    ("two hundred and six", "206 bones"),
    ("third", "3rd"),
    ("Tony Goldwyn", "actor Tony Goldwyn"),
    ("Tony Goldwyn", "Goldwyn"),
    ("The Beatles", "beatles"),
    ("Beyoncé", "Beyonce"),
    ("Spider-Man", "Spiderman"),
    ("U.S.", "United States of America"),
    ("NBC", "National Broadcasting Company"),
    ("WHO", "the World Health Organization"),
    ("John F. Kennedy", "John Fitzgerald Kennedy"),
    ("J. R. R. Tolkien", "J.R.R. Tolkien"),
    ("Simon & Garfunkel", "Simon and Garfunkel"),
    ("Portland, Oregon", "Portland"),
]
APART = [
    ("1997", "1998"),
    ("May 1997", "June 1997"),
    ("12", "112"),
    ("12 episodes", "13 episodes"),
    ("12 seasons", "12 episodes"),
    ("1.5 million", "15 million"),
    ("third", "3 goals"),
    ("Rocky", "Rocky II"),
    ("Henry VII", "Henry VIII"),
    ("Boeing 747", "Boeing 737"),
    ("York", "New York"),
    ("South Korea", "Korea"),
    ("George W. Bush", "George H. W. Bush"),
    ("Michael Jackson", "Janet Jackson"),
    ("Lon Chaney", "Lon Chaney Jr."),
    ("1997", "1997 votes"),
    ("Justin Timberlake", "Justin Timberlake and Chris Stapleton"),
    ("Nigel Lythgoe", "Nigel Lythgoe, Paula Abdul, Jason Derulo"),
    ("", "Dune"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same(one: str, other: str) -> None:
    assert same_answer(one, other) and same_answer(other, one)


@pytest.mark.parametrize(("one", "other"), APART)
def test_apart(one: str, other: str) -> None:
    assert not same_answer(one, other) and not same_answer(other, one)


NAMES = st.sampled_from(
    [
        "Tony Goldwyn",
        "Goldwyn",
        "New York",
        "US",
        "Henry",
        "actor",
        "The Hague",
        "12 episodes",
        "1997",
        "",
    ]
)
ANSWERS = st.text(max_size=20) | st.builds(" ".join, st.lists(NAMES, max_size=3))


@settings(max_examples=300, deadline=None)
@given(ANSWERS, ANSWERS)
def test_symmetric_and_reflexive(one: str, other: str) -> None:
    assert same_answer(one, one) and same_answer(one, other) == same_answer(other, one)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 3_000_000),
    st.integers(0, 3_000_000),
    st.sampled_from(["", " people", " goals in all"]),
)
def test_two_numbers_are_never_one(one: int, other: int, unit: str) -> None:
    for wide in (f"{one}{unit}", f"{one:,}{unit}"):
        assert same_answer(wide, f"{other:,}{unit}") == (one == other)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 999_999))
def test_number_words(value: int) -> None:
    assert parse_numbers(spelled(value))[0] == [(float(value), False)]
    assert same_answer(spelled(value), str(value))


def spelled(value: int) -> str:
    """A number in English words, the long way round."""
    units = "zero one two three four five six seven eight nine ten eleven".split()
    units += "twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    if value >= 1000:
        rest = f" {spelled(value % 1000)}" if value % 1000 else ""
        return f"{spelled(value // 1000)} thousand{rest}"
    if value >= 100:
        rest = f" and {spelled(value % 100)}" if value % 100 else ""
        return f"{units[value // 100]} hundred{rest}"
    if value >= 20:
        return tens[value // 10 - 2] + (f"-{units[value % 10]}" if value % 10 else "")
    return units[value]


@settings(max_examples=200, deadline=None)
@given(st.dates())
def test_dates_are_read_whichever_way(day: object) -> None:
    written = [day.strftime(f"%B {day.day}, %Y"), day.strftime(f"{day.day} %B %Y"), day.isoformat()]  # type: ignore[attr-defined]
    if day.year >= 1000:  # type: ignore[attr-defined]
        assert {parse_date(text) for text in written} == {Date(day.year, day.month, day.day)}  # type: ignore[attr-defined]


def test_groups_hold_no_contradiction() -> None:
    answers = ["1997", "May 1997", "June 1997", "Goldwyn", "Tony Goldwyn", "John Goldwyn", "1998"]
    groups = group_answers(answers, [0.3, 0.2, 0.1, 0.25, 0.2, 0.1, 0.05])
    assert [[answers[place] for place in group] for group in groups] == [
        ["1997", "May 1997"],
        ["Goldwyn", "Tony Goldwyn"],
        ["June 1997"],
        ["John Goldwyn"],
        ["1998"],
    ]
    for group in groups:
        assert all(same_answer(answers[a], answers[b]) for a in group for b in group)


def test_the_best_form() -> None:
    assert fullest_form(["Tony Goldwyn", "actor Tony Goldwyn"], [0.5, 0.4]) == "Tony Goldwyn"
    assert fullest_form(["1953", "29 May 1953", "May 1953"], [0.5, 0.3, 0.4]) == "29 May 1953"
    assert fullest_form(["1953", "1953", "29 May 1953"], [0.3, 0.3, 0.2]) == "1953"
    assert group_answers([], []) == []
