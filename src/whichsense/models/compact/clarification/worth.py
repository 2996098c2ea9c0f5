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
    """Whether at least two readings have answers that do not mean the same."""
    answers = [reading.answer for reading in case.readings]
    weights = [reading.confidence for reading in case.readings]
    return len(group_answers(answers, weights)) > 1


def is_a_reading_itself(case: Case) -> bool:
    """Whether the question, as it was asked, is one of the rewrites, and only of one: it says which is meant."""
    asked = split_words(case.question).bare
    as_asked = 0
    for reading in case.readings:
        is_told_apart = reading.source or reading.label
        if split_words(reading.question).bare == asked and not is_told_apart:
            as_asked += 1
    return as_asked == 1


def is_chosen_already(question: str, options: Sequence[Option]) -> bool:
    """Whether the question's own words choose: all content of one label is in it, and of no other, and that option's
    rewrite leaves nothing of the question out (*Who wrote and sang it?* asks for both).

    >>> from whichsense.types import Reading
    >>> film = Option("1", "the film", readings=(Reading("Who wrote the film Dune by Lynch?", "Lynch"),))
    >>> book = Option("2", "the book", readings=(Reading("Who wrote the book Dune?", "Herbert"),))
    >>> is_chosen_already("Who wrote the film Dune?", [film, book]), is_chosen_already("Who wrote Dune?", [film, book])
    (True, False)
    """
    asked = _content(question)
    named = []
    for option in options:
        content = _content(option.label)
        if content and content <= asked:
            named.append(option)
    if len(named) != 1:
        return False
    return all(asked <= _content(reading.question) for reading in named[0].readings)


def _content(text: str) -> set[str]:
    words = split_words(text)
    content = set()
    for word, kind in zip(words.bare, words.kinds, strict=True):
        if kind not in FUNCTION_KINDS:
            content.add(word)
    return content
