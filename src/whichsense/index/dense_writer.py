"""Encode passages and write their vectors in clusters; a stopped run goes on."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput, WhichsenseError
from whichsense.files import write_atomically
from whichsense.index import dense
from whichsense.index.dense import (
    HEADER,
    PARTS,
    Clustering,
    Vectors,
    blocks,
    find_centres,
    nearest_list,
)
from whichsense.index.lexical import Texts
from whichsense.jobs.limits import Progress, Stopped, stop_requested
from whichsense.protocols import Encoder

# The dense half of a build: encode passages that have no vector yet, in an order that can stop and go
# on.

_CHUNK = 1024  # passages between two looks at a requested stop


def encoder_of(name: str | None, given: Encoder | None) -> Encoder | None:
    """Return the encoder that an index was built with: the one given, if it is that one, or loaded by its name."""
    if given is not None and given.name != name:
        raise BadInput(
            f"The index was encoded with '{name}', not with '{given.name}'. Use the same encoder."
        )
    if given is None and name is not None:
        from whichsense.models.static import load_encoder

        return load_encoder(name)
    return given


def encode_rows(
    content: Path, encoder: Encoder, rows: range, progress: Progress, say: Callable[[str], None]
) -> None:
    """Vectors for these rows of the staged passages. Rows that an earlier, stopped run encoded are passed over.

    They wait in flat files until `put_into_lists`.
    """

    texts = Texts(content)
    with (
        stop_requested() as stop,
        VectorsWriter(content / "vectors", encoder.dimensions) as vectors,
    ):
        todo = range(max(rows.start, vectors.next_row), rows.stop)
        if len(todo) > _CHUNK:
            say(_estimated(encoder, texts, todo))
        for start in range(todo.start, todo.stop, _CHUNK):
            chunk = range(start, min(start + _CHUNK, rows.stop))
            encoded = encoder.encode_passages(_to_encode(texts, chunk))
            vectors.add(np.arange(chunk.start, chunk.stop, dtype=np.uint64), encoded)
            progress((chunk.stop - rows.start) / len(rows), chunk.stop - rows.start)
            if stop():
                vectors.checkpoint()
                raise Stopped("Stopped. Run the same command again: it resumes where it was.")
        vectors.checkpoint()


def put_into_lists(
    content: Path, encoder: Encoder, centres: NDArray[np.float32] | None = None
) -> None:
    """Make the vectors that wait searchable. `centres` are those of the lists, where they are given from outside."""

    with VectorsWriter(content / "vectors", encoder.dimensions) as vectors:
        vectors.save(centres)


def _to_encode(texts: Texts, rows: Sequence[int]) -> list[str]:
    return [f"{passage.title}\n{passage.text}" for passage in texts.fetch(rows)]


def _estimated(encoder: Encoder, texts: Texts, todo: range) -> str:
    """Return how long it will take: encoding can cost far more than indexing, so this is said before it starts."""
    from whichsense.models.static import estimate

    rate = estimate(encoder, _to_encode(texts, todo[:256]))
    duration = timedelta(seconds=round(len(todo) / rate))
    return (
        f"Encoding {len(todo):,} passages with '{encoder.name}' at about {rate:,.0f} a second takes about {duration}. "
        "Ctrl-C stops it; the same command resumes."
    )


# Writing the vectors of an index: they wait in a flat file, and are put into lists when all are there.

_CHECKPOINT_SECONDS = 20.0
_PENDING, _PENDING_STATE = "pending.vectors", "pending.json"


class VectorsWriter:
    """Adds to and removes from the set in `folder` and saves the result as a new set.

    What is added is appended to a flat file and survives a kill: the next writer goes on from `next_row`. Vectors are
    put into lists only when all are there.
    """

    def __init__(
        self, folder: Path, dimensions: int | None = None, clustering: Clustering | None = None
    ) -> None:
        self.folder = folder
        self._clustering = clustering or Clustering()
        folder.mkdir(parents=True, exist_ok=True)
        self._base = Vectors.open(folder) if (folder / HEADER).exists() else None
        known = self._base.dimensions if self._base else dimensions
        if known is None or (dimensions is not None and known != dimensions):
            raise WhichsenseError(
                f"'{folder}' has vectors of {known or 'no'} dimensions, not {dimensions}."
            )
        self.dimensions = known
        self._kind = np.dtype([("row", "<u8"), ("scale", "<f4"), ("codes", "i1", (known,))])
        self._removed: set[int] = set()
        self._count, self.next_row = self._resume()
        self._file = open(self.folder / _PENDING, "ab")
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
            raise WhichsenseError(f"{len(rows)} rows came with vectors of shape {vectors.shape}.")
        block = np.empty(len(rows), self._kind)
        block["row"] = rows
        block["codes"], block["scale"] = dense.quantize(vectors)
        self._file.write(block.tobytes())
        self._count += len(rows)
        if len(rows):
            self.next_row = max(self.next_row, int(rows.max()) + 1)
        if time.monotonic() - self._saved_at > _CHECKPOINT_SECONDS:
            self.checkpoint()

    def remove(self, rows: NDArray[np.uint64]) -> None:
        """Rows that have no vector are passed over."""
        self._removed.update(np.asarray(rows, dtype=np.uint64).tolist())

    def checkpoint(self) -> None:
        """From here on a crash loses nothing of what was added before."""
        _to_disk(self._file)
        state = {
            "base": self._set,
            "count": self._count,
            "next_row": self.next_row,
            "dimensions": self.dimensions,
        }
        write_atomically(self.folder / _PENDING_STATE, json.dumps(state))
        self._saved_at = time.monotonic()

    def save(self, centres: NDArray[np.float32] | None = None) -> None:
        """Write the new set, serve it, and drop what it replaces. Without a change the old set stays as it is.

        `centres` are those of the lists, where several sets share them.
        """
        if not self._count and not self._removed and self._base and centres is None:
            self._clear_pending()
            return
        self._file.flush()
        name = secrets.token_hex(4)
        old = self._set
        header: dict[str, object] = {**self._write_set(name, centres)}
        header = {"format": dense.FORMAT, "set": name, **header}
        write_atomically(self.folder / HEADER, json.dumps(header))
        self._clear_pending()
        # The header names the new set: nobody opens the old one any more.
        if old:
            for part in PARTS:
                (self.folder / f"{part}-{old}.npy").unlink(missing_ok=True)
        self._base, self._count = Vectors.open(self.folder), 0
        self._removed.clear()

    def close(self) -> None:
        self._file.close()

    @property
    def _set(self) -> str | None:
        return str(self._base.header["set"]) if self._base else None

    def _resume(self) -> tuple[int, int]:
        """Return how many vectors wait from an earlier run, and the row to go on with.

        What was written after that run's last checkpoint is cut off.
        """
        first = 0
        if self._base and self._base.count:
            first = int(self._base.rows.max()) + 1
        try:
            state = json.loads((self.folder / _PENDING_STATE).read_bytes())
            count, next_row = int(state["count"]), int(state["next_row"])
            size = count * self._kind.itemsize
            usable = (
                state["base"] == self._set
                and state["dimensions"] == self.dimensions
                and (self.folder / _PENDING).stat().st_size >= size
            )
        except (OSError, ValueError, KeyError, TypeError):
            usable = False
        if not usable:
            self._clear_pending()
            return 0, first
        os.truncate(self.folder / _PENDING, size)
        return count, next_row

    def _clear_pending(self) -> None:
        (self.folder / _PENDING_STATE).unlink(missing_ok=True)
        (self.folder / _PENDING).unlink(missing_ok=True)

    def pool(self) -> dense.Pool:
        """Return the vectors of the old set and those that wait."""
        parts = []
        if self._base:
            parts.append((self._base.codes, self._base.scales, self._base.rows))
        # An empty file cannot be mapped.
        read = np.memmap if self._count else np.fromfile
        waiting = np.asarray(read(self.folder / _PENDING, self._kind))
        parts.append((waiting["codes"], waiting["scale"], waiting["row"]))
        return dense.Pool(parts, self._removed)

    def _centres(self, pool: dense.Pool) -> NDArray[np.float32]:
        lists = self._clustering.list_count(len(pool))
        centres = self.serving_centres(lists)
        if centres is None:
            centres = find_centres(pool.decoded, len(pool), lists, self.dimensions)
        return centres

    def serving_centres(self, lists: int) -> NDArray[np.float32] | None:
        """Return the old lists serve until there should be half as many again; None then, or where there are none."""
        if self._base and self._base.count and lists <= 1.5 * len(self._base.centres):
            return np.asarray(self._base.centres)
        return None

    def _write_set(self, name: str, centres: NDArray[np.float32] | None) -> dict[str, int]:
        """Gather old and waiting vectors list by list, a block at a time: memory stays flat."""
        pool = self.pool()
        if centres is None:
            centres = self._centres(pool)
        everyone = np.arange(len(pool))
        nearest = [everyone[:0]]
        for block in blocks(everyone):
            nearest.append(nearest_list(pool.decoded(block), centres))
        list_of = np.concatenate(nearest)  # the list of each vector
        # Vectors of one list stand side by side, in the order in which they came.
        order = np.argsort(list_of, kind="stable")
        rows = pool.rows[order]
        scales = [np.zeros(0, np.float32)]
        for block in blocks(order):
            scales.append(pool.take(block)[1])
        small = {
            "rows": rows,
            "by_row": np.argsort(rows),
            "scales": np.concatenate(scales),
            "centres": centres,
            "starts": np.searchsorted(list_of[order], np.arange(len(centres) + 1)),
        }
        for part, array in small.items():
            with open(self.folder / f"{part}-{name}.npy", "wb") as file:
                np.save(file, np.asarray(array, dtype=PARTS[part]))
                _to_disk(file)
        self._write_codes(name, pool, order)
        return {"count": len(order), "dimensions": self.dimensions, "lists": len(centres)}

    def _write_codes(self, name: str, pool: dense.Pool, order: NDArray[np.intp]) -> None:
        """Codes are too many for memory: numpy's header, then block by block."""
        shape = (len(order), self.dimensions)
        header = {"descr": "|i1", "fortran_order": False, "shape": shape}
        with open(self.folder / f"codes-{name}.npy", "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks(order):
                file.write(pool.take(block)[0].tobytes())
            _to_disk(file)


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
