"""Training data of the tasks: datasets, and the passages that are evidence for their questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import Literal

from whichsense import sample
from whichsense.errors import BadConfig, BadInput
from whichsense.index import Index
from whichsense.index.search import SavedHits
from whichsense.jobs.limits import show_progress
from whichsense.lab.datasets import Question, load_questions, locate_questions
from whichsense.lab.metrics.exact_match import answer_ranks
from whichsense.lab.train.processes import is_first_process
from whichsense.protocols import Reranker
from whichsense.stages.rerank import CrossEncoderReranker
from whichsense.types import Case, Hit, Method, Passage, frozen

# Evidence: the passages that an index finds for questions, and which of them answer the question.

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
        new = [question for question in dict.fromkeys(questions) if question not in self._hits]
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
        """Return a passage by its id: gold evidence that the search did not bring."""
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
        return self.reranker.rerank([Case(question, tuple(hits))])[0].hits

    def _share_passage(self, hit: Hit) -> Hit:
        """Return the same hit over the one copy of its passage that is kept."""
        return Hit(self._passages.setdefault(hit.passage.id, hit.passage), hit.score)


def holders(question: Question, passages: Sequence[Passage]) -> list[bool]:
    """Which passages answer a question: those that annotators named, or, where they named none, those that hold a gold
    answer as whole words.
    """
    annotated = gold_ids(question)
    if annotated:
        return [passage.id in annotated for passage in passages]
    return [bool(held) for held in answers_held(question, passages)]


def gold_ids(question: Question) -> set[str]:
    """Return the passages that annotators named as evidence."""
    ids: set[str] = set()
    for annotation in question.annotations:
        for pair in annotation.pairs:
            ids |= set(pair.evidence)
    return ids


def answers_held(question: Question, passages: Sequence[Passage]) -> list[frozenset[int]]:
    """Return for each passage the numbers of the distinct gold answers that it holds."""
    return [
        frozenset(
            number
            for number, rank in enumerate(
                answer_ranks(question.answers, [f"{passage.title} {passage.text}"])
            )
            if rank is not None
        )
        for passage in passages
    ]


# A recipe's `[data]`: training and development questions, and the search for their evidence.


@frozen
class TrainingData:
    """A recipe's `[data]`: the questions, and where evidence for them is searched."""

    train: str = "ambignq/train"
    """A dataset by name, or a file in AmbigNQ's form; so is `dev`."""
    more: tuple[str, ...] = ()
    """Other datasets to learn from as well."""
    dev: str = "ambignq/dev"
    index: str = ""
    """The folder of an index; empty: the embedded sample."""
    hits: str = ""
    """In place of an index: a file with the hits of all questions (`whichsense retrieve`)."""
    method: Method | None = None
    reranker: str = ""
    """The folder of a trained reranker: training then sees passages in the order in which the model will read them."""
    candidates: int = 0
    """Hits that are reranked; 0: as many as the task reads."""
    folder: str = ""
    """The folder of the datasets, if not the one that `whichsense data` uses."""
    limit: int = 0
    """Training questions at most; 0: all."""
    dev_limit: int = 0
    answers: Literal["any", "one", "several"] = "any"
    """Only questions that have one answer, or only those that have several."""
    without: tuple[str, ...] = ()
    """Datasets whose questions, and near duplicates of them, are left out of the training questions."""

    def training(self) -> list[Question]:
        """Return the training questions; a text that occurs in several datasets is taken from the first."""
        questions: list[Question] = []
        for name in (self.train, *self.more):
            questions += load_questions(name, self.folder or None, self.without)[0]
        if self.more:
            first: dict[str, Question] = {}
            for question in questions:
                first.setdefault(question.text, question)
            questions = list(first.values())
        return self._select(questions, self.limit, self.train)

    def development(self) -> list[Question]:
        questions = load_questions(self.dev, self.folder or None)[0]
        return self._select(questions, self.dev_limit, self.dev)

    def _select(self, questions: Iterable[Question], limit: int, name: str) -> list[Question]:
        """Return the first `limit` questions with as many answers as `answers` says."""
        selected = [question for question in questions if self._has_answers(question)]
        if not selected:
            plural = "s" if self.answers == "several" else ""
            raise BadInput(f"'{name}' has no question with {self.answers} answer{plural}.")
        return selected[:limit] if limit else selected

    def _has_answers(self, question: Question) -> bool:
        count = len(question.answers)
        if self.answers == "one":
            return count == 1
        if self.answers == "several":
            return count > 1
        return count > 0

    def paths(self) -> list[Path]:
        """Return the files whose checksums a run records: the questions, and the index's manifest or the hits."""
        files: dict[Path, None] = {
            locate_questions(name, self.folder or None): None
            for name in (self.train, *self.more, self.dev)
        }
        if self.hits:
            searched = Path(self.hits)
        elif self.index:
            searched = Path(self.index) / "manifest.json"
        else:
            searched = sample.PASSAGES
        return [*files, searched]

    def evidence(self, depth: int) -> EvidenceSearch:
        """Return the search for `depth` passages of each question. Nothing is searched yet."""
        return EvidenceSearch(
            depth,
            folder=Path(self.index) if self.index else None,
            saved=_open_hits(self.hits) if self.hits else None,
            method=self.method,
            reranker=CrossEncoderReranker(self.reranker) if self.reranker else None,
            candidates=self.candidates,
        )

    def all_searched(
        self, depth: int, more: Iterable[Question] = ()
    ) -> tuple[list[Question], list[Question], EvidenceSearch]:
        """Return the questions to learn from, with `more`, those to measure on, and the evidence of both."""
        train = [*self.training(), *more]
        dev, evidence = self.development(), self.evidence(depth)
        evidence.search([question.text for question in (*train, *dev)])
        return train, dev, evidence

    def searched(self, questions: Sequence[Question], depth: int) -> EvidenceSearch:
        """Return the same, searched at once in the first process: only that one evaluates."""
        evidence = self.evidence(depth)
        if is_first_process():
            evidence.search([question.text for question in questions])
        return evidence


@cache
def _open_hits(path: str) -> SavedHits:
    """Open a file once: training and development questions share it."""
    return SavedHits.open(path)
