"""What is searched and found: documents, passages, hits, spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Method = Literal["bm25", "dense", "hybrid"]


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
