"""The order of the stages. A Pipeline is a frozen value: swap a stage with `dataclasses.replace`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from whichsense.errors import BadInput, MissingStage
from whichsense.many import verify_all
from whichsense.protocols import (
    Clarifier,
    Disambiguator,
    Reader,
    Reranker,
    Retriever,
    Summarizer,
    Verifier,
)
from whichsense.stages.roundtrip import round_trip, round_trips
from whichsense.types import Candidate, Clarification, Hit, LongAnswer, Reading

Stage = TypeVar("Stage")


@dataclass(frozen=True, slots=True)
class Trace:
    """What came of a question, and how: the passages that were read, the readings, seconds for each stage."""

    question: str
    hits: tuple[Hit, ...]
    readings: tuple[Reading, ...]
    timings: Mapping[str, float]


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
        found = self.retriever.retrieve(_several(questions), self.depth)
        return [
            self._kept(question, hits)
            for question, hits in zip(questions, found, strict=True)
        ]

    def readings(self, questions: Sequence[str]) -> list[list[Reading]]:
        """Every reading of each question, best first. A reader that can reads all of them in one call."""
        if not hasattr(self.reader, "read_many"):
            return [list(trace.readings) for trace in self.traces(questions)]
        reader, disambiguator = (
            _given(self.reader, "reader"),
            _given(self.disambiguator, "disambiguator"),
        )
        hits = self.evidence(questions)
        found = round_trips(questions, hits, reader, disambiguator, rounds=self.rounds)
        return (
            found
            if self.verifier is None
            else verify_all(self.verifier, questions, found, hits)
        )

    def traces(self, questions: Sequence[str]) -> Iterator[Trace]:
        """The same with what was read and how long it took. Questions are searched together and read one by one, so
        that no more than one question's passages are held by the models."""
        clock, questions = _Clock(), _several(questions)
        found = clock.timed(
            "retrieve", lambda: self.retriever.retrieve(questions, self.depth)
        )
        searching = clock.seconds["retrieve"] / max(len(questions), 1)
        for question, retrieved in zip(questions, found, strict=True):
            clock = _Clock({"retrieve": searching})
            hits = clock.timed("rerank", partial(self._kept, question, retrieved))
            readings = self._readings(question, hits, clock)
            yield Trace(question, tuple(hits), tuple(readings), clock.seconds)

    def clarify(self, question: str) -> Clarification:
        """One question back to the person: which reading is meant?"""
        clarifier = _given(self.clarifier, "clarifier")
        return clarifier.clarify(question, self.readings([question])[0])

    def summarize(self, question: str) -> LongAnswer:
        """One long answer that tells the whole story."""
        summarizer = _given(self.summarizer, "summarizer")
        hits = self.evidence([question])[0]
        return summarizer.summarize(question, self._readings(question, hits), hits)

    def _kept(self, question: str, hits: Sequence[Hit]) -> list[Hit]:
        ranked = (
            list(hits)
            if self.reranker is None
            else self.reranker.rerank(question, hits)
        )
        return ranked[: self.keep]

    def _readings(
        self, question: str, hits: Sequence[Hit], clock: _Clock | None = None
    ) -> list[Reading]:
        clock = clock or _Clock()
        reader = _TimedReader(_given(self.reader, "reader"), clock)
        disambiguator = _TimedDisambiguator(
            _given(self.disambiguator, "disambiguator"), clock
        )
        found = round_trip(question, hits, reader, disambiguator, rounds=self.rounds)
        if (verifier := self.verifier) is None:
            return found
        return clock.timed("verify", lambda: verifier.verify(question, found, hits))


@dataclass
class _Clock:
    """Adds up what each stage took."""

    seconds: dict[str, float] = field(default_factory=dict)

    def timed(self, stage: str, what: Callable[[], Stage]) -> Stage:
        begun = time.perf_counter()
        found = what()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - begun
        return found


@dataclass(frozen=True)
class _TimedReader:
    reader: Reader
    clock: _Clock

    def read(self, question: str, hits: Sequence[Hit]) -> list[Candidate]:
        return self.clock.timed("read", lambda: self.reader.read(question, hits))


@dataclass(frozen=True)
class _TimedDisambiguator:
    disambiguator: Disambiguator
    clock: _Clock

    def disambiguate(
        self, question: str, answers: Sequence[Candidate], hits: Sequence[Hit]
    ) -> list[Reading]:
        return self.clock.timed(
            "disambiguate",
            lambda: self.disambiguator.disambiguate(question, answers, hits),
        )


def _several(questions: Sequence[str]) -> Sequence[str]:
    """A single string would be taken for a list of letters."""
    if isinstance(questions, str):
        raise BadInput(
            "One string was given where a list of questions is needed. Put it in brackets: [question]."
        )
    return questions


def _given(stage: Stage | None, name: str) -> Stage:
    if stage is None:
        raise MissingStage(
            f"This needs a {name}, and the pipeline has none. Give one: Pipeline(…, {name}=…)."
        )
    return stage
