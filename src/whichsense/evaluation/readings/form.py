"""The form that people fill in: questions, the readings that were shown for them, and four marks for each reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from whichsense import records
from whichsense.errors import BadInput
from whichsense.files import read_json
from whichsense.types import AskedAgain

_SCHEMA = 2
"""Of a form in JSON. Schema 1 said `several`, true or false, in place of `draw`; other numbers are refused."""

Draw = Literal["several", "all", "ambiguous"]
"""Which questions are in a form: those that got several readings, all, or all that annotators call ambiguous."""

DRAWS: tuple[Draw, ...] = get_args(Draw)

RUBRIC = {
    "answer": "The answer is right for the question as asked, under at least one plausible reading, and the evidence "
    "supports it.",
    "true": "Whoever asks exactly the rewrite would rightly be given exactly this answer: what the rewrite adds (year, "
    "work, place, sport, role) belongs to this answer.",
    "apart": "The rewrite does not equally call for another listed answer.",
    "fluent": "A person could have written the rewrite. A trailing “, according to …” is not fluent; lower-case names "
    "are no fault.",
}
"""When a mark of a reading with a rewrite is yes."""

WITHOUT_REWRITE = {
    "answer": RUBRIC["answer"],
    "true": "Label or source, title and sentence do not mislead about what this is an answer to.",
    "apart": "A reader can tell when this answer applies and the others do not.",
    "fluent": "The label or source reads as a person would write it; yes if there is neither.",
}
"""When a mark of a reading with a label, a source or neither is yes."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What one reader says about a reading; None where nothing was said yet."""

    answer: bool | None = None
    true: bool | None = None
    apart: bool | None = None
    fluent: bool | None = None

    @property
    def missing(self) -> list[str]:
        """The marks that were not given."""
        return [mark for mark in RUBRIC if getattr(self, mark) is None]

    def labels(self) -> dict[str, bool]:
        """The four marks, and what follows from them.

        >>> Marks(answer=True, true=True, apart=True, fluent=False).labels()["good"]
        False
        """
        labels = {mark: bool(getattr(self, mark)) for mark in RUBRIC}
        correct = labels["answer"] and labels["true"] and labels["apart"]
        labels["correct"] = correct
        labels["good"] = correct and labels["fluent"]
        return labels


LABELS = tuple(Marks().labels())
"""The names of all labels, in the order of the table."""


@dataclass(frozen=True, slots=True)
class ShownReading:
    """A reading as a person sees it, with the system's own opinion of it and the person's marks."""

    rewrite: str
    """The question as it was asked, if there is no rewrite."""
    answer: str
    source: str
    """What tells the answer apart, its label or where it comes from, if there is no rewrite."""
    title: str
    sentence: str
    """The sentence of the evidence that holds the answer, or the passage whose title is the answer; empty where there
    is no evidence."""
    start: int
    end: int
    """Where the answer stands in the sentence; the same number twice if it does not."""
    confidence: float
    asked_again: AskedAgain | None
    marks: Marks = Marks()


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question of the form."""

    id: str
    question: str
    gold: tuple[tuple[str, ...], ...]
    """The readings that annotators gave, each as the names of its answer: those of the annotation with the most. The
    page does not show them. In forms of schema 1: the distinct answers of all annotations."""
    readings: tuple[ShownReading, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """A form: empty as it is drawn, or filled in by one reader."""

    dataset: str
    seed: int
    draw: str
    """One of `DRAWS`."""
    available: int
    """Questions that could be drawn: those of the dataset, or the ambiguous ones among them."""
    asked: int
    """Questions that were drawn and asked, in the form or not."""
    one_reading: int
    no_reading: int
    """How many of the asked questions got a single reading, and how many none."""
    questions: tuple[JudgedQuestion, ...]
    reader: str = ""
    """Who filled it in."""
    provenance: Mapping[str, Any] = field(
        default_factory=dict, metadata={"json": False}
    )

    @property
    def shown(self) -> int:
        """How many readings are to be marked."""
        return sum(len(question.readings) for question in self.questions)

    @property
    def gold(self) -> int:
        """How many readings annotators gave to the questions; 0 where the questions were not drawn for counting them.

        Only ambiguous questions that were drawn before they were asked can tell how many readings are missing.
        """
        if self.draw != "ambiguous":
            return 0
        return sum(len(question.gold) for question in self.questions)

    def to_json(self) -> dict[str, Any]:
        """The form as JSON values, with the rubric for those who fill it in by hand."""
        fields: dict[str, Any] = {
            "schema": _SCHEMA,
            "reader": self.reader,
            "rubric": {"with a rewrite": RUBRIC, "without one": WITHOUT_REWRITE},
            **records.encode(self),
            "provenance": dict(self.provenance),
        }
        return fields

    @classmethod
    def from_json(cls, value: Any) -> Form:
        """Read what `to_json` wrote. Raises `BadInput` where a field is missing or wrong."""
        schema = value.get("schema") if isinstance(value, Mapping) else None
        if schema not in (1, _SCHEMA):
            raise BadInput(
                f"This is not a form of schema {_SCHEMA} or 1 (its schema: {schema!r})."
            )
        fields = dict(value)
        if schema == 1:
            fields["draw"] = "several" if fields.pop("several", None) else "all"
        if fields.get("draw") not in DRAWS:
            raise BadInput(f"'draw' must be one of: {', '.join(DRAWS)}.")
        provenance = fields.pop("provenance", {})
        for name in ("schema", "rubric"):
            fields.pop(name, None)
        return replace(records.decode(cls, fields), provenance=provenance)


def load_form(path: str | Path) -> Form:
    """Read a form, filled in or not."""
    value = read_json(path)
    try:
        return Form.from_json(value)
    except BadInput as error:
        raise BadInput(
            f"'{path}' is not a form. {error} Draw one with: whichsense evaluate readings --dataset NAME --out {path}; "
            "a mark is true or false."
        ) from None
