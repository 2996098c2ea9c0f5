"""Vectors on disk: int8 codes with a scale each, numpy's own files, and a header that names the set they form.

vectors.json          names the set that is served; it is replaced last, so that a set is whole or not there
codes-S.npy           count × dimensions, int8: vector ≈ code × scale
scales-S.npy          count, float32
rows-S.npy            count, uint64: the passage's row number
by_row-S.npy          count, uint32: places in the order of their row numbers
centres-S.npy         lists × dimensions, float32; starts-S.npy: where each list begins
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import DamagedIndex

FORMAT = 1
HEADER = "vectors.json"
PARTS: dict[str, type[np.generic]] = {
    "codes": np.int8,
    "scales": np.float32,
    "rows": np.uint64,
    "by_row": np.uint32,
    "centres": np.float32,
    "starts": np.int64,
}

Products = Callable[[NDArray[np.int8], NDArray[np.int8]], NDArray[np.float32]]


def read_header(folder: Path) -> dict[str, Any] | None:
    """What `vectors.json` says; None where there is none."""
    path = folder / HEADER
    try:
        header: dict[str, Any] = json.loads(path.read_bytes())
        if header["format"] != FORMAT:
            raise DamagedIndex(
                f"'{path}' has format {header['format']}; this version reads {FORMAT}. Build it again."
            )
        if not all(
            isinstance(header[key], int) for key in ("count", "dimensions", "lists")
        ):
            raise TypeError("a number is missing")
        str(header["set"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedIndex(
            f"'{path}' is damaged ({error}). Build the index again or restore the file."
        ) from None
    return header


def quantized(
    vectors: NDArray[np.float32],
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Codes and scales: each vector uses the whole range of int8, whatever its largest number."""
    largest = np.abs(vectors).max(axis=1, initial=0)
    return coded(vectors), np.asarray(largest / 127, dtype=np.float32)


def coded(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    return np.rint(vectors * (127 / np.where(largest == 0, 1, largest))).astype(np.int8)


def top(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    return (
        np.argpartition(-scores, k - 1)[:k]
        if k < len(scores)
        else np.arange(len(scores))
    )


def mapped(path: Path, kind: type[np.generic]) -> NDArray[Any]:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DamagedIndex(
            f"'{path}' is missing. Build the index again or restore the file."
        ) from None
    except (ValueError, OSError, EOFError) as error:
        raise DamagedIndex(
            f"'{path}' is damaged ({error}). Build the index again or restore the file."
        ) from None
    if found.dtype != kind:
        raise DamagedIndex(
            f"'{path}' holds {found.dtype}, not {np.dtype(kind)}. Build the index again."
        )
    return np.asarray(found)


def products() -> Products:
    """int8 dot products. numkong has the processor's own instructions for them."""
    try:
        fast: ModuleType = importlib.import_module("numkong")
    except ImportError:
        return _products_by_numpy

    def dots(query: NDArray[np.int8], codes: NDArray[np.int8]) -> NDArray[np.float32]:
        if not len(codes):
            return np.zeros(0, dtype=np.float32)
        return np.asarray(
            fast.cdist(query[None], codes, "dot"), dtype=np.float32
        ).reshape(-1)

    return dots


def _products_by_numpy(
    query: NDArray[np.int8], codes: NDArray[np.int8]
) -> NDArray[np.float32]:
    return np.asarray(codes @ query.astype(np.float32), dtype=np.float32)


def cosines(
    vectors: NDArray[np.float32], query: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Not `vectors @ query`: BLAS shares even small products among threads and, on a busy machine, waits for them."""
    found: NDArray[np.float32] = np.einsum("ij,j->i", vectors, query)
    return found


class Pool:
    """Several sets of codes read as one, without the rows that are removed; of two with one row the later counts."""

    def __init__(
        self,
        parts: Sequence[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]],
        removed: set[int],
    ) -> None:
        self._codes, self._scales = (
            [part[0] for part in parts],
            [part[1] for part in parts],
        )
        self._ends = np.cumsum([len(part[2]) for part in parts])
        rows = np.concatenate(
            [np.asarray(part[2], dtype=np.uint64) for part in parts]
            or [np.zeros(0, dtype=np.uint64)]
        )
        _, latest = np.unique(rows[::-1], return_index=True)
        places = np.sort(len(rows) - 1 - latest)
        gone = np.fromiter(removed, dtype=np.uint64, count=len(removed))
        self._places = places[~np.isin(rows[places], gone)]
        self.rows = rows[self._places]

    def __len__(self) -> int:
        return len(self.rows)

    def take(
        self, which: NDArray[np.intp]
    ) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Codes and scales of these members."""
        places = self._places[which]
        part_of = np.searchsorted(self._ends, places, side="right")
        taken = np.empty((len(which), self._codes[0].shape[1]), dtype=np.int8)
        scales = np.empty(len(which), dtype=np.float32)
        for part, (stored, stored_scales) in enumerate(
            zip(self._codes, self._scales, strict=True)
        ):
            own = part_of == part
            inside = places[own] - (self._ends[part - 1] if part else 0)
            taken[own], scales[own] = stored[inside], stored_scales[inside]
        return taken, scales

    def decoded(self, which: NDArray[np.intp]) -> NDArray[np.float32]:
        taken, scales = self.take(which)
        return taken * scales[:, None]
