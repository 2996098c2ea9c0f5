"""Statistics of scores: bootstrap intervals and tests, detection, agreement of annotators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from operator import and_, eq
from typing import TYPE_CHECKING, Any

from whichsense.errors import BadInput
from whichsense.types import frozen

if TYPE_CHECKING:
    import numpy as np


# Bootstrap intervals of a mean and paired tests between two systems; seeded.

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[np.float64]]


_SAMPLES = 1000
_PAIRED_SAMPLES = 10_000
_SEED = 13
_CHUNK = 2**22  # random numbers at once: a bound on memory
_EQUAL = 1e-12  # scores that differ less are equal


@frozen
class PairedTest:
    """System B against system A on the same questions."""

    difference: float
    """Mean of B minus mean of A."""
    low: float
    high: float
    """The 95% interval of the difference."""
    p_permutation: float
    """How often random signs give a difference this large (two-sided)."""
    better: int
    worse: int
    equal: int
    """On how many questions B is better, worse, the same."""


def middle(scores: Sequence[float]) -> float:
    """Return the median of the bootstrap, which ASQA's script prints in place of the mean.

    >>> middle([0.25, 0.25])
    0.25
    """
    import numpy as np

    if not len(scores):
        raise BadInput("A bootstrap needs at least one score.")
    column = np.asarray(scores, dtype=np.float64)[:, None]
    return quantile(resampled_sums(column)[:, 0] / len(scores), 0.5)


def quantile(values: Array, share: float) -> float:
    """Return the value below which a share of the values lies, interpolated.

    >>> import numpy as np
    >>> quantile(np.array([4.0, 1.0, 2.0, 3.0]), 0.5)
    2.5
    """
    # np.quantile interpolates by another formula, with another last bit, and takes 50 ms to warm up.
    ordered = sorted(values.tolist())
    position = share * (len(ordered) - 1)
    below = int(position)
    step = ordered[min(below + 1, len(ordered) - 1)] - ordered[below]
    return float(ordered[below] + (position - below) * step)


def resampled_sums(table: Array, samples: int = _SAMPLES, seed: int = _SEED) -> Array:
    """Return column sums over resampled questions: from a row per question to a row per resample.

    Any statistic that is made of sums (a mean, a micro average, a corpus BLEU) gets its interval from these.

    >>> import numpy as np
    >>> resampled_sums(np.ones((4, 2)), samples=3)
    array([[4., 4.], [4., 4.], [4., 4.]])
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    n = len(table)
    parts = []
    for size in _chunk_sizes(samples, n):
        draws = rng.integers(0, n, size=(size, n), dtype=np.int32)
        # One bincount for all resamples: each has its own range of n numbers.
        draws += n * np.arange(size, dtype=np.int32)[:, None]
        flat = np.bincount(draws.ravel(), minlength=size * n)
        parts.append(flat.reshape(size, n).astype(np.float64) @ table)
    return np.concatenate(parts)


def _flipped_sums(table: Array, samples: int, seed: int) -> Array:
    """Return column sums with a random sign for each question: what chance alone gives."""
    import numpy as np

    rng = np.random.default_rng(seed)
    n = len(table)
    parts = [
        (2.0 * rng.integers(0, 2, size=(size, n), dtype=np.int8) - 1.0) @ table
        for size in _chunk_sizes(samples, n)
    ]
    return np.concatenate(parts)


def _chunk_sizes(samples: int, n: int) -> Iterator[int]:
    """Split the samples into chunks of at most `_CHUNK` random numbers, n for each sample."""
    largest = max(1, min(samples, _CHUNK // n))
    for start in range(0, samples, largest):
        yield min(largest, samples - start)


def paired_tests(
    a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]]
) -> dict[str, PairedTest]:
    """Compare two systems by several metrics, question by question: paired bootstrap and sign-flip permutation.

    All metrics share their resamples.

    >>> result = paired_tests({"em": [0.0] * 30 + [1.0] * 10}, {"em": [1.0] * 40})["em"]
    >>> result.difference, result.p_permutation < 0.001, (result.better, result.worse, result.equal)
    (0.75, True, (30, 0, 10))
    """
    import numpy as np

    sizes = set(map(len, a.values())) | set(map(len, b.values()))
    if len(sizes) != 1 or not min(sizes):
        raise BadInput(
            f"A paired test needs the same questions on both sides; there are {sorted(sizes)} scores."
        )
    n = sizes.pop()
    # Shapes: (questions, metrics), then (samples, metrics).
    a_columns = list(a.values())
    b_columns = [b[name] for name in a]
    a_scores = np.array(a_columns, dtype=np.float64).T
    differences = np.array(b_columns, dtype=np.float64).T - a_scores
    observed = differences.mean(axis=0)
    means = resampled_sums(differences, _PAIRED_SAMPLES, _SEED) / n
    flips = _flipped_sums(differences, _PAIRED_SAMPLES, _SEED + 1) / n
    threshold = np.abs(observed) - _EQUAL
    extreme = (np.abs(flips) >= threshold).sum(axis=0)
    # One is added: the observed difference is itself one of the possible outcomes.
    p_values = (extreme + 1) / (_PAIRED_SAMPLES + 1)
    tests = {}
    for column, name in enumerate(a):
        own = differences[:, column]
        is_equal = np.abs(own) <= _EQUAL
        tests[name] = PairedTest(
            difference=float(observed[column]),
            low=quantile(means[:, column], 0.025),
            high=quantile(means[:, column], 0.975),
            p_permutation=float(p_values[column]),
            better=int((own > _EQUAL).sum()),
            worse=int((own < -_EQUAL).sum()),
            equal=int(is_equal.sum()),
        )
    return tests


# Yes-or-no decisions: accuracy, precision, recall and F1, and the area under the curve of their
# scores.


@frozen
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
    true_positives = sum(map(and_, gold, predicted))
    correct = sum(map(eq, gold, predicted))
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


# Annotator agreement.


def kappa(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Return Cohen's kappa: agreement of two annotators beyond chance; 1 where they always agree.

    >>> kappa([True, True, False, False], [True, False, False, False])
    0.5
    """
    size = len(one)
    if size != len(other) or not size:
        raise BadInput(f"Kappa needs two labels for each item: {size} and {len(other)} given.")
    agreed = sum(map(eq, one, other)) / size
    # The agreement of two annotators who draw labels at random, each by their own frequencies.
    other_counts = Counter(other)
    products = sum(count * other_counts[label] for label, count in Counter(one).items())
    chance = products / size**2
    return 1.0 if chance == 1 else (agreed - chance) / (1 - chance)
