"""REFUEL's summary numbers."""

from __future__ import annotations

from collections.abc import Sequence


def combined(f1_answers: float, f1_edit: float) -> float:
    """Comb.: the sum of F1ans over all questions and F1EDIT-F1, by which the AmbigQA leaderboard ranks systems.

    >>> combined(0.375, 0.25)
    0.625
    """
    return f1_answers + f1_edit


def answers_per_question(predictions: Sequence[Sequence[str]]) -> float:
    """How many question-answer pairs a system gives on average.

    >>> answers_per_question([["a"], ["a", "b"]])
    1.5
    """
    return sum(map(len, predictions)) / max(len(predictions), 1)
