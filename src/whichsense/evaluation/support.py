"""Evaluate a support judge on claims with a label: which ones does the cited page support?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.datasets import Claim, load
from whichsense.errors import BadInput
from whichsense.files import as_json, write_atomically
from whichsense.jobs.progress import Progress, silent
from whichsense.metrics.bootstrap import quantile, resampled_sums
from whichsense.metrics.detection import area_under_curve
from whichsense.protocols import Support
from whichsense.provenance import provenance
from whichsense.text.function_words import SMALL_WORDS
from whichsense.text.words import words

_THRESHOLD = 0.5
_BATCH = 8  # claims judged at once
_FOLDS = 5
_SEED = 13


@dataclass(frozen=True, slots=True)
class SupportResult:
    """How well claims that are supported are told from those that are not, or only in part."""

    dataset: str
    judge: str
    claims: int
    supported: int
    balanced_accuracy: float
    """The mean of the shares of supported claims and of others that are judged right."""
    interval: tuple[float, float]
    """95%, by a bootstrap over claims."""
    supported_right: float
    others_right: float
    area: float
    """Under the ROC curve."""
    tuned_balanced_accuracy: float
    """With the threshold of each fifth of the claims chosen on the other four."""
    tuned_interval: tuple[float, float]
    overlap_balanced_accuracy: float
    """Of the share of the claim's words in the page, with thresholds chosen in the same way."""
    overlap_interval: tuple[float, float]
    overlap_area: float
    provenance: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def evaluate_support(
    dataset: str,
    judge: Support,
    *,
    name: str,
    limit: int | None = None,
    data_dir: str | Path | None = None,
    out: str | Path | None = None,
    progress: Progress = silent,
) -> SupportResult:
    """Judge every claim of a dataset by its evidence. A claim counts as supported from a probability of a half on."""
    data = load(dataset, Claim, data_dir=data_dir)
    claims = list(data)[:limit]
    labels = [claim.label == "supported" for claim in claims]
    if all(labels) or not any(labels):
        raise BadInput(
            f"'{dataset}' needs claims of both kinds. Leave --limit out, or raise it."
        )
    scores: list[float] = []
    for start in range(0, len(claims), _BATCH):
        batch = claims[start : start + _BATCH]
        pairs = [(claim.text, "\n".join(claim.evidence)) for claim in batch]
        scores += judge.supports(pairs)
        progress(len(scores) / len(claims), len(scores))
    overlaps = [word_overlap(claim.text, " ".join(claim.evidence)) for claim in claims]
    decisions = [score >= _THRESHOLD for score in scores]
    accuracy, interval = balanced_accuracy(labels, decisions)
    right = [
        decision == label for decision, label in zip(decisions, labels, strict=True)
    ]
    tuned, tuned_interval = balanced_accuracy(labels, tuned_decisions(labels, scores))
    by_overlap = tuned_decisions(labels, overlaps)
    overlap, overlap_interval = balanced_accuracy(labels, by_overlap)
    result = SupportResult(
        dataset,
        name,
        len(claims),
        sum(labels),
        accuracy,
        interval,
        _share([one for one, label in zip(right, labels, strict=True) if label]),
        _share([one for one, label in zip(right, labels, strict=True) if not label]),
        area_under_curve(labels, scores) or 0.0,
        tuned,
        tuned_interval,
        overlap,
        overlap_interval,
        area_under_curve(labels, overlaps) or 0.0,
        provenance([data.path]),
    )
    if out:
        write_atomically(Path(out), as_json(result.as_dict(), 2))
    return result


def balanced_accuracy(
    labels: Sequence[bool], decisions: Sequence[bool]
) -> tuple[float, tuple[float, float]]:
    """The mean of the accuracies on both labels, and its 95% bootstrap interval.

    >>> balanced_accuracy([True, False, False, False], [True, False, False, False])
    (1.0, (1.0, 1.0))
    >>> balanced_accuracy([True, True, False, False], [True, False, False, False])[0]
    0.75
    """
    rows = []
    for label, decision in zip(labels, decisions, strict=True):
        rows.append([label, label and decision, not label, not label and not decision])
    table = np.array(rows, dtype=np.float64)
    sums = resampled_sums(table)
    # A resample without one of the labels says nothing.
    sums = sums[(sums[:, 0] > 0) & (sums[:, 2] > 0)]
    resampled = (sums[:, 1] / sums[:, 0] + sums[:, 3] / sums[:, 2]) / 2
    own = table.sum(axis=0)
    value = float(own[1] / own[0] + own[3] / own[2]) / 2
    return value, (quantile(resampled, 0.025), quantile(resampled, 0.975))


def word_overlap(claim: str, text: str) -> float:
    """The share of a claim's content words that a text has.

    >>> word_overlap("It opened in 1990 in Rome", "Rome's station opened then.")
    0.6666666666666666
    """
    own = [word for word in words(claim) if word not in SMALL_WORDS]
    said = set(words(text))
    return _share([word in said for word in own]) if own else 1.0


def tuned_decisions(labels: Sequence[bool], scores: Sequence[float]) -> list[bool]:
    """Decisions by a threshold that was not chosen on the claim itself: each fold takes the best one of the others.

    >>> labels = [True, False] * 10
    >>> tuned_decisions(labels, [0.2 if label else 0.1 for label in labels]) == labels
    True
    """
    truth = np.array(labels)
    values = np.array(scores)
    folds = np.random.default_rng(_SEED).permutation(len(truth)) % _FOLDS
    decisions = np.zeros(len(truth), dtype=bool)
    for fold in range(_FOLDS):
        own = folds == fold
        decisions[own] = values[own] >= _best_threshold(truth[~own], values[~own])
    return [bool(one) for one in decisions]


def _best_threshold(labels: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """The score from which on "supported" gives the highest balanced accuracy."""
    best, highest = _THRESHOLD, 0.0
    for threshold in np.unique(scores):
        decided = scores >= threshold
        accuracy = decided[labels].mean() + (~decided[~labels]).mean()
        if accuracy > highest:
            best, highest = float(threshold), float(accuracy)
    return best


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values)
