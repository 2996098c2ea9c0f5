"""The records that flow between the stages: frozen, typed, no behaviour beyond what a record needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Document:
    """A text as its source gave it, before it is cut into passages.

    `sections` lists where each heading's text begins: (character offset, heading), ascending.
    """

    id: str
    title: str
    text: str
    source: str = ""
    sections: tuple[tuple[int, str], ...] = ()
    whole: bool = False
    """True where the source is cut into passages already (DPR's TSV): the text is kept as one."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A page that only points to another: "NYC" → "New York City"."""

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Sense:
    """One entry of a disambiguation page: a thing that `name` may mean."""

    name: str
    title: str
    gloss: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document, with where it stands there: `document.text[start:end]`."""

    id: str
    title: str
    text: str
    source: str = ""
    section: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that a search found, and how well it matched (higher is better)."""

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class Span:
    """Where in a passage's text an answer stands."""

    passage: Passage
    start: int
    end: int
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that a reader found, with the spans that support it."""

    answer: str
    score: float
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """One unambiguous reading of a question: the rewrite, its answer, where it was found."""

    question: str
    answer: str
    evidence: tuple[Span, ...] = ()
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Clarification:
    """One question that asks which reading was meant: a category and an option for each reading."""

    category: str
    options: tuple[str, ...]
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class Citation:
    """A sentence of a long answer and the passages that support it."""

    sentence: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class LongAnswer:
    """The whole story of a question: every sentence with its sources."""

    question: str
    sentences: tuple[Citation, ...]

    @property
    def text(self) -> str:
        return " ".join(citation.sentence for citation in self.sentences)


Method = Literal["bm25", "dense", "hybrid"]
