"""Bootstrap intervals of a mean and paired tests between two systems; seeded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whichsense.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

_SAMPLES = 1000
_PAIRED_SAMPLES = 10_000
_SEED = 13
_CHUNK = 2**22  # random numbers at once: a bound on memory
_EQUAL = 1e-12  # scores that differ less are equal


@dataclass(frozen=True, slots=True)
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
    """The median of the bootstrap, which ASQA's script prints in place of the mean.

    >>> middle([0.25, 0.25])
    0.25
    """
    import numpy as np

    if not len(scores):
        raise BadInput("A bootstrap needs at least one score.")
    column = np.asarray(scores, dtype=np.float64)[:, None]
    means = resampled_sums(column)[:, 0] / len(scores)
    return quantile(means, 0.5)


def quantile(values: Array, share: float) -> float:
    """The value below which a share of the values lies, interpolated.

    >>> import numpy as np
    >>> quantile(np.array([4.0, 1.0, 2.0, 3.0]), 0.5)
    2.5
    """
    # np.quantile interpolates by another formula, with another last bit, and takes 50 ms to warm up.
    ordered = sorted(values.tolist())
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    step = ordered[above] - ordered[below]
    return float(ordered[below] + (position - below) * step)


def resampled_sums(table: Array, samples: int = _SAMPLES, seed: int = _SEED) -> Array:
    """Column sums over resampled questions: from a row per question to a row per resample.

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
        counts = flat.reshape(size, n).astype(np.float64)
        parts.append(counts @ table)
    return np.concatenate(parts)


def _flipped_sums(table: Array, samples: int, seed: int) -> Array:
    """Column sums with a random sign for each question: what chance alone gives."""
    import numpy as np

    rng = np.random.default_rng(seed)
    n = len(table)
    parts = []
    for size in _chunk_sizes(samples, n):
        signs = rng.integers(0, 2, size=(size, n), dtype=np.int8)
        parts.append((2.0 * signs - 1.0) @ table)
    return np.concatenate(parts)


def _chunk_sizes(samples: int, n: int) -> Iterator[int]:
    """Split the samples into chunks of at most `_CHUNK` random numbers, n for each sample."""
    largest = max(1, min(samples, _CHUNK // n))
    for start in range(0, samples, largest):
        yield min(largest, samples - start)


def paired_test(a: Sequence[float], b: Sequence[float]) -> PairedTest:
    """Compare two systems, question by question: paired bootstrap and sign-flip permutation.

    >>> result = paired_test([0.0] * 30 + [1.0] * 10, [1.0] * 30 + [1.0] * 10)
    >>> result.difference, result.p_permutation < 0.001, (result.better, result.worse, result.equal)
    (0.75, True, (30, 0, 10))
    """
    return paired_tests({"": a}, {"": b})[""]


def paired_tests(
    a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]]
) -> dict[str, PairedTest]:
    """The same for several metrics of the same questions, with the same resamples for all."""
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
    b_scores = np.array(b_columns, dtype=np.float64).T
    differences = b_scores - a_scores
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
