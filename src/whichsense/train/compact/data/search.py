"""Where the passages of lists are searched: saved hits, an index, or the embedded sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from whichsense import sample
from whichsense.index import Index
from whichsense.index.saved_hits import SavedHits
from whichsense.models.bert.saved import ABOUT
from whichsense.train.compact.data.config import DataConfig
from whichsense.types import Hit, Method


class PassageSearch(Protocol):
    def search_many(
        self, questions: Sequence[str], k: int, method: Method | None
    ) -> list[list[Hit]]: ...


@dataclass(frozen=True)
class _HitFiles:
    """Several files with hits as one: a question's hits are those of the first file that has it."""

    files: tuple[SavedHits, ...]

    def search_many(
        self, questions: Sequence[str], k: int, method: Method | None
    ) -> list[list[Hit]]:
        hits = []
        for question in questions:
            hits += self._file_of(question).search_many([question], k, method)
        return hits

    def _file_of(self, question: str) -> SavedHits:
        for file in self.files:
            if question in file:
                return file
        return self.files[-1]  # whose error says that the question is missing


def open_search(data: DataConfig) -> PassageSearch:
    if data.hit_files:
        return _HitFiles(tuple(_open_hits(path) for path in data.hit_files))
    if data.index:
        return Index.open(Path(data.index))
    return sample.index()


@cache
def _open_hits(path: Path) -> SavedHits:
    """Opened once: questions to train on and to evaluate on share a file."""
    return SavedHits.open(path)


def can_fork(search: object) -> bool:
    """Whether forked processes may search. Torch, which a DPR index is searched with, does not run in them."""
    # The folder of a DPR's question encoder has bert.json; other encoders run without torch.
    encoder = search.manifest.encoder if isinstance(search, Index) else None
    return not encoder or not (Path(encoder) / ABOUT).is_file()
