"""Clarification questions to learn from: CAmbigNQ's, or, for other ambiguous questions, made from their rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.datasets import ClarifiedQuestion, Question
from whichsense.models.compact.clarification.clarifier import clarify_as_annotators
from whichsense.text.clarification import parse_clarification
from whichsense.types import Reading


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
    """For datasets with rewrites but no clarification questions: what the compact clarifier asks."""
    if not question.is_ambiguous:
        return None
    pairs = question.annotations[0].pairs
    if len(pairs) < 2 or not all(pair.question for pair in pairs):
        return None
    readings = [Reading(pair.question, "") for pair in pairs]
    clarification = clarify_as_annotators(question.text, readings)
    options = tuple(option.label for option in clarification.options)
    if len(set(options)) < len(options):
        return None
    answers = tuple(pair.answers for pair in pairs)
    return ClarificationExample(
        question, clarification.question, clarification.category, options, answers
    )
