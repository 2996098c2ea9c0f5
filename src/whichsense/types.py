"""The records that flow between the stages: frozen and typed, with their JSON form. `Case` holds all of them."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, TypeVar, dataclass_transform

from whichsense.errors import BadInput

__all__ = [
    "FOR_BENCHMARKS",
    "FOR_PEOPLE",
    "AskedAgain",
    "Call",
    "Candidate",
    "Case",
    "Citation",
    "Clarification",
    "Cost",
    "Document",
    "Hit",
    "LongAnswer",
    "Method",
    "Option",
    "Passage",
    "PassageInContext",
    "Policy",
    "Reading",
    "Redirect",
    "Sense",
    "ServedCase",
    "Span",
    "is_tentative",
]

_Class = TypeVar("_Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[_Class]) -> type[_Class]:
    """Make a class a frozen dataclass with slots: a record."""
    return dataclass(frozen=True, slots=True)(cls)


# Frozen dataclasses as JSON values and back: a record becomes an object with its fields' names.
#
# Fields with `metadata={"json": False}` stay behind. `decode` checks names and types all the way
# down, so that a line which was cut or edited is told and not believed.

Record = TypeVar("Record")


def encode(value: Any) -> Any:
    """JSON values of a record, or of a tuple or mapping of records."""
    if dataclasses.is_dataclass(value):
        return {name: encode(getattr(value, name)) for name in serialised_fields(type(value))}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    return value


def decode(record: type[Record], value: Any, where: str = "") -> Record:
    """Return the record that `encode` wrote. Raises `BadInput` with the place of what is wrong."""
    hints = serialised_fields(record)
    where = where or record.__name__
    if not isinstance(value, Mapping):
        raise BadInput(f"{where}: {value!r} is not a JSON object.")
    for name in hints:
        if name not in value:
            raise BadInput(f"{where}: the field '{name}' is missing.")
    for name in value:
        if name not in hints:
            raise BadInput(f"{where}: there is no field '{name}'.")
    fields = {
        name: _decode_field(hint, value[name], f"{where}.{name}") for name, hint in hints.items()
    }
    return record(**fields)


def serialised_fields(record: Any) -> dict[str, Any]:
    """Return the types of a record's fields that are serialised, by their names."""
    fields: dict[str, Any] = _cached_fields_of(record)
    return fields


