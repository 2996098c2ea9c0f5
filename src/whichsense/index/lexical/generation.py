"""The passages of one generation and the words in them: search by words, and look up by row, document or source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense.index.lexical.engine import Lexical
from whichsense.index.lexical.query import content_words, question_words
from whichsense.index.rescore import BY_BOTH, BY_WORDS, Weights, rescored
from whichsense.index.store import TEXT, TITLE, Field, Passages, unpack
from whichsense.text.words import whole_characters
from whichsense.types import Hit, Passage

# How many of BM25's hits are looked at a second time. With 150, two thirds of a point more answers are among the first
# hundred (none among the first twenty), for half the speed.
SECOND_LOOK = 50
DELETED = "deleted.npy"


def load_deleted(content: Path) -> NDArray[np.uint64]:
    """The rows whose passages were deleted."""
    path = content / DELETED
    return (
        np.asarray(np.load(path), np.uint64)
        if path.exists()
        else np.empty(0, np.uint64)
    )


class Texts:
    """One immutable generation's passages, without its vectors."""

    def __init__(self, content: Path) -> None:
        self.lexical = Lexical(content / "lexical")
        self.passages = Passages(content / "passages")
        self._content = content

    def search(self, question: str, k: int) -> list[tuple[int, Hit]]:
        """The best k passages with their row numbers: BM25's best, the first of them put in a better order."""
        words = question_words(question)
        found = self.lexical.search(content_words(words), max(k, SECOND_LOOK))
        rows, scores = [row for row, _ in found], [score for _, score in found]
        stored = self.passages.stored(rows)
        new = self._rescored(
            words, scores[:SECOND_LOOK], stored[:SECOND_LOOK], BY_WORDS
        )
        seen = len(new)
        order = [*np.argsort(-new, kind="stable").tolist(), *range(seen, len(rows))]
        if seen:
            # Beyond the second look BM25's order stands; its scores lack what was added, so they go on below.
            lowered = float(new.min()) - scores[seen - 1]
            scores = [*new.tolist(), *(score + lowered for score in scores[seen:])]
        return [
            (rows[place], Hit(unpack(stored[place]), scores[place]))
            for place in order[:k]
        ]

    def search_beside(
        self, question: str, others: Sequence[int], k: int
    ) -> tuple[list[int], NDArray[np.float64], list[bytes]]:
        """BM25's best k and the rows that another search found, all scored by their words: rows, scores, passages.

        BM25 gives no score to what it did not find; those start where its last hit does.
        """
        words = question_words(question)
        found = dict(self.lexical.search(content_words(words), k))
        last = min(found.values(), default=0.0)
        rows = list(dict.fromkeys([*found, *others]))
        stored = self.passages.stored(rows)
        return (
            rows,
            self._rescored(
                words, [found.get(row, last) for row in rows], stored, BY_BOTH
            ),
            stored,
        )

    def _rescored(
        self,
        words: Sequence[str],
        scores: Sequence[float],
        stored: Sequence[bytes],
        weights: Weights,
    ) -> NDArray[np.float64]:
        fields = [entry.split(b"\n", TEXT) for entry in stored]
        return rescored(
            words,
            self.lexical.rarity,
            scores,
            [(field[TITLE], field[TEXT]) for field in fields],
            weights,
        )

    def fetch(self, rows: Sequence[int]) -> list[Passage]:
        """The passages with these row numbers, in their order."""
        return [unpack(stored) for stored in self.passages.stored(rows)]

    def named(
        self, ids: Iterable[str], sources: Iterable[str] = ()
    ) -> dict[int, Passage]:
        """Passages by row number that bear one of these document ids, passage ids or sources."""
        found: dict[int, Passage] = {}
        for wanted in map(whole_characters, ids):
            parent = wanted.rpartition("#")[0]
            for row, passage in self._with("document", wanted).items():
                if wanted in (passage.id, passage.id.rpartition("#")[0]):
                    found[row] = passage
            found |= {
                row: passage
                for row, passage in self._with("document", parent).items()
                if passage.id == wanted
            }
        for source in map(whole_characters, sources):
            found |= {
                row: passage
                for row, passage in self._with("source", source).items()
                if passage.source == source
            }
        return found

    def _with(self, field: Field, name: str) -> dict[int, Passage]:
        """Passages with a name, and perhaps a few others."""
        gone = set(load_deleted(self._content).tolist())
        rows = [row for row in self.passages.rows_with(field, name) if row not in gone]
        return dict(zip(rows, self.fetch(rows), strict=True))
