"""Clarification questions taken apart: the traps of the released parser, done right."""

from __future__ import annotations

import pytest

from whichsense.text.clarification import parse_clarification


@pytest.mark.parametrize(
    ("question", "category", "options"),
    [
        ("Which version: the 2002 film, the book, or the play?", "version", ("the 2002 film", "the book", "the play")),
        ("Which one: film or book?", "one", ("film", "book")),
        ("Which colour: orange, or red?", "colour", ("orange", "red")),
        ("Which day: July 4, 1776, or August 2, 1776?", "day", ("July 4, 1776", "August 2, 1776")),
        ("Which series: F, E variant or E?", "series", ("F", "E variant", "E")),
        ("In which context: in the season, or with playoffs?", "context", ("in the season", "with playoffs")),
        ("For which year? 2010, 2007, current, or plans?", "year", ("2010", "2007", "current", "plans")),
        ("Which time: 10:30, or noon?", "time", ("10:30", "noon")),
        ("which one: a", "one", ("a",)),
        ("Do you mean the film or the book?", "", ()),
        ("", "", ()),
    ],
)  # fmt: skip
def test_category_and_options(question: str, category: str, options: tuple[str, ...]) -> None:
    found = parse_clarification(question)
    assert ((found.category, found.options) if found else ("", ())) == (category, options)


@pytest.mark.parametrize(
    ("question", "expected", "options"),
    [
        ("Which place: Paris, or London, England?", None, ("Paris", "London, England")),
        ("Which place: Paris, or London, Oslo?", 3, ("Paris", "London", "Oslo")),
        ("Which city: Rome, Paris, France?", 2, ("Rome", "Paris, France")),
    ],
)
def test_the_number_of_options_settles_what_a_comma_means(
    question: str, expected: int | None, options: tuple[str, ...]
) -> None:
    found = parse_clarification(question, expected)
    assert found is not None
    assert found.options == options
