"""Clarification questions to learn from: CAmbigNQ's, or, for other ambiguous questions, made from their rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from whichsense.datasets import ClarifiedQuestion, Question
from whichsense.text.clarification import parse_clarification


@dataclass(frozen=True, slots=True)
class Clarified:
    """An ambiguous question, what asks back, its category and options, and the answers (aliases) of the options."""

    question: Question
    asks: str
    category: str
    options: tuple[str, ...]
    answers: tuple[tuple[str, ...], ...]


def clarified_questions(questions: Sequence[Question]) -> list[Clarified]:
    """All ambiguous ones whose readings can be told apart."""
    found = (
        _annotated(one) if isinstance(one, ClarifiedQuestion) else _derived(one)
        for one in questions
    )
    return [one for one in found if one is not None]


def _annotated(question: ClarifiedQuestion) -> Clarified | None:
    taken = parse_clarification(
        question.clarification, expected=len(question.clarified_answers) or None
    )
    if taken is None:
        return None
    category, options = (
        question.category or taken.category,
        question.options or taken.options,
    )
    if len(options) != len(question.clarified_answers):
        return None  # options without answers of their own cannot be learnt
    return Clarified(
        question, question.clarification, category, options, question.clarified_answers
    )


def _derived(question: Question) -> Clarified | None:
    """For datasets with rewrites but no clarification questions: an option is what a rewrite adds to the prompt."""
    if not question.is_ambiguous:
        return None
    pairs = question.annotations[0].pairs
    options = tuple(added(question.text, pair.question) for pair in pairs)
    if not all(options) or len(set(options)) < len(options) or len(options) < 2:
        return None
    *heads, last = options
    asks = f"Which one: {', '.join(heads)}, or {last}?"
    return Clarified(
        question, asks, "one", options, tuple(pair.answers for pair in pairs)
    )


def added(prompt: str, rewrite: str) -> str:
    """The words that a rewrite has and its prompt does not, from the first to the last of them.

    >>> added("Who won the race?", "Who won the 2012 London race?")
    '2012 London'
    """
    before, after = (
        [word.strip("?.,") for word in text.split()] for text in (prompt, rewrite)
    )
    new = [
        place
        for kind, _, _, start, end in SequenceMatcher(
            None,
            [word.lower() for word in before],
            [word.lower() for word in after],
            autojunk=False,
        ).get_opcodes()
        if kind in ("insert", "replace")
        for place in range(start, end)
    ]
    return " ".join(after[new[0] : new[-1] + 1]).replace(",", "") if new else ""
