"""Whether it is worth asking back."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.models.compact.clarification.alignment import (
    FUNCTION_KINDS,
    split_words,
)
from whichsense.text.answers import group_answers
from whichsense.types import Case, Option


def has_differing_answers(case: Case) -> bool:
    """Whether at least two probable readings have answers that do not mean the same."""
    answers = [reading.answer for reading in case.readings]
    weights = [reading.confidence for reading in case.readings]
    return len(group_answers(answers, weights)) > 1


def is_a_reading_itself(case: Case) -> bool:
    """Whether the question, as it was asked, is one of the rewrites, and only of one: it says which is meant."""
    asked = split_words(case.question).bare
    as_asked = 0
    for reading in case.readings:
        if split_words(reading.question).bare == asked and not reading.source:
            as_asked += 1
    return as_asked == 1


def is_chosen_already(question: str, options: Sequence[Option]) -> bool:
    """Whether the question's own words choose: all content of one label is in it, and of no other.

    >>> film, book = Option("1", "the film"), Option("2", "the book")
    >>> is_chosen_already("Who wrote the film Dune?", [film, book]), is_chosen_already("Who wrote Dune?", [film, book])
    (True, False)
    """
    asked = set(split_words(question).bare)
    named = []
    for option in options:
        words = split_words(option.label)
        content = set()
        for word, kind in zip(words.bare, words.kinds, strict=True):
            if kind not in FUNCTION_KINDS:
                content.add(word)
        named.append(bool(content) and content <= asked)
    return sum(named) == 1
