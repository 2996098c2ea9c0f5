"""Whole systems of the papers that do not go the pipeline's way. Each has the pipeline's verb `readings`.

Other baselines are pipelines: Thresholding + QD is an extractive reader with its threshold before a `SeqDisambiguator`;
the zero-shot reader is a `SeqReader` with a threshold; prompt copy is `PromptCopy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from whichsense.protocols import Reader, Reranker, Retriever
from whichsense.types import Reading


class Detector(Protocol):
    """Whether a question is ambiguous, as far as the question alone tells."""

    def is_ambiguous(self, question: str) -> bool: ...


class Rewriter(Protocol):
    """The readings of a question, as questions, before any answer is known."""

    def rewrites(self, question: str) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class DisambiguateFirst:
    """AmbigQA's DISAMBIG-FIRST: decide, rewrite, then answer each rewrite by itself, with passages of its own."""

    detector: Detector
    rewriter: Rewriter
    retriever: Retriever
    reader: Reader
    reranker: Reranker | None = None
    depth: int = 100
    keep: int = 20

    def readings(self, questions: Sequence[str]) -> list[list[Reading]]:
        return [self._readings(question) for question in questions]

    def _readings(self, question: str) -> list[Reading]:
        ambiguous = self.detector.is_ambiguous(question)
        rewrites = (
            (self.rewriter.rewrites(question) or [question])
            if ambiguous
            else [question]
        )
        found = (self._answered(rewrite) for rewrite in dict.fromkeys(rewrites))
        return [reading for reading in found if reading is not None]

    def _answered(self, question: str) -> Reading | None:
        hits = self.retriever.retrieve([question], self.depth)[0]
        if self.reranker is not None:
            hits = self.reranker.rerank(question, hits)
        answers = self.reader.read(question, hits[: self.keep])
        return (
            Reading(question, answers[0].answer, answers[0].spans, answers[0].score)
            if answers
            else None
        )
