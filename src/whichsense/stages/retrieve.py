"""Retrieve: the passages that may answer a question, from an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.index import Index
from whichsense.index.saved_hits import SavedHits
from whichsense.types import Hit, Method


@dataclass(frozen=True, slots=True)
class IndexRetriever:
    """Searches an index by words, by meaning, or (the default, where it has vectors) by both.

    In an index's place, a file with what was found in it serves the questions that it was written for.
    """

    index: Index | SavedHits
    method: Method | None = None

    def retrieve(self, questions: Sequence[str], k: int) -> list[list[Hit]]:
        return self.index.search_many(questions, k, self.method)
