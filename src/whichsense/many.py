"""Stages over many questions: in one call where a stage can (`read_many`, …), one by one where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whichsense.protocols import Disambiguator, Reader, Verifier
from whichsense.types import Candidate, Hit, Reading


def read_all(
    reader: Reader, questions: Sequence[str], hits: Sequence[Sequence[Hit]]
) -> list[list[Candidate]]:
    """The answers to each question."""
    together: Any = getattr(reader, "read_many", None)
    if together is not None:
        found: list[list[Candidate]] = together(questions, hits)
        return found
    return [
        reader.read(question, seen)
        for question, seen in zip(questions, hits, strict=True)
    ]


def disambiguate_all(
    disambiguator: Disambiguator,
    questions: Sequence[str],
    answers: Sequence[Sequence[Candidate]],
    hits: Sequence[Sequence[Hit]],
) -> list[list[Reading]]:
    """The readings of each question."""
    together: Any = getattr(disambiguator, "disambiguate_many", None)
    if together is not None:
        found: list[list[Reading]] = together(questions, answers, hits)
        return found
    return [
        disambiguator.disambiguate(*one)
        for one in zip(questions, answers, hits, strict=True)
    ]


def verify_all(
    verifier: Verifier,
    questions: Sequence[str],
    readings: Sequence[Sequence[Reading]],
    hits: Sequence[Sequence[Hit]],
) -> list[list[Reading]]:
    """The readings of each question that hold."""
    together: Any = getattr(verifier, "verify_many", None)
    if together is not None:
        found: list[list[Reading]] = together(questions, readings, hits)
        return found
    return [
        verifier.verify(*one) for one in zip(questions, readings, hits, strict=True)
    ]
