"""The dense half of an index: one int8 vector a passage, near ones side by side, read through the page cache.

It is not a graph. A graph answers in 2 ms instead of 6 for a million vectors, but finds less, is half as large again,
and takes ten times as long to build, longer than encoding does (docs/dense.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import DamagedIndex, WhichsenseError
from whichsense.index.dense import codes
from whichsense.index.dense.clusters import Clustering
from whichsense.index.dense.codes import HEADER, PARTS

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
        # Shapes and kinds of the parts: see codes.py.
        self.codes = parts["codes"]
        self.scales = parts["scales"]
        self.rows = parts["rows"]
        self.by_row = parts["by_row"]
        self.centres = parts["centres"]
        self.starts = parts["starts"]
        self._clustering = clustering
        self._products = codes.products()

    @classmethod
    def open(cls, folder: Path, clustering: Clustering = _CLUSTERING) -> Vectors:
        header = codes.read_header(folder)
        if header is None:
            raise DamagedIndex(
                f"'{folder / HEADER}' is missing. Build the index again or restore the file."
            )
        parts = {}
        for part in PARTS:
            parts[part] = codes.map_part(folder, part, header["set"])
        vectors = cls(folder, header, parts, clustering)
        for problem in vectors._misfits():
            raise DamagedIndex(
                f"'{folder / problem}. Build the index again or restore the file."
            )
        return vectors

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def dimensions(self) -> int:
        return int(self.header["dimensions"])

    def search(
        self, queries: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
        """The row numbers of the nearest vectors to each query, and their cosines, best first.

        Every query gets the same number of them: k, or fewer where the lists that are read hold fewer.
        """
        queries = np.ascontiguousarray(np.atleast_2d(queries), dtype=np.float32)
        if queries.shape[1] != self.dimensions:
            raise WhichsenseError(
                f"The query has {queries.shape[1]} dimensions, the index {self.dimensions}."
            )
        nearest = []
        for query in queries:
            candidates, rough, scores = self.candidates(query, k, self.count)
            places = nearest_of(candidates, rough, scores, k)
            nearest.append((candidates[places], scores[places]))
        width = min((len(best) for best, _ in nearest), default=0)
        rows = np.empty((len(queries), width), dtype=np.uint64)
        cosines = np.empty((len(queries), width), dtype=np.float32)
        for number, (best, scores) in enumerate(nearest):
            rows[number] = best[:width]
            cosines[number] = scores[:width]
        return rows, cosines

    def similarities(
        self, query: NDArray[np.float32], rows: Sequence[int]
    ) -> NDArray[np.float32]:
        """The cosine between a query and the passages with these row numbers; 0 for one without a vector."""
        wanted = np.asarray(rows, dtype=np.int64)
        if not len(wanted) or not self.count:
            return np.zeros(len(wanted), dtype=np.float32)
        places = self._places_of(wanted)
        scores = self._scores(query, places)
        scores = np.where(self.rows[places] == wanted, scores, 0)
        return scores.astype(np.float32)

    def _places_of(self, rows: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Where the vectors of these rows are; any place for a row that has none.

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
        """What is wrong inside files that are whole: one line for each fault."""
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
        problems = []
        for part, shape in shapes.items():
            if getattr(self, part).shape != shape:
                problems.append(f"{self._name(part)}' has the wrong shape")
        if not problems and self.starts[-1] != count:
            problems.append(f"{self._name('starts')}' does not end at the last vector")
        return problems

    def _name(self, part: str) -> str:
        return f"{part}-{self.header['set']}.npy"

    def candidates(
        self, query: NDArray[np.float32], k: int, vectors: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.float32]]:
        """What the nearest k are chosen from (`nearest_of`): row numbers, int8 products, cosines.

        `vectors` are those of all sets that are searched together: with the same lists in each, the candidates of
        all are those of one set.
        """
        wanted = self._clustering.lists_to_read(len(self.centres), vectors)
        to_centres = codes.cosines(self.centres, query)
        near = np.argpartition(-to_centres, wanted - 1)[:wanted]
        code = codes.encode(query[None])[0]
        places, rough = [], []
        for number in np.sort(near):
            start, end = int(self.starts[number]), int(self.starts[number + 1])
            products = self._products(code, self.codes[start:end])
            rough.append(products * self.scales[start:end])
            places.append(range(start, end))
        all_rough = np.concatenate(rough)
        chosen = codes.top(all_rough, _SECOND_LOOK * k)
        best = _members(places, chosen)
        rows = self.rows[best].astype(np.uint64)
        return rows, all_rough[chosen], self._scores(query, best)

    def _scores(
        self, query: NDArray[np.float32], places: NDArray[Any]
    ) -> NDArray[np.float32]:
        return codes.cosines(self.codes[places] * self.scales[places][:, None], query)


def _members(ranges: Sequence[range], which: NDArray[np.intp]) -> NDArray[np.intp]:
    """Some members of ranges that stand one behind the other.

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
    """The places of the nearest k among candidates: int8 products choose, cosines decide, equal ones go by key."""
    best = codes.top(rough, _SECOND_LOOK * k)
    order = np.lexsort((keys[best], -cosines[best]))[:k]
    return best[order]
