"""Near vectors kept side by side, so that a search reads a tenth of them: spherical k-means in numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
# Fewer vectors than this are one list: reading them all takes a millisecond or two.
FEWEST = 50_000
_ALWAYS_READ = 40_000
_BLOCK = 8192
_SAMPLE = 32  # vectors a list from which its centre is learned
_ROUNDS = 6


def how_many(count: int) -> int:
    """The square root balances finding the lists against reading them."""
    return 1 if count < FEWEST else round(count**0.5)


def how_many_to_read(lists: int, count: int) -> int:
    """A tenth holds nineteen in twenty of the nearest hundred of a million; of fewer, more is read in the same time."""
    return min(lists, max(1, round(lists * max(0.1, _ALWAYS_READ / max(count, 1)))))


def centres(read: Callable[[NDArray[np.intp]], Floats], count: int) -> Floats:
    """The middle of each list. `read` gives the vectors at these places; only a sample of them is asked for."""
    lists = how_many(count)
    random = np.random.default_rng(0)  # the same vectors give the same lists
    sample = read(
        np.sort(random.choice(count, size=min(count, lists * _SAMPLE), replace=False))
    )
    middles = sample[random.choice(len(sample), size=lists, replace=False)]
    for _ in range(_ROUNDS if lists > 1 else 1):
        nearest = np.concatenate(
            [nearest_list(block, middles) for block in _blocks(sample)]
        )
        order = np.argsort(nearest, kind="stable")
        used, starts = np.unique(nearest[order], return_index=True)
        middles[used] = np.add.reduceat(sample[order], starts, axis=0)
        empty = np.setdiff1d(np.arange(lists), used)
        middles[empty] = sample[random.choice(len(sample), size=len(empty))]
        lengths = np.linalg.norm(middles, axis=1, keepdims=True)
        middles /= np.where(lengths == 0, 1, lengths)
    return np.ascontiguousarray(middles, dtype=np.float32)


def nearest_list(vectors: Floats, middles: Floats) -> NDArray[np.intp]:
    return np.asarray(np.argmax(vectors @ middles.T, axis=1), dtype=np.intp)


def _blocks(vectors: Floats) -> Iterator[Floats]:
    return (vectors[start : start + _BLOCK] for start in range(0, len(vectors), _BLOCK))
