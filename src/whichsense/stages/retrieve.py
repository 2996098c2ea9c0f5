"""Retrieve: the passages that may answer a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whichsense.index.shards import missing_note
from whichsense.protocols import Searchable
from whichsense.types import Case, Method


@dataclass(frozen=True, slots=True)
class IndexRetriever:
    """Searches an index by words, by meaning, or (the default, where it has vectors) by both.

    In an index's place, a file of saved hits serves the questions that it was written for.
    """

    index: Searchable
    method: Method | None = None

    def retrieve(self, cases: Sequence[Case], k: int) -> list[Case]:
        questions = [case.question for case in cases]
        results = self.index.search_many(questions, k, self.method)
        retrieved = []
        for case, hits in zip(cases, results, strict=True):
            notes = case.notes
            if note := missing_note(hits):
                notes = (*notes, note)
            retrieved.append(replace(case, hits=tuple(hits), notes=notes))
        return retrieved
