"""The passages of one generation, or of one shard of it: looked up by row, document or source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense.index.lexical.engine import Lengths, Lexical
from whichsense.index.lexical.query import question_words
from whichsense.index.store import Field, Passages, unpack
from whichsense.text.words import whole_characters
from whichsense.types import Passage

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

    @cached_property
    def lengths(self) -> Lengths:
        """What BM25 counts of all passages at once."""
        row = self.lexical.any_row()
        if row is None:
            return Lengths(0, 1.0)
        (passage,) = self.fetch([row])
        return self.lexical.lengths(question_words(passage.text))

    def fetch(self, rows: Sequence[int]) -> list[Passage]:
        """The passages with these row numbers, in their order."""
        return [unpack(stored) for stored in self.passages.stored(rows)]

    def every(self) -> dict[int, Passage]:
        """All passages that are there, by row number."""
        deleted = set(load_deleted(self._content).tolist())
        rows = [row for row in range(self.passages.next_row) if row not in deleted]
        return dict(zip(rows, self.fetch(rows), strict=True))

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
