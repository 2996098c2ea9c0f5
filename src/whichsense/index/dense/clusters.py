"""Near vectors kept side by side in lists, so that a search reads a tenth of them or less: k-means in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_BLOCK = 8192  # vectors that are compared with the centres at a time
_SAMPLE = 32  # vectors for each list from which its centre is learned
_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Clustering:
    """How many lists there are, and how many of them a search reads."""

    fewest: int = 50_000
    """Fewer vectors than this are one list: reading them all takes a millisecond or two."""
    always_read: int = 40_000
    """A search reads lists of about this many vectors, also where they are more than a tenth."""
    tenth_up_to: int = 1_000_000
    """Of more vectors than this the share that is read falls."""

    def list_count(self, vectors: int) -> int:
        """The square root balances the cost of choosing lists against that of reading them."""
        return 1 if vectors < self.fewest else round(vectors**0.5)

    def lists_to_read(self, lists: int, vectors: int) -> int:
        """The share falls with the fourth root: lists of more vectors are finer (docs/dense.md).

        >>> [Clustering().lists_to_read(1000, vectors) for vectors in (200_000, 1_000_000, 16_000_000)]
        [200, 100, 50]
        """
        vectors = max(vectors, 1)
        share = 0.1 * math.sqrt(math.sqrt(min(1.0, self.tenth_up_to / vectors)))
        share = max(share, self.always_read / vectors)
        return min(lists, max(1, round(lists * share)))


def find_centres(
    read: Callable[[NDArray[np.intp]], Floats], count: int, lists: int
) -> Floats:
    """The centre of each list (lists × dimensions). `read` gives the vectors at some of the `count` places."""
    rng = np.random.default_rng(0)  # the same vectors give the same lists
    size = min(count, lists * _SAMPLE)
    sample = read(np.sort(rng.choice(count, size=size, replace=False)))
    centres = sample[rng.choice(len(sample), size=lists, replace=False)]
    for _ in range(_ROUNDS if lists > 1 else 1):
        nearest = [nearest_list(block, centres) for block in _blocks(sample)]
        list_of = np.concatenate(nearest)
        order = np.argsort(list_of, kind="stable")
        used, starts = np.unique(list_of[order], return_index=True)
        # The sum of a list's vectors points where their mean does.
        centres[used] = np.add.reduceat(sample[order], starts, axis=0)
        empty = np.setdiff1d(np.arange(lists), used)
        centres[empty] = sample[rng.choice(len(sample), size=len(empty))]
        lengths = np.linalg.norm(centres, axis=1, keepdims=True)
        centres /= np.where(lengths == 0, 1, lengths)
    return np.ascontiguousarray(centres, dtype=np.float32)


def nearest_list(vectors: Floats, centres: Floats) -> NDArray[np.intp]:
    """The number of the nearest centre, for each vector."""
    return np.asarray(np.argmax(vectors @ centres.T, axis=1), dtype=np.intp)


def _blocks(vectors: Floats) -> Iterator[Floats]:
    for start in range(0, len(vectors), _BLOCK):
        yield vectors[start : start + _BLOCK]
