"""The dense half of an index: one int8 vector a passage, near ones side by side, read through the page cache.

No graph: of a million vectors it answers in 2 ms instead of 6, but finds less, is half as large again, and takes ten
times as long to build, longer than encoding does (docs/dense.md).
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import DamagedIndex, WhichsenseError
from whichsense.files import write_atomically
from whichsense.index.dense import clusters as lists
from whichsense.index.dense import codes
from whichsense.index.dense.codes import HEADER, PARTS

# Candidates are found with int8 questions and scored again with float ones: this many times k.
_SECOND_LOOK = 3
_CHECKPOINT_SECONDS = 20.0
_BLOCK = 8192
_PENDING = ("codes", "scales", "rows")
_PENDING_STATE = "pending.json"


class Vectors:
    """One immutable set, opened without reading it: many processes share the page cache."""

    def __init__(
        self, folder: Path, header: dict[str, Any], parts: dict[str, NDArray[Any]]
    ) -> None:
        self.folder, self.header = folder, header
        self.codes, self.scales, self.rows = (
            parts["codes"],
            parts["scales"],
            parts["rows"],
        )
        self.by_row, self.centres, self.starts = (
            parts["by_row"],
            parts["centres"],
            parts["starts"],
        )
        self._products = codes.products()

    @classmethod
    def open(cls, folder: Path) -> Vectors:
        header = codes.read_header(folder)
        if header is None:
            raise DamagedIndex(
                f"'{folder / HEADER}' is missing. Build the index again or restore the file."
            )
        parts = {
            part: codes.mapped(folder / f"{part}-{header['set']}.npy", kind)
            for part, kind in PARTS.items()
        }
        vectors = cls(folder, header, parts)
        if problem := next(iter(vectors._misfits()), None):
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
        found = [self._nearest(query, k) for query in queries]
        width = min((len(places) for places, _ in found), default=0)
        rows = np.array(
            [self.rows[places[:width]] for places, _ in found], dtype=np.uint64
        ).reshape(len(found), width)
        return rows, np.array(
            [scores[:width] for _, scores in found], dtype=np.float32
        ).reshape(len(found), width)

    def similarities(
        self, query: NDArray[np.float32], rows: Sequence[int]
    ) -> NDArray[np.float32]:
        """The cosine between a query and the passages with these row numbers; 0 for one without a vector."""
        wanted = np.asarray(rows, dtype=np.uint64)
        if not len(wanted) or not self.count:
            return np.zeros(len(wanted), dtype=np.float32)
        nearest = np.searchsorted(self.rows, wanted, sorter=self.by_row)
        places = self.by_row[np.minimum(nearest, self.count - 1)]
        return np.where(
            self.rows[places] == wanted, self._scores(query, places), 0
        ).astype(np.float32)

    def check(self) -> list[str]:
        """What is wrong inside files that are whole: one line for each fault."""
        problems = list(self._misfits())
        if problems:
            return problems
        ordered = (
            self.rows[self.by_row]
            if np.max(self.by_row, initial=0) < max(self.count, 1)
            else None
        )
        if ordered is None or np.any(ordered[1:] <= ordered[:-1]):
            problems.append(f"{self._name('by_row')}': row numbers are not in order")
        if np.any(np.diff(self.starts) < 0) or self.starts[0] != 0:
            problems.append(f"{self._name('starts')}': lists overlap")
        if not np.all(np.isfinite(self.scales)) or np.any(self.scales < 0):
            problems.append(f"{self._name('scales')}': not all are numbers")
        return problems

    def _misfits(self) -> list[str]:
        count, dimensions, parted = (
            self.header[key] for key in ("count", "dimensions", "lists")
        )
        shapes = {
            "codes": (count, dimensions),
            "scales": (count,),
            "rows": (count,),
            "by_row": (count,),
            "centres": (parted, dimensions),
            "starts": (parted + 1,),
        }
        wrong = [
            part for part, shape in shapes.items() if getattr(self, part).shape != shape
        ]
        problems = [f"{self._name(part)}' has the wrong shape" for part in wrong]
        if not wrong and self.starts[-1] != count:
            problems.append(f"{self._name('starts')}' does not end at the last vector")
        return problems

    def _name(self, part: str) -> str:
        return f"{part}-{self.header['set']}.npy"

    def _nearest(
        self, query: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        wanted = lists.how_many_to_read(len(self.centres), self.count)
        near = np.argpartition(-codes.cosines(self.centres, query), wanted - 1)[:wanted]
        ranges = [
            (int(self.starts[at]), int(self.starts[at + 1])) for at in np.sort(near)
        ]
        code = codes.coded(query[None])[0]
        rough = [
            self._products(code, self.codes[a:b]) * self.scales[a:b] for a, b in ranges
        ]
        places = np.concatenate([np.arange(a, b, dtype=np.intp) for a, b in ranges])
        best = places[codes.top(np.concatenate(rough), _SECOND_LOOK * k)]
        scores = self._scores(query, best)
        order = np.lexsort((self.rows[best], -scores))[:k]
        return best[order], scores[order]

    def _scores(
        self, query: NDArray[np.float32], places: NDArray[Any]
    ) -> NDArray[np.float32]:
        return codes.cosines(self.codes[places] * self.scales[places][:, None], query)


class VectorsWriter:
    """Adds to and removes from the set in `folder` and saves the result as a new set.

    What is added is appended to flat files and survives a kill: the next writer goes on from `next_row`. Vectors are
    put into lists only when all are there.
    """

    def __init__(self, folder: Path, dimensions: int | None = None) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._base = Vectors.open(folder) if (folder / HEADER).exists() else None
        known = self._base.dimensions if self._base else dimensions
        if known is None or (dimensions is not None and known != dimensions):
            raise WhichsenseError(
                f"'{folder}' has vectors of {known or 'no'} dimensions, not {dimensions}."
            )
        self.dimensions = known
        self._removed: set[int] = set()
        self._count, self.next_row = self._resumed()
        self._files = {part: open(self._path(part), "ab") for part in _PENDING}
        self._saved_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def add(self, rows: NDArray[np.uint64], vectors: NDArray[np.float32]) -> None:
        """One vector a row. Row numbers must be new; they need not be in order."""
        if vectors.shape != (len(rows), self.dimensions):
            raise WhichsenseError(
                f"{len(rows)} rows came with vectors of shape {vectors.shape}."
            )
        made, scales = codes.quantized(vectors)
        for part, array in (
            ("codes", made),
            ("scales", scales),
            ("rows", np.asarray(rows, dtype=np.uint64)),
        ):
            self._files[part].write(array.tobytes())
        self._count += len(rows)
        self.next_row = max(
            self.next_row, int(rows.max(initial=0)) + 1 if len(rows) else 0
        )
        if time.monotonic() - self._saved_at > _CHECKPOINT_SECONDS:
            self.checkpoint()

    def remove(self, rows: NDArray[np.uint64]) -> None:
        """Rows that have no vector are passed over."""
        self._removed.update(np.asarray(rows, dtype=np.uint64).tolist())

    def checkpoint(self) -> None:
        """From here on a crash loses nothing of what was added before."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        state = {
            "base": self._set,
            "count": self._count,
            "next_row": self.next_row,
            "dimensions": self.dimensions,
        }
        write_atomically(self.folder / _PENDING_STATE, json.dumps(state))
        self._saved_at = time.monotonic()

    def save(self) -> None:
        """Write the new set, serve it, and drop what it replaces. Without a change the old set stays as it is."""
        if not self._count and not self._removed and self._base:
            self._clear_pending()
            return
        for file in self._files.values():
            file.flush()
        name, old = secrets.token_hex(4), self._set
        header = self._write_set(name)
        write_atomically(
            self.folder / HEADER,
            json.dumps({"format": codes.FORMAT, "set": name, **header}),
        )
        self._clear_pending()
        if old:
            for part in PARTS:
                (self.folder / f"{part}-{old}.npy").unlink(missing_ok=True)
        self._base, self._count = Vectors.open(self.folder), 0
        self._removed.clear()

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    @property
    def _set(self) -> str | None:
        return str(self._base.header["set"]) if self._base else None

    def _path(self, part: str) -> Path:
        return self.folder / f"pending.{part}"

    def _width(self, part: str) -> int:
        return np.dtype(PARTS[part]).itemsize * (
            self.dimensions if part == "codes" else 1
        )

    def _resumed(self) -> tuple[int, int]:
        """How many vectors wait from an earlier run, and the row to go on with.

        What was written after that run's last checkpoint is cut off.
        """
        first = (
            int(self._base.rows.max(initial=0)) + 1
            if self._base and self._base.count
            else 0
        )
        try:
            state = json.loads((self.folder / _PENDING_STATE).read_bytes())
            same = state["base"] == self._set and state["dimensions"] == self.dimensions
            count, next_row = int(state["count"]), int(state["next_row"])
            whole = all(
                self._path(part).stat().st_size >= count * self._width(part)
                for part in _PENDING
            )
        except (OSError, ValueError, KeyError, TypeError):
            same = whole = False
        if not (same and whole):
            self._clear_pending()
            return 0, first
        for part in _PENDING:
            os.truncate(self._path(part), count * self._width(part))
        return count, next_row

    def _clear_pending(self) -> None:
        (self.folder / _PENDING_STATE).unlink(missing_ok=True)
        for part in _PENDING:
            if self._path(part).exists():
                os.truncate(self._path(part), 0)
                self._path(part).unlink()

    def _pool(self) -> codes.Pool:
        parts = (
            [(self._base.codes, self._base.scales, self._base.rows)]
            if self._base
            else []
        )
        waiting = [
            np.fromfile(self._path(part), dtype=PARTS[part])
            if part != "codes" or not self._count
            else np.memmap(self._path(part), dtype=PARTS[part], mode="r")
            for part in _PENDING
        ]
        return codes.Pool(
            [*parts, (waiting[0].reshape(-1, self.dimensions), waiting[1], waiting[2])],
            self._removed,
        )

    def _middles(self, pool: codes.Pool) -> NDArray[np.float32]:
        """The old lists serve until there should be half as many again."""
        if (
            self._base
            and self._base.count
            and lists.how_many(len(pool)) <= 1.5 * len(self._base.centres)
        ):
            return np.asarray(self._base.centres)
        if not len(pool):
            return np.zeros((1, self.dimensions), dtype=np.float32)
        return lists.centres(pool.decoded, len(pool))

    def _write_set(self, name: str) -> dict[str, int]:
        """Gather old and waiting vectors list by list, a block at a time: memory stays flat."""
        pool = self._pool()
        middles = self._middles(pool)
        everyone = np.arange(len(pool))
        nearest = [
            lists.nearest_list(pool.decoded(block), middles)
            for block in _blocks(everyone)
        ]
        in_list = np.concatenate(nearest or [everyone])
        order = np.argsort(in_list, kind="stable")
        rows = pool.rows[order]
        small = {
            "rows": rows,
            "by_row": np.argsort(rows),
            "scales": np.concatenate(
                [pool.take(block)[1] for block in _blocks(order)]
                or [np.zeros(0, np.float32)]
            ),
            "centres": middles,
            "starts": np.searchsorted(in_list[order], np.arange(len(middles) + 1)),
        }
        for part, array in small.items():
            with open(self.folder / f"{part}-{name}.npy", "wb") as file:
                np.save(file, np.asarray(array, dtype=PARTS[part]))
                _to_disk(file)
        with open(self.folder / f"codes-{name}.npy", "wb") as file:
            shape = (len(order), self.dimensions)
            np.lib.format.write_array_header_1_0(
                file, {"descr": "|i1", "fortran_order": False, "shape": shape}
            )
            for block in _blocks(order):
                file.write(pool.take(block)[0].tobytes())
            _to_disk(file)
        return {
            "count": len(order),
            "dimensions": self.dimensions,
            "lists": len(middles),
        }


def _blocks(places: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    return (places[start : start + _BLOCK] for start in range(0, len(places), _BLOCK))


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
