"""Is it luck? Bootstrap intervals around a mean, and paired tests between two systems; seeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    p_permutation: float
    """How often chance alone gives a difference this large (two-sided)."""
    better: int
    worse: int
    equal: int
    """On how many questions B is better, worse, the same."""


def middle(scores: Sequence[float], samples: int = SAMPLES, seed: int = SEED) -> float:
    """The bootstrap's middle value, which ASQA's script prints in place of the mean.

    >>> middle([0.25, 0.25])
    0.25
    """
    import numpy as np

    if not len(scores):
        raise BadInput("A bootstrap needs at least one score.")
    means = resampled_sums(
        np.asarray(scores, dtype=np.float64)[:, None], samples, seed
    )[:, 0] / len(scores)
    return quantile(means, 0.5)


def quantile(values: Array, share: float) -> float:
    """The value below which a share of the values lies, interpolated.

    >>> import numpy as np
    >>> quantile(np.array([4.0, 1.0, 2.0, 3.0]), 0.5)
    2.5
    """
    ordered = sorted(values.tolist())  # numpy's own percentile takes 50 ms to warm up
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (place - below) * (ordered[above] - ordered[below]))


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
        draws = generator.integers(0, n, size=(size, n), dtype=np.int32)
        draws += n * np.arange(size, dtype=np.int32)[:, None]
        counts = np.bincount(draws.ravel(), minlength=size * n).reshape(size, n)
        parts.append(counts.astype(np.float64) @ table)
    return np.concatenate(parts)


def _flipped_sums(table: Array, samples: int, seed: int) -> Array:
    """Sums of the differences with random signs, one sign for each question: what chance alone gives."""
    import numpy as np

    generator, n = np.random.default_rng(seed), len(table)
    rows = max(1, min(samples, _CHUNK // n))
    parts = []
    for start in range(0, samples, rows):
        signs = generator.integers(
            0, 2, size=(min(rows, samples - start), n), dtype=np.int8
        )
        parts.append((2.0 * signs - 1.0) @ table)
    return np.concatenate(parts)


def paired_test(
    a: Sequence[float], b: Sequence[float], samples: int = 10_000, seed: int = SEED
) -> PairedTest:
    """Compare two systems, question by question: paired bootstrap and sign-flip permutation.

    >>> result = paired_test([0.0] * 30 + [1.0] * 10, [1.0] * 30 + [1.0] * 10)
    >>> result.difference, result.p_permutation < 0.001, (result.better, result.worse, result.equal)
    (0.75, True, (30, 0, 10))
    """
    return paired_tests({"": a}, {"": b}, samples, seed)[""]


def paired_tests(
    a: Mapping[str, Sequence[float]],
    b: Mapping[str, Sequence[float]],
    samples: int = 10_000,
    seed: int = SEED,
) -> dict[str, PairedTest]:
    """The same for several metrics of the same questions, with the same resamples for all."""
    import numpy as np

    sizes = {len(scores) for side in (a, b) for scores in side.values()}
    if len(sizes) != 1 or not min(sizes):
        raise BadInput(
            f"A paired test needs the same questions on both sides; there are {sorted(sizes)} scores."
        )
    n = sizes.pop()
    table = (
        np.array([b[name] for name in a], dtype=np.float64).T
        - np.array(list(a.values()), dtype=np.float64).T
    )
    observed = table.mean(axis=0)
    means = resampled_sums(table, samples, seed) / n
    flips = _flipped_sums(table, samples, seed + 1) / n
    # One is added: the observed difference is itself one of the possible outcomes.
    least = np.abs(observed) - 1e-12
    extreme = ((np.abs(flips) >= least).sum(axis=0) + 1) / (samples + 1)
    return {
        name: PairedTest(
            float(observed[i]),
            quantile(means[:, i], 0.025),
            quantile(means[:, i], 0.975),
            float(extreme[i]),
            int((table[:, i] > 1e-12).sum()),
            int((table[:, i] < -1e-12).sum()),
            int((np.abs(table[:, i]) <= 1e-12).sum()),
        )
        for i, name in enumerate(a)
    }
