"""Vectors on disk: int8 codes with a scale each, numpy's own files, and a header that names the set they form.

vectors.json          names the set that is served; it is replaced last, so that a set is whole or not there
codes-S.npy           count × dimensions, int8: vector ≈ code × scale
scales-S.npy          count, float32
rows-S.npy            count, uint32: the passage's row number (uint64 in older sets)
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
_SOME = 16
PARTS: dict[str, type[np.generic]] = {
    "codes": np.int8,
    "scales": np.float32,
    "rows": np.uint32,
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


def quantize(
    vectors: NDArray[np.float32],
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Codes and scales: each vector uses the whole range of int8, whatever its largest number."""
    largest = np.abs(vectors).max(axis=1, initial=0)
    return encode(vectors), np.asarray(largest / 127, dtype=np.float32)


def encode(vectors: NDArray[np.float32]) -> NDArray[np.int8]:
    """The codes alone, as a query needs them: its scale does not change the order."""
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    # A vector of zeros has no scale; any will do.
    scale = 127 / np.where(largest == 0, 1, largest)
    return np.rint(vectors * scale).astype(np.int8)


def top(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """The places of the k highest scores, and of those that equal the last of them; in the order of places.

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
    """The k-th highest score."""
    found: np.float32 = np.partition(scores, len(scores) - k)[len(scores) - k]
    return found


def map_part(folder: Path, part: str, name: str) -> NDArray[Any]:
    """A part of the set of this name, mapped into memory."""
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
    is_older = part == "rows" and array.dtype == np.uint64
    if array.dtype != kind and not is_older:
        raise DamagedIndex(
            f"'{path}' holds {array.dtype}, not {np.dtype(kind)}. Build the index again."
        )
    return np.asarray(array)


def products() -> Products:
    """int8 dot products. numkong has the processor's own instructions for them."""
    try:
        fast: ModuleType = importlib.import_module("numkong")
    except ImportError:
        return _products_by_numpy

    def dots(query: NDArray[np.int8], codes: NDArray[np.int8]) -> NDArray[np.float32]:
        if not len(codes):
            return np.zeros(0, dtype=np.float32)
        distances = fast.cdist(query[None], codes, "dot")
        return np.asarray(distances, dtype=np.float32).reshape(-1)

    return dots


def _products_by_numpy(
    query: NDArray[np.int8], codes: NDArray[np.int8]
) -> NDArray[np.float32]:
    return np.asarray(codes @ query.astype(np.float32), dtype=np.float32)


def cosines(
    vectors: NDArray[np.float32], query: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Not `vectors @ query`: BLAS shares even small products among threads and, on a busy machine, waits for them."""
    products: NDArray[np.float32] = np.einsum("ij,j->i", vectors, query)
    return products


class Pool:
    """Several sets of codes read as one, without the rows that are removed; of two with one row the later counts."""

    def __init__(
        self,
        parts: Sequence[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]],
        removed: set[int],
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

    def take(
        self, which: NDArray[np.intp]
    ) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Codes and scales of these members."""
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
