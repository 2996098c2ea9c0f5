"""Evidence: the passages that an index finds for questions, and which of them answer the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

from whichsense import sample
from whichsense.datasets import Question
from whichsense.errors import BadConfig
from whichsense.index import Index
from whichsense.index.saved_hits import SavedHits
from whichsense.jobs.progress import show_progress
from whichsense.metrics.retrieval import answer_ranks
from whichsense.protocols import Reranker
from whichsense.types import Case, Hit, Method, Passage

_BATCH = 64  # questions that are searched at once


@dataclass
class EvidenceSearch:
    """The first `depth` hits of questions: searched once, then kept, each passage in memory once."""

    depth: int
    folder: Path | None = None
    """The index's; None: the embedded sample."""
    saved: SavedHits | None = None
    """In place of an index: hits of an earlier search."""
    method: Method | None = None
    reranker: Reranker | None = None
    candidates: int = 0
    """Hits that are reranked, if more than `depth`."""
    _hits: dict[str, list[Hit]] = field(default_factory=dict, repr=False)
    _passages: dict[str, Passage] = field(default_factory=dict, repr=False)
    # Batches are made in a thread while the main one may evaluate.
    _lock: Lock = field(default_factory=Lock, repr=False)

    @cached_property
    def index(self) -> Index:
        """The whole index, for tasks that draw passages from it."""
        if self.saved is not None:
            raise BadConfig(
                "This task needs a whole index, not only hits: give data.index in place of data.hits."
            )
        return Index.open(self.folder) if self.folder else sample.index()

    @property
    def _source(self) -> Index | SavedHits:
        return self.index if self.saved is None else self.saved

    def search(self, questions: Sequence[str]) -> None:
        """Search for all questions, with a progress bar where it takes long."""
        new = []
        for question in dict.fromkeys(questions):
            if question not in self._hits:
                new.append(question)
        if len(new) <= _BATCH:
            self._search(new)
            return
        with show_progress("searching", "questions") as progress:
            for start in range(0, len(new), _BATCH):
                self._search(new[start : start + _BATCH])
                done = min(len(new), start + _BATCH)
                progress(done / len(new), done)

    def hits(self, question: str) -> list[Hit]:
        if question not in self._hits:
            self._search([question])
        return self._hits[question]

    def passage(self, passage_id: str) -> Passage:
        """A passage by its id: gold evidence that the search did not bring."""
        with self._lock:
            if passage_id not in self._passages:
                self._passages[passage_id] = self._source.passage(passage_id)
            return self._passages[passage_id]

    def _search(self, questions: Sequence[str]) -> None:
        with self._lock:
            if not questions:
                return
            depth = max(self.depth, self.candidates if self.reranker else 0)
            results = self._source.search_many(questions, depth, self.method)
            for question, hits in zip(questions, results, strict=True):
                ranked = self._rerank(question, hits)[: self.depth]
                self._hits[question] = [self._share_passage(hit) for hit in ranked]

    def _rerank(self, question: str, hits: Sequence[Hit]) -> Sequence[Hit]:
        if self.reranker is None:
            return hits
        case = Case(question, tuple(hits))
        return self.reranker.rerank([case])[0].hits

    def _share_passage(self, hit: Hit) -> Hit:
        """The same hit over the one copy of its passage that is kept."""
        passage = self._passages.setdefault(hit.passage.id, hit.passage)
        return Hit(passage, hit.score)


def holders(question: Question, passages: Sequence[Passage]) -> list[bool]:
    """Which passages answer a question: those that annotators named, or, where they named none, those that hold a gold
    answer as whole words.
    """
    annotated = gold_ids(question)
    if annotated:
        return [passage.id in annotated for passage in passages]
    return [bool(held) for held in answers_held(question, passages)]


def gold_ids(question: Question) -> set[str]:
    """The passages that annotators named as evidence."""
    ids: set[str] = set()
    for annotation in question.annotations:
        for pair in annotation.pairs:
            ids |= set(pair.evidence)
    return ids


def answers_held(
    question: Question, passages: Sequence[Passage]
) -> list[frozenset[int]]:
    """For each passage the numbers of the distinct gold answers that it holds."""
    result = []
    for passage in passages:
        text = f"{passage.title} {passage.text}"
        held = set()
        for number, rank in enumerate(answer_ranks(question.answers, [text])):
            if rank is not None:
                held.add(number)
        result.append(frozenset(held))
    return result
