"""A shard: a folder of passages with their vectors that answers for its part of an index, or for the whole of it.

What it finds is ranked elsewhere, together with what others found (gather.py). Its answers are plain numbers and bytes,
so that a shard may be in this process or on another machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whichsense.index.lexical.engine import Lengths
from whichsense.index.lexical.generation import Texts
from whichsense.index.lexical.ranking import boosts
from whichsense.types import Passage

if TYPE_CHECKING:
    from whichsense.index.dense.vectors import Vectors

KEYS = "keys.npy"
_TWO_THREADS = 50_000  # with fewer vectors, starting a thread costs what it saves


class ByWords(NamedTuple):
    """Passages that BM25 found. Keys order the passages of all shards as one index would."""

    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    scores: NDArray[np.float64]


class ByMeaning(NamedTuple):
    """Passages whose vectors are near, by int8 products (`rough`) and by cosine."""

    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    rough: NDArray[np.float32]
    cosines: NDArray[np.float32]


class Entries(NamedTuple):
    """Passages as they are stored, and their cosines with a question's vector, if it has one."""

    rows: list[int]
    stored: list[bytes]
    cosines: NDArray[np.float32] | None


class Answer(NamedTuple):
    """What a shard found. What was not asked for is None."""

    by_words: ByWords | None
    by_meaning: ByMeaning | None
    entries: Entries
    """Of what is probably among the best of all shards, so that it need not be read by another request."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question as a shard needs it."""

    k: int
    weights: Mapping[str, float] | None = None
    """Of its terms, among all passages; None where words do not count."""
    slack: float = 0.0
    vector: NDArray[np.float32] | None = None
    """None where meaning does not count."""
    vectors: int = 0
    """How many vectors all shards have."""
    ahead: int = 0
    """How many of the best by words, and of the nearest, come with their texts."""


class Shard:
    """One immutable folder, opened. Rows are its own; keys are those of the whole index."""

    def __init__(self, root: Path, *, dense: bool) -> None:
        self.root = root
        self.texts = Texts(root)
        self.vectors = _open_vectors(root / "vectors") if dense else None
        # The key of each row; None where rows are keys.
        self._keys: NDArray[np.int64] | None = None
        if (root / KEYS).exists():
            self._keys = np.asarray(np.load(root / KEYS, mmap_mode="r"))

    def lengths(self) -> Lengths:
        return self.texts.lengths

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """How many passages have each term."""
        return self.texts.lexical.document_frequencies(terms)

    def search(self, query: Query) -> Answer:
        """What may be among the best k of all shards, by words and by meaning."""
        by_both = query.weights is not None and query.vector is not None
        if by_both and self.vectors and self.vectors.count >= _TWO_THREADS:
            # Both engines let go of the interpreter, so that two cores work.
            with ThreadPoolExecutor(1) as thread:
                words = thread.submit(self._by_words, query)
                by_meaning = self._by_meaning(query)
                by_words = words.result()
        else:
            by_words, by_meaning = self._by_words(query), self._by_meaning(query)
        ahead = _first_rows(by_words, by_meaning, query.ahead)
        entries = Entries(ahead, *self.read(ahead, query.vector))
        return Answer(by_words, by_meaning, entries)

    def _by_words(self, query: Query) -> ByWords | None:
        if query.weights is None:
            return None
        having = self.document_frequencies(list(query.weights))
        terms = boosts(query.weights, having, self.texts.lengths)
        rows, scores = self.texts.lexical.search(terms, query.k, query.slack)
        return ByWords(rows, self.keys(rows), scores)

    def _by_meaning(self, query: Query) -> ByMeaning | None:
        if query.vector is None or self.vectors is None:
            return None
        found, rough, cosines = self.vectors.candidates(
            query.vector, query.k, query.vectors
        )
        rows = found.astype(np.int64)
        return ByMeaning(rows, self.keys(rows), rough, cosines)

    def read(
        self, rows: Sequence[int], vector: NDArray[np.float32] | None = None
    ) -> tuple[list[bytes], NDArray[np.float32] | None]:
        """The stored passages of these rows, and their cosines with a vector."""
        stored = self.texts.passages.stored(rows)
        if vector is None or self.vectors is None:
            return stored, None
        return stored, self.vectors.similarities(vector, rows)

    def named(
        self, ids: Iterable[str], sources: Iterable[str] = ()
    ) -> list[tuple[int, Passage]]:
        """Passages with one of these document or passage ids, or sources, by key."""
        return self._by_key(self.texts.named(ids, sources))

    def every(self) -> list[tuple[int, Passage]]:
        """All passages, by key."""
        return self._by_key(self.texts.every())

    def _by_key(self, passages: Mapping[int, Passage]) -> list[tuple[int, Passage]]:
        keys = self.keys(np.fromiter(passages, dtype=np.int64))
        return list(zip(keys.tolist(), passages.values(), strict=True))

    def keys(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The keys of these rows."""
        return rows if self._keys is None else self._keys[rows]


def _first_rows(
    by_words: ByWords | None, by_meaning: ByMeaning | None, count: int
) -> list[int]:
    """The rows of the best by words and of the nearest, as many of each."""
    rows: set[int] = set()
    if by_words is not None:
        rows.update(by_words.rows[:count].tolist())
    if by_meaning is not None:
        nearest = np.argsort(-by_meaning.cosines, kind="stable")[:count]
        rows.update(by_meaning.rows[nearest].tolist())
    return sorted(rows)


def _open_vectors(folder: Path) -> Vectors:
    from whichsense.index.dense.vectors import Vectors  # loaded only where it is used

    return Vectors.open(folder)
