"""Filled forms of several readers, checked: the same form, and every mark given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from whichsense.errors import BadInput
from whichsense.evaluation.readings.form import (
    RUBRIC,
    Form,
    JudgedQuestion,
    Marks,
    load_form,
)

Labels = dict[str, bool]
"""Of one reader about one reading: by the name of the label."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One form with the labels of every reader."""

    form: Form
    readers: tuple[str, ...]
    labels: tuple[tuple[tuple[Labels, ...], ...], ...]
    """By reader, question and reading, in the order of the form."""


def load_judged(paths: Sequence[Path]) -> Judged:
    """Read the filled forms. Raises `BadInput` where they are of different forms or a mark is missing."""
    if not paths:
        raise BadInput("Give at least one filled form.")
    forms = [load_form(path) for path in paths]
    for path, form in zip(paths, forms, strict=True):
        _refuse_another_form(forms[0], paths[0], form, path)
        _refuse_missing_marks(form, path)
    labels = []
    for form in forms:
        labels.append(tuple(map(_label_readings, form.questions)))
    return Judged(forms[0], _name_readers(forms, paths), tuple(labels))


def _label_readings(question: JudgedQuestion) -> tuple[Labels, ...]:
    return tuple(reading.marks.labels() for reading in question.readings)


def _refuse_another_form(first: Form, first_path: Path, form: Form, path: Path) -> None:
    expected = _without_marks(first)
    given = _without_marks(form)
    if given == expected:
        return
    advice = "Give only forms that were filled in from the same FORM.json."
    for number, (one, other) in enumerate(zip(expected, given, strict=False), 1):
        if one != other:
            raise BadInput(
                f"'{path}' is not the form of '{first_path}': question {number} ('{other.question}') or its readings "
                f"differ. {advice}"
            )
    raise BadInput(
        f"'{path}' is not the form of '{first_path}': it has {len(given):,} questions, not {len(expected):,}. {advice}"
    )


def _without_marks(form: Form) -> list[JudgedQuestion]:
    """The questions and readings that were to be judged."""
    questions = []
    for question in form.questions:
        readings = []
        for reading in question.readings:
            readings.append(replace(reading, marks=Marks()))
        questions.append(replace(question, readings=tuple(readings)))
    return questions


def _refuse_missing_marks(form: Form, path: Path) -> None:
    if not form.shown:
        raise BadInput(f"'{path}' shows no reading: there is nothing to count.")
    places = []
    for number, question in enumerate(form.questions, 1):
        for rank, reading in enumerate(question.readings, 1):
            for mark in reading.marks.missing:
                places.append(f"'{mark}' of question {number}, reading {rank}")
    if places:
        total = len(RUBRIC) * form.shown
        raise BadInput(
            f"'{path}': {len(places):,} of {total:,} marks are not given, first {places[0]}. Give each true or false."
        )


def _name_readers(forms: Sequence[Form], paths: Sequence[Path]) -> tuple[str, ...]:
    """Each reader's name, or the file's; with a number where two are the same."""
    names: list[str] = []
    for form, path in zip(forms, paths, strict=True):
        name = form.reader or path.stem
        while name in names:
            name = f"{name} ({len(names) + 1})"
        names.append(name)
    return tuple(names)
