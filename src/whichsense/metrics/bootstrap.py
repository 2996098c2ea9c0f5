"""Is it luck? Bootstrap intervals around a mean, and paired tests between two systems; seeded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whichsense.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

SAMPLES = 1000
SEED = 13
_CHUNK = 2**22  # numbers drawn at once: a bound on memory


@dataclass(frozen=True, slots=True)
class PairedTest:
    """System B against system A on the same questions."""

    difference: float
    """Mean of B minus mean of A."""
    low: float
    high: float
    """The 95% interval of the difference."""
    p_bootstrap: float
    p_permutation: float
    """How often chance alone gives a difference this large (two-sided)."""
    better: int
    worse: int
    equal: int
    """On how many questions B is better, worse, the same."""


def interval(scores: Sequence[float], samples: int = SAMPLES, seed: int = SEED) -> tuple[float, float]:
    """The 95% bootstrap interval of the mean.

    >>> interval([0.5, 0.5, 0.5])
    (0.5, 0.5)
    """
    low, _, high = _percentiles(scores, samples, seed)
    return low, high


def middle(scores: Sequence[float], samples: int = 1000, seed: int = SEED) -> float:
    """The bootstrap's middle value, which ASQA's script prints in place of the mean.

    >>> middle([0.25, 0.25])
    0.25
    """
    return _percentiles(scores, samples, seed)[1]


def _percentiles(scores: Sequence[float], samples: int, seed: int) -> tuple[float, float, float]:
    import numpy as np

    if not len(scores):
        raise BadInput("An interval needs at least one score.")
    means = resampled_sums(np.asarray(scores, dtype=np.float64)[:, None], samples, seed)[:, 0] / len(scores)
    low, mid, high = np.percentile(means, [2.5, 50, 97.5])
    return float(low), float(mid), float(high)


def resampled_sums(table: Array, samples: int = SAMPLES, seed: int = SEED) -> Array:
    """Sums over resampled questions: from a row per question to a row per resample.

    Any statistic that is made of sums (a mean, a micro average, a corpus BLEU) gets its interval from these.

    >>> import numpy as np
    >>> resampled_sums(np.ones((4, 2)), samples=3)
    array([[4., 4.], [4., 4.], [4., 4.]])
    """
    import numpy as np

    generator, n = np.random.default_rng(seed), len(table)
    rows = max(1, min(samples, _CHUNK // n))
    parts = []
    for start in range(0, samples, rows):
        size = min(rows, samples - start)
        draws = generator.integers(0, n, size=(size, n), dtype=np.int32) + n * np.arange(size)[:, None]
        counts = np.bincount(draws.ravel(), minlength=size * n).reshape(size, n)
        parts.append(counts.astype(np.float64) @ table)
    return np.concatenate(parts)


def _flipped_means(differences: Array, samples: int, seed: int) -> Array:
    """Means of the differences with random signs: what chance alone gives."""
    import numpy as np

    generator, n = np.random.default_rng(seed), len(differences)
    rows = max(1, min(samples, _CHUNK // n))
    parts = []
    for start in range(0, samples, rows):
        signs = generator.integers(0, 2, size=(min(rows, samples - start), n), dtype=np.int8)
        parts.append((2.0 * signs - 1.0) @ differences / n)
    return np.concatenate(parts)


def paired_test(a: Sequence[float], b: Sequence[float], samples: int = 10_000, seed: int = SEED) -> PairedTest:
    """Compare two systems, question by question: paired bootstrap and sign-flip permutation.

    >>> result = paired_test([0.0] * 30 + [1.0] * 10, [1.0] * 30 + [1.0] * 10)
    >>> result.difference, result.p_permutation < 0.001, (result.better, result.worse, result.equal)
    (0.75, True, (30, 0, 10))
    """
    import numpy as np

    if len(a) != len(b) or not len(a):
        raise BadInput(f"A paired test needs the same questions on both sides: {len(a)} and {len(b)} given.")
    differences = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    observed, n = float(differences.mean()), len(differences)
    means = resampled_sums(differences[:, None], samples, seed)[:, 0] / n
    low, high = np.percentile(means, [2.5, 97.5])
    flips = _flipped_means(differences, samples, seed + 1)
    # One is added: the observed difference is itself one of the possible outcomes.
    tail = 1e-12 * max(1.0, abs(observed))
    extreme = int((np.abs(flips) >= abs(observed) - tail).sum())
    shifted = int((np.abs(means - observed) >= abs(observed) - tail).sum())
    return PairedTest(
        observed,
        float(low),
        float(high),
        min(1.0, (shifted + 1) / (samples + 1)),
        min(1.0, (extreme + 1) / (samples + 1)),
        int((differences > 1e-12).sum()),
        int((differences < -1e-12).sum()),
        int((np.abs(differences) <= 1e-12).sum()),
    )
