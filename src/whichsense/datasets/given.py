"""Questions that a person names: a dataset of the catalog, or a file of their own in AmbigNQ's form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from whichsense.datasets.dataset import load
from whichsense.datasets.near import near_duplicates
from whichsense.datasets.readers import ambignq
from whichsense.datasets.records import Question

_FIX = "Is it AmbigNQ's file, light or full?"


def given_questions(
    name: str, data_dir: str | Path | None = None, without: Sequence[str] = ()
) -> tuple[list[Question], Path]:
    """The questions, and the file that they are from. `without` names others, none of which may be among them."""
    if not Path(name).is_file():
        return list(load(name, data_dir=data_dir, without=without)), given_file(
            name, data_dir
        )
    found = list(ambignq(Path(name), "", _FIX))
    others = [
        question.text
        for other in without
        for question in given_questions(other, data_dir)[0]
    ]
    repeated = (
        near_duplicates([question.text for question in found], others)
        if others
        else set()
    )
    return [
        question for number, question in enumerate(found) if number not in repeated
    ], Path(name)


def given_file(name: str, data_dir: str | Path | None = None) -> Path:
    """The file alone, without reading it."""
    return Path(name) if Path(name).is_file() else load(name, data_dir=data_dir).path
