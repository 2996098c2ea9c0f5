"""The order of the stages. A Pipeline is a frozen value: swap a stage with `dataclasses.replace`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from whichsense.errors import MissingStage
from whichsense.roundtrip import round_trip
from whichsense.stages import Clarifier, Disambiguator, Reader, Reranker, Retriever, Summarizer, Verifier
from whichsense.types import Clarification, Hit, LongAnswer, Reading

Stage = TypeVar("Stage")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Retrieve `depth` passages, keep the best `keep` after reranking, and reason over those."""

    retriever: Retriever
    reranker: Reranker | None = None
    reader: Reader | None = None
    disambiguator: Disambiguator | None = None
    verifier: Verifier | None = None
    clarifier: Clarifier | None = None
    summarizer: Summarizer | None = None
    depth: int = 100
    keep: int = 20
    rounds: int = 0
    """Round-trip prediction: how often at most the rewrites are asked again for answers that were missed."""

    def evidence(self, questions: Sequence[str]) -> list[list[Hit]]:
        """The passages that the later stages read, best first, for each question."""
        found = self.retriever.retrieve(questions, self.depth)
        if self.reranker is not None:
            found = [self.reranker.rerank(question, hits) for question, hits in zip(questions, found, strict=True)]
        return [hits[: self.keep] for hits in found]

    def readings(self, questions: Sequence[str]) -> list[list[Reading]]:
        """Every reading of each question, best first."""
        evidence = self.evidence(questions)
        return [self._readings(question, hits) for question, hits in zip(questions, evidence, strict=True)]

    def clarify(self, question: str) -> Clarification:
        """One question back to the person: which reading is meant?"""
        clarifier = _given(self.clarifier, "clarifier")
        return clarifier.clarify(question, self.readings([question])[0])

    def summarize(self, question: str) -> LongAnswer:
        """One long answer that tells the whole story."""
        summarizer = _given(self.summarizer, "summarizer")
        hits = self.evidence([question])[0]
        return summarizer.summarize(question, self._readings(question, hits), hits)

    def _readings(self, question: str, hits: Sequence[Hit]) -> list[Reading]:
        reader, disambiguator = _given(self.reader, "reader"), _given(self.disambiguator, "disambiguator")
        found = round_trip(question, hits, reader, disambiguator, rounds=self.rounds)
        return found if self.verifier is None else self.verifier.verify(question, found, hits)


def _given(stage: Stage | None, name: str) -> Stage:
    if stage is None:
        raise MissingStage(f"This needs a {name}, and the pipeline has none. Give one: Pipeline(…, {name}=…).")
    return stage
