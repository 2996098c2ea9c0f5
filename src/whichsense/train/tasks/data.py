"""A recipe's `[data]`: training and development questions, and the search for their evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from whichsense import sample
from whichsense.datasets import Question, load_questions, locate_questions
from whichsense.errors import BadInput
from whichsense.index.saved_hits import SavedHits
from whichsense.stages.rerank import CrossEncoderReranker
from whichsense.train.loop.processes import is_first_process
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.types import Method


@dataclass(frozen=True, slots=True)
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
        """The training questions; a text that occurs in several datasets is taken from the first."""
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

    def _select(
        self, questions: Iterable[Question], limit: int, name: str
    ) -> list[Question]:
        """The first `limit` questions with as many answers as `answers` says."""
        selected = [question for question in questions if self._has_answers(question)]
        if not selected:
            plural = "s" if self.answers == "several" else ""
            raise BadInput(
                f"'{name}' has no question with {self.answers} answer{plural}."
            )
        return selected[:limit] if limit else selected

    def _has_answers(self, question: Question) -> bool:
        count = len(question.answers)
        if self.answers == "one":
            return count == 1
        if self.answers == "several":
            return count > 1
        return count > 0

    def paths(self) -> list[Path]:
        """The files whose checksums a run records: the questions, and the index's manifest or the hits."""
        files: dict[Path, None] = {}
        for name in (self.train, *self.more, self.dev):
            files[locate_questions(name, self.folder or None)] = None
        if self.hits:
            searched = Path(self.hits)
        elif self.index:
            searched = Path(self.index) / "manifest.json"
        else:
            searched = sample.PASSAGES
        return [*files, searched]

    def evidence(self, depth: int) -> EvidenceSearch:
        """The search for `depth` passages of each question. Nothing is searched yet."""
        return EvidenceSearch(
            depth,
            folder=Path(self.index) if self.index else None,
            saved=_open_hits(self.hits) if self.hits else None,
            method=self.method,
            reranker=CrossEncoderReranker(self.reranker) if self.reranker else None,
            candidates=self.candidates,
        )

    def searched(self, questions: Sequence[Question], depth: int) -> EvidenceSearch:
        """The same, searched at once in the first process: only that one evaluates."""
        evidence = self.evidence(depth)
        if is_first_process():
            evidence.search([question.text for question in questions])
        return evidence


@cache
def _open_hits(path: str) -> SavedHits:
    """Open a file once: training and development questions share it."""
    return SavedHits.open(path)
