"""The stages, one Protocol and one verb each. No base class, no registry: whatever has the verb fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from whichsense.types import Candidate, Clarification, Hit, LongAnswer, Reading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Encoder(Protocol):
    """Texts to unit vectors. Questions and passages may be encoded differently."""

    @property
    def name(self) -> str:
        """Written into an index, so that it is searched with what it was built with."""

    @property
    def dimensions(self) -> int: ...

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]: ...

    def encode_questions(self, questions: Sequence[str]) -> NDArray[np.float32]: ...


class Retriever(Protocol):
    """The passages that may answer each question, best first."""

    def retrieve(self, questions: Sequence[str], k: int) -> list[list[Hit]]: ...


class Reranker(Protocol):
    """The same hits in a better order."""

    def rerank(self, question: str, hits: Sequence[Hit]) -> list[Hit]: ...


class Reader(Protocol):
    """Every plausible answer in the evidence, best first."""

    def read(self, question: str, hits: Sequence[Hit]) -> list[Candidate]: ...


class Disambiguator(Protocol):
    """For each answer the question rewritten so that it has only that answer."""

    def disambiguate(
        self, question: str, answers: Sequence[Candidate], hits: Sequence[Hit]
    ) -> list[Reading]: ...


class Verifier(Protocol):
    """The readings that hold when they are asked again."""

    def verify(
        self, question: str, readings: Sequence[Reading], hits: Sequence[Hit]
    ) -> list[Reading]: ...


class Clarifier(Protocol):
    """One question with options that tells the readings apart."""

    def clarify(self, question: str, readings: Sequence[Reading]) -> Clarification: ...


class Summarizer(Protocol):
    """One long answer over all readings, with sources."""

    def summarize(
        self, question: str, readings: Sequence[Reading], hits: Sequence[Hit]
    ) -> LongAnswer: ...


class Answerer(Protocol):
    """Questions in, their readings out: a Pipeline, a baseline, anything with the verb."""

    def readings(self, questions: Sequence[str]) -> list[list[Reading]]: ...
