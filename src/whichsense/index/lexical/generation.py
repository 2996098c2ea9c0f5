"""The passages of one generation: search by words, and look up by row, document or source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense.index.lexical.engine import Lexical
from whichsense.index.lexical.query import content_words, question_words
from whichsense.index.lexical.rescore import BY_BOTH, BY_WORDS, Weights, rescore
from whichsense.index.store import TEXT, TITLE, Field, Passages, unpack
from whichsense.text.words import whole_characters
from whichsense.types import Hit, Passage

# How many of BM25's hits are scored again. With 150, two thirds of a point more answers are among the first hundred
# (none among the first twenty), for half the speed.
_RESCORED = 50
DELETED = "deleted.npy"


def load_deleted(content: Path) -> NDArray[np.uint64]:
    """The rows whose passages were deleted."""
    path = content / DELETED
    if not path.exists():
        return np.empty(0, np.uint64)
    return np.asarray(np.load(path), np.uint64)


class Texts:
    """One immutable generation's passages, without its vectors."""

    def __init__(self, content: Path) -> None:
        self.lexical = Lexical(content / "lexical")
        self.passages = Passages(content / "passages")
        self._content = content

    def search(self, question: str, k: int) -> list[tuple[int, Hit]]:
        """The best k passages with their row numbers: BM25's best, the first of them scored again."""
        words = question_words(question)
        rows, scores = [], []
        for row, score in self.lexical.search(content_words(words), max(k, _RESCORED)):
            rows.append(row)
            scores.append(score)
        stored = self.passages.stored(rows)
        first = self._rescore(words, scores[:_RESCORED], stored[:_RESCORED], BY_WORDS)
        count = len(first)
        order = np.argsort(-first, kind="stable").tolist()
        # Beyond the first, BM25's order stands.
        order += range(count, len(rows))
        if count:
            # BM25's scores lack what rescoring added. They are lowered, so that they continue below the rescored ones.
            lowered = float(first.min()) - scores[count - 1]
            rest = [score + lowered for score in scores[count:]]
            scores = [*first.tolist(), *rest]
        hits = []
        for place in order[:k]:
            hit = Hit(unpack(stored[place]), scores[place])
            hits.append((rows[place], hit))
        return hits

    def search_beside(
        self, question: str, others: Sequence[int], k: int
    ) -> tuple[list[int], NDArray[np.float64], list[bytes]]:
        """BM25's best k and the rows that another search found, all scored by their words: rows, scores, passages.

        BM25 gives no score to what it did not find. Those rows start with the score of its last hit.
        """
        words = question_words(question)
        by_row = dict(self.lexical.search(content_words(words), k))
        lowest = min(by_row.values(), default=0.0)
        rows = list(dict.fromkeys([*by_row, *others]))
        scores = [by_row.get(row, lowest) for row in rows]
        stored = self.passages.stored(rows)
        return rows, self._rescore(words, scores, stored, BY_BOTH), stored

    def _rescore(
        self,
        words: Sequence[str],
        scores: Sequence[float],
        stored: Sequence[bytes],
        weights: Weights,
    ) -> NDArray[np.float64]:
        texts = []
        for entry in stored:
            fields = entry.split(b"\n", TEXT)
            texts.append((fields[TITLE], fields[TEXT]))
        return rescore(words, self.lexical.rarity, scores, texts, weights)

    def fetch(self, rows: Sequence[int]) -> list[Passage]:
        """The passages with these row numbers, in their order."""
        return [unpack(stored) for stored in self.passages.stored(rows)]

    def named(
        self, ids: Iterable[str], sources: Iterable[str] = ()
    ) -> dict[int, Passage]:
        """Passages by row number that have one of these document ids, passage ids or sources."""
        chosen: dict[int, Passage] = {}
        for wanted in map(whole_characters, ids):
            for row, passage in self._candidates("document", wanted):
                if wanted in (passage.id, _document_id(passage.id)):
                    chosen[row] = passage
            # It may be the id of a passage: "12#3" is a passage of document "12".
            for row, passage in self._candidates("document", _document_id(wanted)):
                if passage.id == wanted:
                    chosen[row] = passage
        for source in map(whole_characters, sources):
            for row, passage in self._candidates("source", source):
                if passage.source == source:
                    chosen[row] = passage
        return chosen

    def _candidates(self, field: Field, name: str) -> list[tuple[int, Passage]]:
        """Passages whose document or source has the checksum of a name: those of that name, and perhaps others."""
        deleted = set(load_deleted(self._content).tolist())
        rows = []
        for row in self.passages.rows_with(field, name):
            if row not in deleted:
                rows.append(row)
        return list(zip(rows, self.fetch(rows), strict=True))


def _document_id(passage_id: str) -> str:
    return passage_id.rpartition("#")[0]
