"""Micro-averaged precision, recall and F1 of CAmbigNQ's overlaps, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from whichsense.evaluation.scoring.result import Statistic, ratio_of
from whichsense.metrics.cambignq import Overlap, ratio

if TYPE_CHECKING:
    from whichsense.evaluation.scoring.result import Array


def overlap_metrics(name: str, overlaps: Sequence[Overlap]) -> dict[str, float | None]:
    """Precision, recall and F1 over all questions: {"option_precision": …, "option_recall": …, "option_f1": …}."""
    average = ratio(overlaps)
    return {
        f"{name}_precision": average.precision,
        f"{name}_recall": average.recall,
        f"{name}_f1": average.f1,
    }


def overlap_columns(
    name: str, overlaps: Sequence[Overlap]
) -> dict[str, Sequence[float]]:
    """One column for each part of a ratio: micro averages divide sums, not questions' scores."""
    return {
        f"{name}: precision sum": [overlap.precision_sum for overlap in overlaps],
        f"{name}: recall sum": [overlap.recall_sum for overlap in overlaps],
        f"{name}: predicted": [overlap.predicted for overlap in overlaps],
        f"{name}: gold": [overlap.gold for overlap in overlaps],
    }


def overlap_statistics(name: str) -> dict[str, Statistic]:
    """The metrics of `overlap_metrics` from the sums of `overlap_columns`."""
    precision = ratio_of(f"{name}: precision sum", f"{name}: predicted")
    recall = ratio_of(f"{name}: recall sum", f"{name}: gold")

    def f1(sums: Mapping[str, Array]) -> Array:
        import numpy as np

        p, r = precision(sums), recall(sums)
        mean: Array = 2 * p * r / np.maximum(p + r, 1e-12)
        return mean

    return {f"{name}_precision": precision, f"{name}_recall": recall, f"{name}_f1": f1}
