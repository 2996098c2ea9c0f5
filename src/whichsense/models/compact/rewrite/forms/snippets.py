"""What the forms read and write: an answer with the passages that hold it, and a rewrite with its support."""

from __future__ import annotations

from dataclasses import dataclass

from whichsense.text.sentences import sentence_spans


@dataclass(frozen=True, slots=True)
class Snippet:
    """A passage that holds an answer, and where in its text: `text[start:end]`.

    Where start and end are equal the answer stands in the title.
    """

    title: str
    text: str
    start: int
    end: int

    @property
    def in_title(self) -> bool:
        """Whether the answer stands in the title and not in the text."""
        return self.start == self.end

    @property
    def sentence_bounds(self) -> tuple[int, int]:
        """Where the sentence that holds the answer begins and ends; nothing, (0, 0), for an answer in the title.

        >>> Snippet("Dune", "It is a novel. Frank Herbert wrote it.", 15, 28).sentence_bounds
        (15, 38)
        """
        if self.in_title:
            return 0, 0
        for begin, end in sentence_spans(self.text):
            if begin <= self.start < end:
                return begin, end
        return self.start, self.end

    @property
    def sentence(self) -> str:
        """The sentence that holds the answer; empty for an answer in the title."""
        begin, end = self.sentence_bounds
        return self.text[begin:end]


@dataclass(frozen=True, slots=True)
class AnswerEvidence:
    """An answer and the passages that hold it, best first."""

    answer: str
    snippets: tuple[Snippet, ...]


@dataclass(frozen=True, slots=True)
class FormRewrite:
    """A question that a form rewrote for one answer."""

    question: str
    form: str  # the form's name, for statistics
    support: str  # the evidence's own words from which the addition comes
