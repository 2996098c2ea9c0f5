"""ASQA's inputs for T5, as its figures 4 and 5 print them, and CAmbigNQ's clarified question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text and the title of its page."""

    text: str
    title: str


def _listed(sources: Sequence[SourceText]) -> str:
    texts = [f"info: {source.text} wikipedia: {source.title}" for source in sources]
    return " | ".join(texts)


def closed_book(question: str) -> str:
    """T5-C: the question alone."""
    return question


def open_book(question: str, sources: Sequence[SourceText]) -> str:
    """T5-O-K.

    >>> open_book("Who won?", [SourceText("Ann won.", "Race"), SourceText("Bob lost.", "Bob")])
    'Who won? context: info: Ann won. wikipedia: Race | info: Bob lost. wikipedia: Bob'
    """
    return f"{question} context: {_listed(sources)}"


def oracle(
    question: str,
    answers: Sequence[str],
    rewrites: Sequence[str],
    contexts: Sequence[SourceText],
    knowledge: Sequence[SourceText],
) -> str:
    """ORACLE: everything that annotators saw.

    >>> oracle("Who won?", ["Ann"], ["Who won in 2012?"], [SourceText("Ann won.", "Race")], [])
    'Who won? answers: Ann disambiguations: Who won in 2012? context1: info: Ann won. wikipedia: Race context2: '
    """
    readings = f"answers: {' | '.join(answers)} disambiguations: {' | '.join(rewrites)}"
    evidence = f"context1: {_listed(contexts)} context2: {_listed(knowledge)}"
    return f"{question} {readings} {evidence}"


def clarified(question: str, category: str, option: str) -> str:
    """An ambiguous question with one option of its clarification question (CAmbigNQ, section 3.3).

    >>> clarified("Who won the race?", "year", "2012")
    'Who won the race?, Which year: 2012'
    """
    return f"{question}, Which {category}: {option}"
