"""Find exact duplicates among millions of passages, in 11 to 22 bytes for each."""

from __future__ import annotations

from array import array
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

_SMALLEST = 16


def fingerprint(title: str, text: str) -> int:
    """64 bits that stand for a passage; never 0, which marks a free place in the table below."""
    body = f"{title}\n{text}".encode("utf-8", "surrogatepass")
    digest = blake2b(body, digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


class Seen:
    """A set of 64-bit hashes of title and text: an open-addressing table, because a set of ints takes 100 bytes each.

    The home of a hash is given by its highest bits, so the table is always in nearly sorted order, and growing it
    or reading it from a checkpoint is one sort and one running maximum.

    >>> seen = Seen()
    >>> [seen.new("Paris", text) for text in ("a city", "a myth", "a city")]
    [True, True, False]
    """

    def __init__(self) -> None:
        self._fill(np.empty(0, np.uint64), _SMALLEST)

    def __len__(self) -> int:
        return self._count

    def new(self, title: str, text: str) -> bool:
        """Whether this was not seen before; it is from now on."""
        key = fingerprint(title, text)
        table, place = self._table, key >> self._shift
        while held := table[place]:
            if held == key:
                return False
            place += 1
        table[place] = key
        self._count += 1
        if self._count >= self._limit or place >= self._last:
            self._fill(self.to_array(), 2 * self._homes)
        return True

    def to_array(self) -> NDArray[np.uint64]:
        """The hashes, sorted: for a checkpoint."""
        table = np.frombuffer(self._table, np.uint64)
        return np.sort(table[table != 0])

    @classmethod
    def from_array(cls, hashes: NDArray[np.uint64]) -> Seen:
        """What `to_array` gave."""
        seen = cls()
        hashes = np.asarray(hashes, np.uint64)
        if np.any(hashes[1:] <= hashes[:-1]):
            hashes = np.unique(hashes)
        homes = _SMALLEST
        while homes * 3 // 4 <= len(hashes):
            homes *= 2
        seen._fill(hashes, homes)
        return seen

    def _fill(self, hashes: NDArray[np.uint64], homes: int) -> None:
        """Lay sorted hashes out, each at its home or at the first free place behind it."""
        self._homes = homes  # a power of two
        self._count = len(hashes)
        self._limit = homes * 3 // 4  # beyond this the table grows
        self._shift = 64 - (homes.bit_length() - 1)
        ranks = np.arange(len(hashes), dtype=np.int64)
        places = (hashes >> np.uint64(self._shift)).astype(np.int64) - ranks
        highest = 0
        if len(hashes):
            # A place is the home, or one behind the place before.
            places = np.maximum.accumulate(places) + ranks
            highest = int(places[-1])
        # A run at the end may go beyond the last home.
        room = max(homes, highest) + 256
        self._last = room - 8
        self._table = array("Q", bytes(8 * room))
        np.frombuffer(self._table, np.uint64)[places] = hashes
