"""Everything that is known of a question, in one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from whichsense import records
from whichsense.errors import BadInput
from whichsense.types.corpus import Hit
from whichsense.types.readings import (
    Candidate,
    Clarification,
    LongAnswer,
    Reading,
    is_tentative,
)

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
        """The case with this added to what a stage has used."""
        before = self.spent.get(stage, Cost())
        after = before + Cost(seconds, tokens)
        return replace(self, spent={**self.spent, stage: after})

    def with_note(self, note: str) -> Case:
        """The case with one more note; each is kept once."""
        return self if note in self.notes else replace(self, notes=(*self.notes, note))

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


@dataclass(frozen=True, slots=True)
class ServedCase:
    """A case as a service gives it: with the id under which it can be rejoined, judged and deleted."""

    id: str
    case: Case
    system: str = ""
    """The system that answered, by the name under which the service has it."""

    def to_json(self) -> dict[str, Any]:
        """The case as JSON values, with what a client would otherwise have to derive."""
        return {
            "id": self.id,
            "system": self.system,
            "tentative": self.case.is_tentative,
            "case": self.case.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ServedCase:
        """Read what `to_json` wrote."""
        case = Case.from_json(value["case"])
        return cls(str(value["id"]), case, str(value.get("system", "")))
