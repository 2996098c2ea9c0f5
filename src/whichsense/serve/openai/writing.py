"""Markdown whose numbers in brackets are citations, each with its place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote as escape_url

from whichsense.types import Passage

# What Markdown, or a chat program that links [1], would take for its own.
_MARKUP = re.compile(r"[\\`*\[\]<]|(?<!\w)_|_(?!\w)")
_NUMBERED = re.compile(r"^\s*(\d+)([.)])(?=\s)")


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A number in brackets, `text[start:end]`, and the passage that it stands for."""

    start: int
    end: int
    number: int
    title: str
    url: str
    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """An answer as Markdown."""

    text: str
    citations: tuple[CitedPassage, ...] = ()
    options: tuple[str, ...] = ()
    """What may be replied to the question back: the labels of its options."""

    @property
    def sources(self) -> tuple[CitedPassage, ...]:
        """Each cited passage once, by its number."""
        first: dict[int, CitedPassage] = {}
        for citation in self.citations:
            first.setdefault(citation.number, citation)
        return tuple(first[number] for number in sorted(first))


@dataclass
class Page:
    """A text that grows."""

    base: str = ""
    """The address of the service, for passages without one of their own."""
    shows_titles: bool = False
    """Whether the client shows a title in the place of each number."""
    text: str = ""
    citations: list[CitedPassage] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, markdown: str) -> None:
        self.text += markdown

    def add_block(self, markdown: str = "") -> None:
        """Begin a new paragraph."""
        self.text = f"{self.text.rstrip()}\n\n{markdown}".lstrip()

    def cite(self, passage: Passage) -> None:
        """Add the passage's number in brackets; each passage keeps its number."""
        number = self._numbers.setdefault(passage.id, len(self._numbers) + 1)
        start = len(self.text)
        self.text += f"[{number}]"
        self.citations.append(
            CitedPassage(
                start,
                len(self.text),
                number,
                passage.title,
                address_of(passage, self.base),
                passage.text,
            )
        )

    def is_cited(self, passage: Passage) -> bool:
        return passage.id in self._numbers


def address_of(passage: Passage, base: str) -> str:
    """Where a passage can be read: at its source if that is a page, else at the service.

    >>> address_of(Passage("a b", "T", "…", source="notes.md"), "http://localhost:8000")
    'http://localhost:8000/v1/passages/a%20b'
    """
    if passage.source.startswith(("http://", "https://")):
        return passage.source
    return f"{base}/v1/passages/{escape_url(passage.id, safe='')}"


def plain(text: str) -> str:
    """A text on one line, without what Markdown would take for its own.

    >>> plain("a *star*, snake_case,\\n1. [sic]")
    'a \\\\*star\\\\*, snake_case, 1. \\\\[sic\\\\]'
    """
    return _MARKUP.sub(lambda mark: f"\\{mark[0]}", " ".join(text.split()))


def plain_line(text: str) -> str:
    """The same for a line of its own, whose number would begin a list.

    >>> plain_line("1. FC Köln")
    '1\\\\. FC Köln'
    """
    return _NUMBERED.sub(r"\1\\\2", plain(text))
