"""The form of clarifications that a trained or a language model made: checked and repaired."""

from __future__ import annotations

from dataclasses import replace

from form import find_problems

from whichsense.models.compact.clarifier import repair
from whichsense.types import Clarification, Option, Reading

ONE = Reading("Who won the cup in 2016?", "Ann")
TWO = Reading("Who won the cup in 2017?", "Bea")
THREE = Reading("Who won the cup in 2018?", "Cyd")


def made(category: str, *options: tuple[str, tuple[Reading, ...]]) -> Clarification:
    listed = []
    for number, (label, readings) in enumerate(options, 1):
        listed.append(Option(str(number), label, readings=readings))
    question = f"Which {category}: {', '.join(option.label for option in listed)}?"
    return Clarification(category.title(), question, category, tuple(listed))


def repaired(clarification: Clarification) -> Clarification:
    result = repair(clarification)
    assert result is not None
    assert find_problems(result) == []
    return result


def test_what_is_well_formed_stays() -> None:
    good = made("season", ("2016", (ONE,)), ("2017", (TWO,)))
    assert find_problems(good) == []
    options = [(option.label, option.readings) for option in repaired(good).options]
    assert options == [("2016", (ONE,)), ("2017", (TWO,))]


def test_the_category_is_taken_out_of_the_options() -> None:
    bad = made("year", ("year 2016", (ONE,)), ("year 2017", (TWO,)))
    assert find_problems(bad) == ["'year' is repeated inside the options"]
    assert repaired(bad).question == "Which year: 2016, or 2017?"


def test_a_category_that_is_one_of_the_options_is_given_up() -> None:
    bad = made("city", ("the city", (ONE,)), ("the country", (TWO,)))
    assert repaired(bad).question == "Which one: the city, or the country?"


def test_options_without_readings_go_and_equal_ones_merge() -> None:
    bad = made(
        "one", ("The film", (ONE,)), ("the film.", (TWO,)), ("nothing", ()), ("the book", (THREE,))
    )
    options = repaired(bad).options
    assert [option.label for option in options] == ["The film", "the book"]
    assert options[0].readings == (ONE, TWO)
    assert [option.id for option in options] == ["1", "2"]


def test_a_reading_belongs_to_one_option() -> None:
    bad = made("one", ("a", (ONE, TWO)), ("b", (TWO, THREE)))
    assert [option.readings for option in repaired(bad).options] == [(ONE, TWO), (THREE,)]


def test_long_and_broken_labels() -> None:
    long = "the city near the mouth of the Cape Fear River " * 50
    bad = made("one", (f"\n{long}\t", (ONE,)), ("  “the\nbook”  ", (TWO,)))
    bad = replace(bad, header="A header that is far too long")
    good = repaired(bad)
    assert good.options[0].label == "the city near the mouth…"
    assert good.options[1].label == "the book"
    assert len(good.header) <= 12


def test_many_options_are_grouped() -> None:
    options = []
    for number in range(9):
        reading = Reading(f"Who won round {number}?", f"Winner {number}")
        options.append((f"round {number}", (reading,)))
    good = repaired(made("one", *options))
    assert len(good.options) == 6
    assert len(good.options[-1].options) == 4


def test_nothing_to_choose_from() -> None:
    assert repair(made("one", ("the film", (ONE,)))) is None
    assert repair(made("one")) is None
    assert repair(made("one", ("film", (ONE,)), ("the film", (TWO,)))) is None
