"""Search by meaning: int8 vectors in clusters."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numkong
import numpy as np
from numpy.typing import NDArray

from whichsense.errors import DamagedIndex

# Vectors on disk: int8 codes with a scale each, numpy's own files, and a header that names the set
# they form.
#
# vectors.json          names the set that is served; it is replaced last, so that a set is whole or not there
# codes-S.npy           count × dimensions, int8: vector ≈ code × scale
# scales-S.npy          count, float32
# rows-S.npy            count, uint32: the passage's row number
# by_row-S.npy          count, uint32: places in the order of their row numbers
# centres-S.npy         lists × dimensions, float32; starts-S.npy: where each list begins

FORMAT = 1
HEADER = "vectors.json"
_SOME = 16
PARTS: dict[str, type[np.generic]] = {
    "codes": np.int8,
    "scales": np.float32,
    "rows": np.uint32,
    "by_row": np.uint32,
    "centres": np.float32,
    "starts": np.int64,
}


def read_header(folder: Path) -> dict[str, Any] | None:
    """Return what `vectors.json` says; None where there is none."""
    path = folder / HEADER
    try:
        header: dict[str, Any] = json.loads(path.read_bytes())
        if header["format"] != FORMAT:
            raise DamagedIndex(
                f"'{path}' has format {header['format']}; this version reads {FORMAT}. Build it again."
            )
        for key in ("count", "dimensions", "lists"):
            if not isinstance(header[key], int):
                raise TypeError(f"{key} is not a number")
        str(header["set"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedIndex(
            f"'{path}' is damaged ({error}). Build the index again or restore the file."
        ) from None
    return header


def quantize(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return codes and scales: each vector uses the whole range of int8, whatever its largest number."""
    largest = np.abs(vectors).max(axis=1, initial=0)
    return encode(vectors), np.asarray(largest / 127, dtype=np.float32)


