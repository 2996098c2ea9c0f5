"""What is made of the evidence: answers, readings, a clarification, a long answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.types.corpus import Passage, Span

TENTATIVE_UNDER = 0.5
"""An only answer that is less probable is called tentative: "Perhaps: …"."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that a reader found, with the spans that support it."""

    answer: str
    score: float
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """What a rewrite gives when it is read, in the question's place, with the evidence of all listed answers."""

    own: float
    """The probability of the reading's own answer."""
    other: float
    """The probability of the likeliest other answer."""
    fluent: float
    """The probability that a person could have written the rewrite."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One unambiguous reading of a question: the rewrite, its answer, where it was found."""

    question: str
    answer: str
    evidence: tuple[Span, ...] = ()
    confidence: float = 0.0
    """The probability of the answer, whatever the rewrite."""
    source: str = ""
    """Where the answer comes from, if no true and distinct rewrite was found: `question` is then as it was asked."""
    asked_again: AskedAgain | None = None
    """What a provider that asks again has read; None from others."""
    label: str = ""
    """The words of the evidence that name the answer's case: "Skerry 24", "in Malta", "the 1961 film"."""

    def told_apart(self, asked: str) -> str:
        """Return what tells this reading from others of the question that was asked: its rewrite, else its label, else
        its source; empty if it has none of them.

        >>> Reading("Who made the film Dune?", "Lynch", label="film").told_apart("Who made Dune?")
        'Who made the film Dune?'
        >>> Reading("How long?", "2 years", source="Data sheet", label="Skerry 24").told_apart("How long?")
        'Skerry 24'
        >>> Reading("How long?", "2 years", source="Data sheet").told_apart("How long?")
        'from “Data sheet”'
        """
        if self.question != asked:
            return self.question
        if self.label or not self.source:
            return self.label
        return f"from “{self.source}”"


def is_tentative(readings: Sequence[Reading]) -> bool:
    """Say whether these are an only reading that is not probable. A score below 0 is no probability.

    >>> is_tentative([Reading("Who?", "Ann", confidence=0.4)]), is_tentative([Reading("Who?", "Ann", confidence=0.5)])
    (True, False)
    """
    return len(readings) == 1 and 0 <= readings[0].confidence < TENTATIVE_UNDER


@dataclass(frozen=True, slots=True)
class Option:
    """One choice that a clarification offers, bound to what it stands for."""

    id: str
    """Stable within a clarification: "1", "2", …, and "2.1" inside the group "2"."""
    label: str
    """What is chosen, in at most 40 characters: "the 2002 film"."""
    description: str = ""
    """A line beneath it: the answer's hint, or where the evidence is from."""
    readings: tuple[Reading, ...] = ()
    """The readings that it stands for: one, or several whose labels could not be told apart, or all of a group."""
    options: tuple[Option, ...] = ()
    """The narrower choices of a group; empty for others."""


@dataclass(frozen=True, slots=True)
class Clarification:
    """One question back to the person: which reading was meant?"""

    header: str
    """At most 12 characters, for a tab or a chip: "Version"."""
    question: str
    """With its category and all labels: "Which version: the film, the book, or the musical?"."""
    category: str
    """What the options have in common, as it stands in the question: "version", or "one"."""
    options: tuple[Option, ...]

    @property
    def lead(self) -> str:
        """The question without its options: "Which version", "As of which year"."""
        return self.question.partition(":")[0].rstrip("? ")


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

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Every cited passage once, in the order of its first citation: [1] is the first of them."""
        cited: dict[str, Passage] = {}
        for citation in self.sentences:
            for passage in citation.passages:
                cited.setdefault(passage.id, passage)
        return tuple(cited.values())

    @property
    def cited_text(self) -> str:
        """The text with the numbers of its passages, as ALCE writes them: "… in the 2002 film [1][3]."."""
        numbers = {one.id: place for place, one in enumerate(self.passages, 1)}
        sentences = []
        for citation in self.sentences:
            cited = dict.fromkeys(passage.id for passage in citation.passages)
            marks = "".join(
                f"[{number}]" for number in sorted(numbers[i] for i in cited)
            )
            body = citation.sentence.rstrip()
            end = body[-1:] if body.endswith((".", "!", "?")) else ""
            body = body.removesuffix(end)
            sentences.append(f"{body} {marks}{end}" if marks else citation.sentence)
        return " ".join(sentences)
