"""The passages of one generation and the words in them: search by words, and look up by row, document or source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from whichsense.index.lexical import Lexical
from whichsense.index.passages import TEXT, TITLE, Passages, unpacked
from whichsense.index.query import content_words, question_words
from whichsense.index.rescore import rescored
from whichsense.types import Hit, Passage

# How many of BM25's hits are looked at a second time. With 150, two thirds of a point more answers are among the first
# hundred (none among the first twenty), for half the speed.
SECOND_LOOK = 50


class Texts:
    """One immutable generation's passages, without its vectors."""

    def __init__(self, content: Path) -> None:
        self.lexical = Lexical(content / "lexical")
        self.passages = Passages(content / "passages")

    def search(self, question: str, k: int) -> list[tuple[int, Hit]]:
        """The best k passages with their row numbers: BM25's best, the first of them put in a better order."""
        words = question_words(question)
        found = self.lexical.search(content_words(words), max(k, SECOND_LOOK))
        rows, scores = [row for row, _ in found], [score for _, score in found]
        stored = self.passages.stored(rows)
        fields = [entry.split(b"\n", TEXT) for entry in stored[:SECOND_LOOK]]
        seen = len(fields)
        new = rescored(words, self.lexical.rarity, scores[:seen], [(field[TITLE], field[TEXT]) for field in fields])
        order = [*np.argsort(-new, kind="stable").tolist(), *range(seen, len(rows))]
        if seen:
            # Beyond the second look BM25's order stands; its scores lack what was added, so they go on below.
            lowered = float(new.min()) - scores[seen - 1]
            scores = [*new.tolist(), *(score + lowered for score in scores[seen:])]
        return [(rows[place], Hit(unpacked(stored[place]), scores[place])) for place in order[:k]]

    def fetch(self, rows: Sequence[int]) -> list[Passage]:
        """The passages with these row numbers, in their order."""
        return [unpacked(stored) for stored in self.passages.stored(rows)]

    def named(self, ids: Iterable[str], sources: Iterable[str] = ()) -> dict[int, Passage]:
        """Passages by row number that bear one of these document ids, passage ids or sources."""
        found: dict[int, Passage] = {}
        for wanted in ids:
            found |= self._with("document", wanted)
            parent = self._with("document", wanted.rpartition("#")[0])
            found |= {row: passage for row, passage in parent.items() if passage.id == wanted}
        for source in sources:
            found |= self._with("source", source)
        return found

    def _with(self, field: str, value: str) -> dict[int, Passage]:
        rows = self.lexical.rows_with(field, value)
        return dict(zip(rows, self.fetch(rows), strict=True))
