"""Yes-or-no decisions: accuracy, precision, recall and F1, and the area under the curve of their scores."""

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


def area_under_curve(labels: Sequence[bool], scores: Sequence[float]) -> float | None:
    """The area under the ROC curve: how often a true item has a higher score than a false one, ties counted as half.

    None where all labels are the same.

    >>> area_under_curve([True, False, True, False], [0.9, 0.8, 0.8, 0.1])
    0.875
    """
    if len(labels) != len(scores):
        raise BadInput(
            f"An area needs one score per label: {len(labels)} labels, {len(scores)} scores."
        )
    positives = sum(labels)
    negatives = len(labels) - positives
    if not positives or not negatives:
        return None
    # By score: how many true and how many false items have it.
    counts: dict[float, list[int]] = {}
    for label, score in zip(labels, scores, strict=True):
        counts.setdefault(score, [0, 0])[not label] += 1
    wins = 0.0
    lower_negatives = 0
    for score in sorted(counts):
        true_count, false_count = counts[score]
        wins += true_count * (lower_negatives + false_count / 2)
        lower_negatives += false_count
    return wins / (positives * negatives)
