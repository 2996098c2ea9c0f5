"""Is a question ambiguous? Accuracy, precision, recall and F1 of the answer yes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.errors import BadInput


@dataclass(frozen=True, slots=True)
class Detection:
    """The four numbers of a yes-or-no decision."""

    accuracy: float
    precision: float
    recall: float
    f1: float


def detection(gold: Sequence[bool], predicted: Sequence[bool]) -> Detection:
    """Compare decisions, one for each question.

    >>> detection([True, True, False, False], [True, False, True, False])
    Detection(accuracy=0.5, precision=0.5, recall=0.5, f1=0.5)
    """
    if len(gold) != len(predicted) or not gold:
        raise BadInput(
            f"Detection needs one decision per question: {len(gold)} gold, {len(predicted)} predicted."
        )
    hits = sum(g and p for g, p in zip(gold, predicted, strict=True))
    right = sum(g == p for g, p in zip(gold, predicted, strict=True))
    precision = hits / sum(predicted) if any(predicted) else 0.0
    recall = hits / sum(gold) if any(gold) else 0.0
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return Detection(right / len(gold), precision, recall, f1)
