"""What tasks learn from: questions of a dataset, and the passages that an index finds for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import Literal

from whichsense import sample
from whichsense.datasets import Question, load_questions, locate_questions
from whichsense.errors import BadConfig, BadInput
from whichsense.index import Index
from whichsense.index.saved_hits import SavedHits
from whichsense.jobs.progress import show_progress
from whichsense.metrics.retrieval import answer_ranks
from whichsense.protocols import Reranker
from whichsense.stages.rerank import CrossEncoderReranker
from whichsense.train.loop.processes import is_first_process
from whichsense.types import Case, Hit, Method, Passage

_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Data:
    """A recipe's `[data]`: which questions, and where evidence for them is looked for."""

    train: str = "ambignq/train"
    """A dataset by name, or a file in AmbigNQ's form; so is `dev`."""
    more: tuple[str, ...] = ()
    """Other datasets to learn from, too."""
    dev: str = "ambignq/dev"
    index: str = ""
    """The folder of an index; empty: the embedded sample."""
    hits: str = ""
    """In place of an index: a file with what was found for all questions (`whichsense retrieve`)."""
    method: Method | None = None
    reranker: str = ""
    """The folder of a trained reranker: what a model learns from is then ranked as what it will read."""
    candidates: int = 0
    """Hits that are reranked; 0: as many as are kept."""
    folder: str = ""
    """Where the datasets lie, if not where `whichsense data` looks."""
    limit: int = 0
    """Only so many training questions; 0: all."""
    dev_limit: int = 0
    answers: Literal["any", "one", "several"] = "any"
    """Only questions that have one answer, or only those that have several."""
    without: tuple[str, ...] = ()
    """Datasets whose questions must not be among those that are learnt from, nor any that are nearly the same."""

    def training(self) -> list[Question]:
        names = [self.train, *self.more]
        found = [
            one
            for name in names
            for one in load_questions(name, self.folder or None, self.without)[0]
        ]
        if self.more:  # what an earlier one has asked is not asked again
            first: dict[str, Question] = {}
            for question in found:
                first.setdefault(question.text, question)
            found = list(first.values())
        return self._chosen(found, self.limit, self.train)

    def development(self) -> list[Question]:
        return self._chosen(
            load_questions(self.dev, self.folder or None)[0], self.dev_limit, self.dev
        )

    def _chosen(
        self, questions: Iterable[Question], limit: int, name: str
    ) -> list[Question]:
        counts = {
            "any": range(1, 10**9),
            "one": range(1, 2),
            "several": range(2, 10**9),
        }[self.answers]
        found = [question for question in questions if len(question.answers) in counts]
        if not found:
            raise BadInput(
                f"'{name}' has no question with {self.answers} answer{'s' * (self.answers == 'several')}."
            )
        return found[:limit] if limit else found

    def paths(self) -> list[Path]:
        """The files whose checksums a run records: the questions, and the index's manifest."""
        names = (self.train, *self.more, self.dev)
        files = dict.fromkeys(
            locate_questions(name, self.folder or None) for name in names
        )
        searched = Path(self.index) / "manifest.json" if self.index else sample.PASSAGES
        return [*files, Path(self.hits) if self.hits else searched]

    def evidence(self, depth: int) -> Evidence:
        reranker = CrossEncoderReranker(self.reranker) if self.reranker else None
        if self.hits:
            return Evidence(
                kept_hits(self.hits), depth, self.method, reranker, self.candidates
            )
        return Evidence(
            Path(self.index) if self.index else None,
            depth,
            self.method,
            reranker,
            self.candidates,
        )

    def searched(self, questions: Sequence[Question], depth: int) -> Evidence:
        """The same, searched before training begins where it will be needed: only the first process evaluates."""
        found = self.evidence(depth)
        if is_first_process():
            found.search([question.text for question in questions])
        return found


@cache
def kept_hits(path: str) -> SavedHits:
    """Opened once, as training and development questions share a file."""
    return SavedHits.open(path)


@dataclass
class Evidence:
    """The first `depth` hits of an index for questions: searched once, then remembered, each passage held once."""

    source: Path | SavedHits | None
    """An index's folder, what a search has found, or the embedded sample."""
    depth: int
    method: Method | None = None
    reranker: Reranker | None = None
    candidates: int = 0
    _found: dict[str, list[Hit]] = field(default_factory=dict, repr=False)
    _passages: dict[str, Passage] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @cached_property
    def index(self) -> Index:
        if isinstance(self.source, SavedHits):
            raise BadConfig(
                "This task needs a whole index, not only hits: give data.index in place of data.hits."
            )
        return Index.open(self.source) if self.source else sample.index()

    @property
    def searched(self) -> Index | SavedHits:
        return self.source if isinstance(self.source, SavedHits) else self.index

    def search(self, questions: Sequence[str]) -> None:
        """Look for all of these at once, with a bar where it takes long."""
        new = [
            question
            for question in dict.fromkeys(questions)
            if question not in self._found
        ]
        if len(new) <= _AT_ONCE:
            return self._search(new)
        with show_progress("searching", "questions") as progress:
            for start in range(0, len(new), _AT_ONCE):
                self._search(new[start : start + _AT_ONCE])
                progress(
                    min(1.0, (start + _AT_ONCE) / len(new)),
                    min(len(new), start + _AT_ONCE),
                )
        return None

    def hits(self, question: str) -> list[Hit]:
        if question not in self._found:
            self._search([question])
        return self._found[question]

    def passage(self, passage_id: str) -> Passage:
        """A passage by its id: gold evidence that the search did not bring."""
        with self._lock:
            if passage_id not in self._passages:
                self._passages[passage_id] = self.searched.passage(passage_id)
            return self._passages[passage_id]

    def _search(self, questions: Sequence[str]) -> None:
        with (
            self._lock
        ):  # batches are made in a thread, while the main one may evaluate
            if not questions:
                return
            depth = max(self.depth, self.candidates if self.reranker else 0)
            for question, hits in zip(
                questions,
                self.searched.search_many(questions, depth, self.method),
                strict=True,
            ):
                ranked: Sequence[Hit] = hits
                if self.reranker is not None:
                    case = Case(question, tuple(hits))
                    ranked = self.reranker.rerank([case])[0].hits
                self._found[question] = [
                    Hit(
                        self._passages.setdefault(hit.passage.id, hit.passage),
                        hit.score,
                    )
                    for hit in ranked[: self.depth]
                ]


def holders(question: Question, passages: Sequence[Passage]) -> list[bool]:
    """Which passages answer a question: those that annotators named, or, where they named none, those that hold a gold
    answer as whole words.
    """
    named = gold_ids(question)
    if named:
        return [passage.id in named for passage in passages]
    return [_holds(question.answers, passage) for passage in passages]


def gold_ids(question: Question) -> set[str]:
    """The passages that annotators named as evidence."""
    return {
        key
        for annotation in question.annotations
        for pair in annotation.pairs
        for key in pair.evidence
    }


def _holds(answers: Sequence[Sequence[str]], passage: Passage) -> bool:
    return any(
        rank is not None
        for rank in answer_ranks(answers, [f"{passage.title} {passage.text}"])
    )


def answers_held(
    question: Question, passages: Sequence[Passage]
) -> list[frozenset[int]]:
    """For each passage the numbers of the distinct gold answers that it holds."""
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    return [
        frozenset(
            i
            for i, rank in enumerate(answer_ranks(question.answers, [text]))
            if rank is not None
        )
        for text in texts
    ]
