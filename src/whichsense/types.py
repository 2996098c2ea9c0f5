"""The records that flow between the stages: frozen and typed. `Case` holds all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from whichsense import records
from whichsense.errors import BadInput

_SCHEMA = 2
"""Of a case in JSON; another number is refused."""


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
    source: str = ""
    """Where the answer comes from, if no true and distinct rewrite was found: `question` is then as it was asked."""
    asked_again: AskedAgain | None = None
    """What a provider that asks again has read; None from others."""


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


@dataclass(frozen=True, slots=True)
class Policy:
    """For whom a question is answered. The pipeline holds it; every case carries it."""

    name: str
    careful: bool
    """Give no answer where the evidence hardly holds one, a single one where no
    others are probable, and no rewrite that is probably false. Split what is
    probable (`Case.readings`) from what is merely possible (`Case.possible`); where the
    line lies is the provider's own. Benchmarks count a missing answer as wrong and
    compare every rewrite, so they want none of this."""
    threshold: float | None = None
    """Give every answer that is at least this probable: none that reaches it is kept
    apart as merely possible. None: the provider chooses."""


FOR_PEOPLE = Policy("people", careful=True)
FOR_BENCHMARKS = Policy("benchmarks", careful=False)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage used for one case."""

    seconds: float = 0.0
    tokens: int = 0
    """Tokens that a language model read and wrote; 0 for other providers."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class Case:
    """A question on its way through the stages. Each stage returns it with more filled in.

    It is the answer to a request, the line of a journal and the unit of work of a
    cluster: `to_json` and `from_json` carry everything but `scratch`.
    """

    question: str
    hits: tuple[Hit, ...] = ()
    answers: tuple[Candidate, ...] = ()
    readings: tuple[Reading, ...] = ()
    """What is probable, best first: it is shown, predicted, clarified and summarized."""
    possible: tuple[Reading, ...] = ()
    """What is merely possible, best first: kept apart, and shown on demand. No answer is in both."""
    answerable: float | None = None
    """The probability that the evidence holds an answer, where a provider gives it."""
    ambiguous: float | None = None
    """The probability that the question has several readings, where a provider gives it."""
    is_ambiguous: bool | None = None
    """The provider's decision about that, by its own threshold."""
    clarification: Clarification | None = None
    long_answer: LongAnswer | None = None
    policy: Policy = FOR_PEOPLE
    spent: Mapping[str, Cost] = field(default_factory=dict)
    """By the name of the stage."""
    stopped: str = ""
    """Why the case ended before its last stage: "deadline" or "cancelled"."""
    scratch: object = field(
        default=None, repr=False, compare=False, metadata={"json": False}
    )
    """A provider's own state, handed to its later stages; never serialised."""

    @property
    def confidence(self) -> float:
        """The confidence of the first reading; without readings, the probability that
        there is an answer at all. What is merely possible does not count."""
        if self.readings:
            return self.readings[0].confidence
        return self.answerable or 0.0

    @property
    def has_several_readings(self) -> bool:
        """Whether several readings are probable, or one of a question that has more."""
        if len(self.readings) > 1:
            return True
        return bool(self.readings) and bool(self.is_ambiguous)

    @property
    def seconds(self) -> float:
        return sum(cost.seconds for cost in self.spent.values())

    def spend(self, stage: str, seconds: float = 0.0, tokens: int = 0) -> Case:
        """The case with this added to what a stage has used."""
        before = self.spent.get(stage, Cost())
        after = before + Cost(seconds, tokens)
        return replace(self, spent={**self.spent, stage: after})

    def with_question(self, question: str) -> Case:
        """The same evidence for another question, of which nothing is answered yet."""
        return replace(
            self, question=question, answers=(), readings=(), possible=(), scratch=None
        )

    def to_json(self) -> dict[str, Any]:
        """The case as JSON values; `from_json` gives an equal case back."""
        return {"schema": _SCHEMA, **records.encode(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Case:
        """Read what `to_json` wrote. Raises `BadInput` where a field is missing or wrong."""
        schema = value.get("schema") if isinstance(value, Mapping) else None
        if schema != _SCHEMA:
            raise BadInput(
                f"This is not a case of schema {_SCHEMA} (its schema: {schema!r}). "
                "Use what Case.to_json of the same version of whichsense wrote."
            )
        fields = {name: item for name, item in value.items() if name != "schema"}
        return records.decode(cls, fields)
