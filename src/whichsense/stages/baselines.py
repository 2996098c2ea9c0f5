"""Systems of the papers that do not go the pipeline's way. Each has the pipeline's verb `run`.

Other baselines are pipelines: Thresholding + QD is an extractive reader with its threshold before a `SeqDisambiguator`;
the zero-shot reader is a `SeqReader` with a threshold; prompt copy is `PromptCopy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whichsense.protocols import Detector, QuestionRewriter, Reader, Reranker, Retriever
from whichsense.types import FOR_BENCHMARKS, Case, Policy, Reading


@dataclass(frozen=True, slots=True)
class DisambiguateFirst:
    """AmbigQA's DISAMBIG-FIRST: decide, rewrite, then answer each rewrite by itself, with passages of its own."""

    detector: Detector
    """Decides from the question alone: it is asked before any passage is retrieved."""
    rewriter: QuestionRewriter
    retriever: Retriever
    reader: Reader
    reranker: Reranker | None = None
    depth: int = 100
    keep: int = 20
    policy: Policy = FOR_BENCHMARKS

    def run(self, questions: Sequence[str]) -> list[Case]:
        cases = [Case(question, policy=self.policy) for question in questions]
        finished = []
        for case in self.detector.detect(cases):
            rewrites = [case.question]
            if case.is_ambiguous:
                rewrites = self.rewriter.rewrite([case.question])[0] or rewrites
            readings = self._answer(list(dict.fromkeys(rewrites)))
            finished.append(replace(case, readings=tuple(readings)))
        return finished

    def _answer(self, rewrites: Sequence[str]) -> list[Reading]:
        """Return a reading for each rewrite that the reader has an answer to."""
        cases = [Case(rewrite, policy=self.policy) for rewrite in rewrites]
        cases = self.retriever.retrieve(cases, self.depth)
        if self.reranker is not None:
            cases = self.reranker.rerank(cases)
        cases = [replace(case, hits=case.hits[: self.keep]) for case in cases]
        readings = []
        for case in self.reader.read(cases):
            if case.answers:
                best = case.answers[0]
                readings.append(Reading(case.question, best.answer, best.spans, best.score))
        return readings
