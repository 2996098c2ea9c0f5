"""ASQA's inputs for T5, as its figures 4 and 5 print them, and CAmbigNQ's clarified question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the page that it stands on."""

    text: str
    title: str


def _listed(sources: Sequence[Source]) -> str:
    return " | ".join(
        f"info: {source.text} wikipedia: {source.title}" for source in sources
    )


def closed_book(question: str) -> str:
    """T5-C: the question alone."""
    return question


def open_book(question: str, sources: Sequence[Source]) -> str:
    """T5-O-K.

    >>> open_book("Who won?", [Source("Ann won.", "Race"), Source("Bob lost.", "Bob")])
    'Who won? context: info: Ann won. wikipedia: Race | info: Bob lost. wikipedia: Bob'
    """
    return f"{question} context: {_listed(sources)}"


def oracle(
    question: str,
    answers: Sequence[str],
    rewrites: Sequence[str],
    contexts: Sequence[Source],
    knowledge: Sequence[Source],
) -> str:
    """ORACLE: everything that the annotators saw.

    >>> oracle("Who won?", ["Ann"], ["Who won in 2012?"], [Source("Ann won.", "Race")], [])
    'Who won? answers: Ann disambiguations: Who won in 2012? context1: info: Ann won. wikipedia: Race context2: '
    """
    return (
        f"{question} answers: {' | '.join(answers)} disambiguations: {' | '.join(rewrites)} "
        f"context1: {_listed(contexts)} context2: {_listed(knowledge)}"
    )


def clarified(question: str, category: str, option: str) -> str:
    """An ambiguous question with one option of its clarification question (CAmbigNQ, section 3.3).

    >>> clarified("Who won the race?", "year", "2012")
    'Who won the race?, Which year: 2012'
    """
    return f"{question}, Which {category}: {option}"