def encode(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return the codes alone, as a query needs them: its scale does not change the order."""
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    # A vector of zeros has no scale; any will do.
    scale = 127 / np.where(largest == 0, 1, largest)
    return np.rint(vectors * scale).astype(np.int8)


def top(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Return the places of the k highest scores, and of those that equal the last of them; in the order of places.

    >>> top(np.array([3, 1, 2, 5, 2], dtype=np.float32), 3).tolist()
    [0, 2, 3, 4]
    """
    if k >= len(scores):
        return np.arange(len(scores))
    places = np.arange(len(scores))
    some = scores[::_SOME]
    if k < len(some):  # what is below the k highest of some is below those of all
        places = np.flatnonzero(scores >= _kth(some, k))
    high = scores[places]
    return np.asarray(places[high >= _kth(high, k)])


def _kth(scores: NDArray[np.float32], k: int) -> np.float32:
    """Return the k-th highest score."""
    found: np.float32 = np.partition(scores, len(scores) - k)[len(scores) - k]
    return found


def map_part(folder: Path, part: str, name: str) -> NDArray[Any]:
    """Return a part of the set of this name, mapped into memory."""
    path, kind = folder / f"{part}-{name}.npy", PARTS[part]
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DamagedIndex(
            f"'{path}' is missing. Build the index again or restore the file."
        ) from None
    except (ValueError, OSError, EOFError) as error:
        raise DamagedIndex(
            f"'{path}' is damaged ({error}). Build the index again or restore the file."
        ) from None
    if array.dtype != kind:
        raise DamagedIndex(
            f"'{path}' holds {array.dtype}, not {np.dtype(kind)}. Build the index again."
        )
    return np.asarray(array)


def _dots(query: NDArray[np.int8], codes: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return int8 dot products, by the processor's own instructions."""
    if not len(codes):
        return np.zeros(0, dtype=np.float32)
    distances = numkong.cdist(query[None], codes, "dot")
    return np.asarray(distances, dtype=np.float32).reshape(-1)


def cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Not `vectors @ query`: BLAS shares even small products among threads and, on a busy machine, waits for them."""
    products: NDArray[np.float32] = np.einsum("ij,j->i", vectors, query)
    return products


class Pool:
    """Several sets of codes read as one, without the rows that are removed; of two with one row the later counts."""

    def __init__(
        self, parts: Sequence[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]], removed: set[int]
    ) -> None:
        self._codes, self._scales = [], []
        all_rows = [np.zeros(0, dtype=np.uint64)]
        for part_codes, part_scales, part_rows in parts:
            self._codes.append(part_codes)
            self._scales.append(part_scales)
            all_rows.append(np.asarray(part_rows, dtype=np.uint64))
        self._ends = np.cumsum([len(part_rows) for part_rows in all_rows[1:]])
        rows = np.concatenate(all_rows)
        # Reversed, so that np.unique finds the last place of each row.
        _, latest = np.unique(rows[::-1], return_index=True)
        places = np.sort(len(rows) - 1 - latest)
        gone = np.fromiter(removed, dtype=np.uint64, count=len(removed))
        self._places = places[~np.isin(rows[places], gone)]
        self.rows = rows[self._places]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: NDArray[np.intp]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Return codes and scales of these members."""
        # Places are counted over all parts, one behind the other.
        places = self._places[which]
        part_of = np.searchsorted(self._ends, places, side="right")
        taken = np.empty((len(which), self._codes[0].shape[1]), dtype=np.int8)
        scales = np.empty(len(which), dtype=np.float32)
        for part in range(len(self._codes)):
            own = part_of == part
            begin = self._ends[part - 1] if part else 0
            inside = places[own] - begin
            taken[own] = self._codes[part][inside]
            scales[own] = self._scales[part][inside]
        return taken, scales

    def decoded(self, which: NDArray[np.intp]) -> NDArray[np.float32]:
        taken, scales = self.take(which)
        return taken * scales[:, None]


# Near vectors kept side by side in lists, so that a search reads a tenth of them or less: k-means in
# numpy.

Floats = NDArray[np.float32]

_BLOCK = 8192  # vectors that are decoded or compared at a time
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
        """Return the square root of their number, which balances choosing lists against reading them."""
        return 1 if vectors < self.fewest else round(vectors**0.5)

    def lists_to_read(self, lists: int, vectors: int) -> int:
        """Return how many lists a search reads: the share falls with the fourth root (docs/dense.md).

        >>> [Clustering().lists_to_read(1000, vectors) for vectors in (200_000, 1_000_000, 16_000_000)]
        [200, 100, 50]
        """
        vectors = max(vectors, 1)
        share = 0.1 * math.sqrt(math.sqrt(min(1.0, self.tenth_up_to / vectors)))
        share = max(share, self.always_read / vectors)
        return min(lists, max(1, round(lists * share)))


def find_centres(
    read: Callable[[NDArray[np.intp]], Floats], count: int, lists: int, dimensions: int
) -> Floats:
    """Return the centre of each list (lists × dimensions). `read` gives the vectors at some of the `count` places."""
    if not count:
        return np.zeros((1, dimensions), dtype=np.float32)
    rng = np.random.default_rng(0)  # the same vectors give the same lists
    size = min(count, lists * _SAMPLE)
    sample = read(np.sort(rng.choice(count, size=size, replace=False)))
    centres = sample[rng.choice(len(sample), size=lists, replace=False)]
    for _ in range(_ROUNDS if lists > 1 else 1):
        nearest = [nearest_list(block, centres) for block in blocks(sample)]
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
    """Return the number of the nearest centre, for each vector."""
    return np.asarray(np.argmax(vectors @ centres.T, axis=1), dtype=np.intp)


def blocks(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the rows a block at a time: memory stays flat."""
    for start in range(0, len(rows), _BLOCK):
        yield rows[start : start + _BLOCK]


# The dense half of an index: one int8 vector a passage, near ones side by side, read through the page
# cache.
#
# It is not a graph. A graph answers in 2 ms instead of 6 for a million vectors, but finds less, is
# half as large again, and takes ten times as long to build, longer than encoding does
# (docs/dense.md).

# Candidates are found with int8 questions and scored again with float ones: this many times k.
_SECOND_LOOK = 3
_CLUSTERING = Clustering()


class Vectors:
    """One immutable set, opened without reading it: many processes share the page cache."""

    def __init__(
        self,
        folder: Path,
        header: dict[str, Any],
        parts: dict[str, NDArray[Any]],
        clustering: Clustering,
    ) -> None:
        self.folder = folder
        self.header = header
        # Shapes and kinds of the parts: see the codes above.
        self.codes = parts["codes"]
        self.scales = parts["scales"]
        self.rows = parts["rows"]
        self.by_row = parts["by_row"]
        self.centres = parts["centres"]
        self.starts = parts["starts"]
        self._clustering = clustering

    @classmethod
    def open(cls, folder: Path, clustering: Clustering = _CLUSTERING) -> Vectors:
        header = read_header(folder)
        if header is None:
            raise DamagedIndex(
                f"'{folder / HEADER}' is missing. Build the index again or restore the file."
            )
        parts = {part: map_part(folder, part, header["set"]) for part in PARTS}
        vectors = cls(folder, header, parts, clustering)
        for problem in vectors._misfits():
            raise DamagedIndex(f"'{folder / problem}. Build the index again or restore the file.")
        return vectors

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def dimensions(self) -> int:
        return int(self.header["dimensions"])

    def similarities(self, query: NDArray[np.float32], rows: Sequence[int]) -> NDArray[np.float32]:
        """Return the cosine between a query and the passages with these row numbers; 0 for one without a vector."""
        wanted = np.asarray(rows, dtype=np.int64)
        if not len(wanted) or not self.count:
            return np.zeros(len(wanted), dtype=np.float32)
        places = self._places_of(wanted)
        scores = self._scores(query, places)
        scores = np.where(self.rows[places] == wanted, scores, 0)
        return scores.astype(np.float32)

    def _places_of(self, rows: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return where the vectors of these rows are; any place for a row that has none.

        Not np.searchsorted with a sorter: it would copy the whole of `by_row` at each call.
        """
        last = int(self.rows[self.by_row[-1]])
        missing = last + 1 - self.count
        # At most the missing rows are not among those before a row.
        high = np.minimum(rows, self.count - 1)
        low = np.clip(rows - missing, 0, high)
        while np.any(low < high):
            middle = (low + high) // 2
            is_before = self.rows[self.by_row[middle]] < rows
            is_before &= low < high
            low = np.where(is_before, middle + 1, low)
            high = np.where(is_before, high, middle)
        return np.asarray(self.by_row[low], dtype=np.uint32)

    def check(self) -> list[str]:
        """Return what is wrong inside files that are whole: one line for each fault."""
        problems = list(self._misfits())
        if problems:
            return problems
        if not self._rows_are_ordered():
            problems.append(f"{self._name('by_row')}': row numbers are not in order")
        if np.any(np.diff(self.starts) < 0) or self.starts[0] != 0:
            problems.append(f"{self._name('starts')}': lists overlap")
        if not np.all(np.isfinite(self.scales)) or np.any(self.scales < 0):
            problems.append(f"{self._name('scales')}': not all are numbers")
        return problems

    def _rows_are_ordered(self) -> bool:
        if np.max(self.by_row, initial=0) >= max(self.count, 1):
            return False
        ordered = self.rows[self.by_row]
        return not np.any(ordered[1:] <= ordered[:-1])

    def _misfits(self) -> list[str]:
        count = self.header["count"]
        dimensions = self.header["dimensions"]
        lists = self.header["lists"]
        shapes = {
            "codes": (count, dimensions),
            "scales": (count,),
            "rows": (count,),
            "by_row": (count,),
            "centres": (lists, dimensions),
            "starts": (lists + 1,),
        }
        problems = [
            f"{self._name(part)}' has the wrong shape"
            for part, shape in shapes.items()
            if getattr(self, part).shape != shape
        ]
        if not problems and self.starts[-1] != count:
            problems.append(f"{self._name('starts')}' does not end at the last vector")
        return problems

    def _name(self, part: str) -> str:
        return f"{part}-{self.header['set']}.npy"

    def candidates(
        self, query: NDArray[np.float32], k: int, vectors: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.float32]]:
        """Return what the nearest k are chosen from (`nearest_of`): row numbers, int8 products, cosines.

        `vectors` are those of all sets that are searched together: with the same lists in each, the candidates of
        all are those of one set.
        """
        wanted = self._clustering.lists_to_read(len(self.centres), vectors)
        to_centres = cosines(self.centres, query)
        near = np.argpartition(-to_centres, wanted - 1)[:wanted]
        code = encode(query[None])[0]
        places, rough = [], []
        for number in np.sort(near):
            start, end = int(self.starts[number]), int(self.starts[number + 1])
            dots = _dots(code, self.codes[start:end])
            rough.append(dots * self.scales[start:end])
            places.append(range(start, end))
        all_rough = np.concatenate(rough)
        chosen = top(all_rough, _SECOND_LOOK * k)
        best = _members(places, chosen)
        rows = self.rows[best].astype(np.uint64)
        return rows, all_rough[chosen], self._scores(query, best)

    def _scores(self, query: NDArray[np.float32], places: NDArray[Any]) -> NDArray[np.float32]:
        return cosines(self.codes[places] * self.scales[places][:, None], query)


def _members(ranges: Sequence[range], which: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return some members of ranges that stand one behind the other.

    >>> _members([range(3, 5), range(7, 7), range(10, 13)], np.array([1, 2, 4])).tolist()
    [4, 10, 12]
    """
    ends = np.cumsum([len(one) for one in ranges])
    own = np.searchsorted(ends, which, side="right")
    # By so much a range begins later than the place where it stands.
    later = np.array([one.stop for one in ranges]) - ends
    return np.asarray(which + later[own], dtype=np.intp)


def nearest_of(
    keys: NDArray[Any], rough: NDArray[np.float32], cosines: NDArray[np.float32], k: int
) -> NDArray[np.intp]:
    """Return the places of the nearest k among candidates: int8 products choose, cosines decide, equal ones go by
    key.
    """
    best = top(rough, _SECOND_LOOK * k)
    order = np.lexsort((keys[best], -cosines[best]))[:k]
    return best[order]
