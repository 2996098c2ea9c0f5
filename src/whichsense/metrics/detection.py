"""Ambiguity detection: accuracy, precision, recall and F1 of "is the question ambiguous?"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.errors import BadInput


@dataclass(frozen=True, slots=True)
class DetectionScores:
    """The four numbers of a yes-or-no decision."""

    accuracy: float
    precision: float
    recall: float
    f1: float


def detection(gold: Sequence[bool], predicted: Sequence[bool]) -> DetectionScores:
    """Compare decisions, one for each question.

    >>> detection([True, True, False, False], [True, False, True, False])
    DetectionScores(accuracy=0.5, precision=0.5, recall=0.5, f1=0.5)
    """
    if len(gold) != len(predicted) or not gold:
        raise BadInput(
            f"Detection needs one decision per question: {len(gold)} gold, {len(predicted)} predicted."
        )
    true_positives = correct = 0
    for truth, decision in zip(gold, predicted, strict=True):
        true_positives += truth and decision
        correct += truth == decision
    # Where nothing is predicted or nothing is true, the measure is 0 by convention.
    precision = true_positives / sum(predicted) if any(predicted) else 0.0
    recall = true_positives / sum(gold) if any(gold) else 0.0
    f1 = 0.0
    if true_positives:
        f1 = 2 * precision * recall / (precision + recall)
    return DetectionScores(correct / len(gold), precision, recall, f1)
