"""Small helpers of English grammar that several forms share."""

from __future__ import annotations

import re

_DOUBLED = re.compile(r"\b(\w+) \1\b", re.IGNORECASE)


def is_lower_case(question: str) -> bool:
    """Whether a question is written in lower case throughout, as a search query is.

    >>> is_lower_case("who won the world cup"), is_lower_case("Who won the World Cup?")
    (True, False)
    """
    return question == question.lower()


def in_register(phrase: str, question: str) -> str:
    """A phrase of the evidence in the case of the question: a lower-case question stays one.

    >>> in_register("in Ohio", "where is springfield"), in_register("in Ohio", "Where is Springfield?")
    ('in ohio', 'in Ohio')
    """
    return phrase.lower() if is_lower_case(question) else phrase


def split_end(question: str) -> tuple[str, str]:
    """A question without its closing punctuation, and that punctuation.

    >>> split_end("Who won? ")
    ('Who won', '?')
    """
    bare = question.rstrip(" ?.!")
    return bare, question[len(bare) :].strip()


def append_phrase(question: str, phrase: str) -> str:
    """A question with a phrase at its end, before its closing punctuation.

    >>> append_phrase("Who won?", "in 1998")
    'Who won in 1998?'
    """
    bare, end = split_end(question)
    return f"{bare} {in_register(phrase, question)}{end}"


def has_doubled_word(text: str) -> bool:
    """Whether a word stands twice in a row.

    >>> has_doubled_word("in the the film"), has_doubled_word("in the film")
    (True, False)
    """
    return _DOUBLED.search(text) is not None