@cache
def _cached_fields_of(record: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(record)
    return {
        declared.name: hints[declared.name]
        for declared in dataclasses.fields(record)
        if declared.metadata.get("json", True)
    }


def _decode_field(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):  # only X | None occurs
        return None if value is None else _decode_field(arguments[0], value, where)
    if dataclasses.is_dataclass(hint):
        return decode(typing.cast("type[Any]", hint), value, where)
    if origin is tuple:
        _expect(isinstance(value, list), value, where, "a list")
        items = [
            _decode_field(arguments[0], item, f"{where}[{number}]")
            for number, item in enumerate(value)
        ]
        return tuple(items)
    if origin is not None:  # Mapping[str, X]
        _expect(isinstance(value, Mapping), value, where, "a JSON object")
        return {
            key: _decode_field(arguments[1], item, f"{where}.{key}") for key, item in value.items()
        }
    _expect(_is_a(hint, value), value, where, hint.__name__)
    return value


def _is_a(kind: type[Any], value: Any) -> bool:
    """JSON may write a float as 1, and in Python True is an int, but neither is a mistake to pass over."""
    if kind is float:
        return type(value) in (int, float)
    return type(value) is kind


def _expect(fits: bool, value: Any, where: str, kind: str) -> None:
    if not fits:
        raise BadInput(f"{where}: {value!r} is not {kind}.")


# What is searched and found: documents, passages, hits, spans.

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
class PassageInContext:
    """A passage with its neighbours in its document."""

    passage: Passage
    before: tuple[Passage, ...]
    after: tuple[Passage, ...]


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


# What is made of the evidence: answers, readings, a clarification, a long answer.

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
            marks = "".join(f"[{number}]" for number in sorted(numbers[i] for i in cited))
            body = citation.sentence.rstrip()
            end = body[-1:] if body.endswith((".", "!", "?")) else ""
            body = body.removesuffix(end)
            sentences.append(f"{body} {marks}{end}" if marks else citation.sentence)
        return " ".join(sentences)


# Everything that is known of a question, in one record.

_SCHEMA = 4
"""Of a case in JSON; another number is refused."""


@dataclass(frozen=True, slots=True)
class Policy:
    """For whom a question is answered. The pipeline holds it; every case carries it."""

    name: str
    careful: bool
    """Give no answer where the evidence hardly holds one, and no rewrite that is
    probably false. Split what is shown (`Case.readings`) from what is merely possible
    (`Case.possible`) by the probability of the answers. Benchmarks count a missing
    answer as wrong and compare every rewrite, so they want none of this."""
    threshold: float | None = None
    """The least probability of an answer that is shown, more than 0 and at most 1. The
    best answer is shown in any case. None: the provider has a number for each kind of
    corpus."""
    least: int = field(default=1, metadata={"json": False})
    """Give at least so many answers where the evidence has as many candidates: who is
    asked back is offered two. Only benchmarks ask for it."""

    def __post_init__(self) -> None:
        if self.threshold is not None and not 0 < self.threshold <= 1:
            raise BadInput(
                "A threshold is a probability: give a number that is more than 0 and at "
                f"most 1, not {self.threshold}."
            )

    def with_threshold(self, threshold: float | None) -> Policy:
        """Return the policy with another threshold; None leaves its own."""
        return self if threshold is None else replace(self, threshold=threshold)


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
class Call:
    """One call of a language model."""

    stage: str
    prompt: str
    """The name of the prompt file."""
    model: str
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    cached: bool = False
    """Whether the reply came from the cache on disk."""
    attempts: int = 1
    """How often the server was asked, with what had to be tried again."""
    problem: str = ""
    """Why no use could be made of the reply; empty where it was used."""


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
    """What is shown, best first: every answer that is probable enough, and the best one in any case. It is predicted,
    clarified and summarized."""
    possible: tuple[Reading, ...] = ()
    """What is merely possible, best first: kept apart, and shown on demand. No answer is in both."""
    answerable: float | None = None
    """The probability that the evidence holds an answer, where a provider gives it."""
    ambiguous: float | None = None
    """The probability that the question has several readings, where a provider gives it."""
    is_ambiguous: bool | None = None
    """Whether the question is ambiguous. For people: whether several readings are shown; for benchmarks the provider
    decides by its own threshold."""
    clarification: Clarification | None = None
    long_answer: LongAnswer | None = None
    policy: Policy = FOR_PEOPLE
    spent: Mapping[str, Cost] = field(default_factory=dict)
    """By the name of the stage."""
    calls: tuple[Call, ...] = ()
    """Every call of a language model, in the order in which they ended."""
    notes: tuple[str, ...] = ()
    """What a person should know of how it was answered: a provider that failed, and what answered in its place."""
    stopped: str = ""
    """Why the case ended before its last stage: "deadline" or "cancelled"."""
    scratch: object = field(default=None, repr=False, compare=False, metadata={"json": False})
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
        """Whether more than one reading is shown: the question is ambiguous, and no answer is the answer."""
        return len(self.readings) > 1

    @property
    def is_tentative(self) -> bool:
        """Whether the only answer is not probable: it is given as "Perhaps: …"."""
        return is_tentative(self.readings)

    @property
    def seconds(self) -> float:
        return sum(cost.seconds for cost in self.spent.values())

    def spend(self, stage: str, seconds: float = 0.0, tokens: int = 0) -> Case:
        """Return the case with this added to what a stage has used."""
        before = self.spent.get(stage, Cost())
        after = before + Cost(seconds, tokens)
        return replace(self, spent={**self.spent, stage: after})

    def with_question(self, question: str) -> Case:
        """Return the same evidence for another question, of which nothing is answered yet."""
        return replace(self, question=question, answers=(), readings=(), possible=(), scratch=None)

    def to_json(self) -> dict[str, Any]:
        """Return the case as JSON values; `from_json` gives an equal case back."""
        return {"schema": _SCHEMA, **encode(self)}

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
        return decode(cls, fields)


@dataclass(frozen=True, slots=True)
class ServedCase:
    """A case as a service gives it: with the id under which it can be rejoined, judged and deleted."""

    id: str
    case: Case
    system: str = ""
    """The system that answered, by the name under which the service has it."""
    index: str = ""
    """The index that was asked, by its name there."""

    def to_json(self) -> dict[str, Any]:
        """Return the case as JSON values, with what a client would otherwise have to derive."""
        return {
            "id": self.id,
            "system": self.system,
            "index": self.index,
            "tentative": self.case.is_tentative,
            "case": self.case.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ServedCase:
        """Read what `to_json` wrote."""
        case = Case.from_json(value["case"])
        names = [str(value.get(name, "")) for name in ("system", "index")]
        return cls(str(value["id"]), case, *names)
