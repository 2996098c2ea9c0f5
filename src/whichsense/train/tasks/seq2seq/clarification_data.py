"""Clarification questions to learn from: CAmbigNQ's, or, for other ambiguous questions, made from their rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from whichsense.datasets import ClarifiedQuestion, Question
from whichsense.text.clarification import parse_clarification


@dataclass(frozen=True, slots=True)
class ClarificationExample:
    """An ambiguous question, its clarification question with category and options, and the answers (aliases) of the
    options."""

    question: Question
    clarification: str
    category: str
    options: tuple[str, ...]
    answers: tuple[tuple[str, ...], ...]


def clarification_examples(questions: Sequence[Question]) -> list[ClarificationExample]:
    """Examples of all ambiguous questions whose readings can be told apart."""
    examples = []
    for question in questions:
        if isinstance(question, ClarifiedQuestion):
            example = _annotated_example(question)
        else:
            example = _derived_example(question)
        if example is not None:
            examples.append(example)
    return examples


def _annotated_example(question: ClarifiedQuestion) -> ClarificationExample | None:
    answers = question.clarified_answers
    parsed = parse_clarification(question.clarification, expected=len(answers) or None)
    if parsed is None:
        return None
    category = question.category or parsed.category
    options = question.options or parsed.options
    # Options without answers of their own cannot be learnt.
    if len(options) != len(answers):
        return None
    clarification = question.clarification
    return ClarificationExample(question, clarification, category, options, answers)


def _derived_example(question: Question) -> ClarificationExample | None:
    """For datasets with rewrites but no clarification questions: an option is what a rewrite adds to the prompt."""
    if not question.is_ambiguous:
        return None
    pairs = question.annotations[0].pairs
    options = tuple(_added_words(question.text, pair.question) for pair in pairs)
    if not all(options) or len(set(options)) < len(options) or len(options) < 2:
        return None
    *first, last = options
    clarification = f"Which one: {', '.join(first)}, or {last}?"
    answers = tuple(pair.answers for pair in pairs)
    return ClarificationExample(question, clarification, "one", options, answers)


def _added_words(prompt: str, rewrite: str) -> str:
    """The words that a rewrite has and its prompt does not, from the first to the last of them.

    >>> _added_words("Who won the race?", "Who won the 2012 London race?")
    '2012 London'
    """
    before = _bare_words(prompt.lower())
    after = _bare_words(rewrite.lower())
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    added: list[int] = []
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind in ("insert", "replace"):
            added += range(start, end)
    if not added:
        return ""
    words = _bare_words(rewrite)[added[0] : added[-1] + 1]
    return " ".join(words).replace(",", "")


def _bare_words(text: str) -> list[str]:
    return [word.strip("?.,") for word in text.split()]
