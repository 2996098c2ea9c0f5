"""The stages, one Protocol and one verb each. No base class: whatever has the verb fits.

Every stage takes cases and returns them, in the same order, with more filled in. It
remembers nothing between two calls; what a later stage of the same provider needs
travels in `Case.scratch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from whichsense.types import Case, Hit, Method, Passage

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


class Searchable(Protocol):
    """What can be searched: an index, or a file of hits that a search has saved."""

    def search_many(
        self, questions: Sequence[str], k: int = ..., method: Method | None = ...
    ) -> list[list[Hit]]: ...

    def passage(self, identifier: str) -> Passage: ...

    def describe(self) -> Mapping[str, Any]:
        """Return what decides the hits: written beside results, and compared on resuming."""


class Retriever(Protocol):
    """Fills in `hits`: the k passages that may answer each question, best first."""

    def retrieve(self, cases: Sequence[Case], k: int) -> list[Case]: ...


class Reranker(Protocol):
    """Puts `hits` into a better order."""

    def rerank(self, cases: Sequence[Case]) -> list[Case]: ...


class Reader(Protocol):
    """Fills in `answers`: every plausible answer in the hits, best first."""

    def read(self, cases: Sequence[Case]) -> list[Case]: ...


class Detector(Protocol):
    """Fills in `ambiguous` and `is_ambiguous`."""

    def detect(self, cases: Sequence[Case]) -> list[Case]: ...


class Disambiguator(Protocol):
    """Fills in `readings`: for each answer the question that has only that answer."""

    def disambiguate(self, cases: Sequence[Case]) -> list[Case]: ...


class Verifier(Protocol):
    """Keeps the `readings` that are probable, or hold when asked again; what is merely possible goes to `possible`."""

    def verify(self, cases: Sequence[Case]) -> list[Case]: ...


class Clarifier(Protocol):
    """Fills in `clarification`: one question whose options tell the readings apart."""

    def clarify(self, cases: Sequence[Case]) -> list[Case]: ...


class Summarizer(Protocol):
    """Fills in `long_answer`: one text over all readings, with sources."""

    def summarize(self, cases: Sequence[Case]) -> list[Case]: ...


class Support(Protocol):
    """Judges whether passages support sentences."""

    def supports(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """For each pair (sentence, passage text with its title) the probability that the passage says it."""


class QuestionRewriter(Protocol):
    """The readings of each question, as questions, before any answer is known."""

    def rewrite(self, questions: Sequence[str]) -> list[list[str]]: ...


class Answerer(Protocol):
    """Questions in, finished cases out: a Pipeline or a baseline."""

    def run(self, questions: Sequence[str]) -> list[Case]: ...
