"""Imports: the file of a release becomes a project with its annotations, and an export of everything the same project.

Nothing of a file is executed, and no text is changed: it is kept as it stands.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from whichsense.config import from_table
from whichsense.errors import BadInput
from whichsense.files import read_json, read_jsonl
from whichsense.lab.datasets.rows import read_rows
from whichsense.studio.agreement import difference
from whichsense.studio.checks import Value
from whichsense.studio.database import Place
from whichsense.studio.exports import FORMATS
from whichsense.studio.history import Event, by_draft, fold
from whichsense.studio.items import Item
from whichsense.studio.kinds import KINDS, Kind
from whichsense.studio.project import Project, Settings, check_name, make_project
from whichsense.studio.releases import RELEASES, Outcome

_FIX = "Export it again, or name its format with --format."
_A_READERS = ("questions", "reader")  # what of a form is a reader's own


def import_project(folder: Path, paths: Sequence[Path], form: str, database: str = "") -> Project:
    """Make a project of exported or released files: one, or for marks the forms of several readers."""
    check_name(folder)
    if form not in FORMATS:
        raise BadInput(f"There is no format '{form}'. Formats: {', '.join(FORMATS)}.")
    if form == "readings":
        return _import_forms(folder, paths, database)
    if len(paths) != 1:
        raise BadInput(f"An import of the format '{form}' takes one file.")
    if form == "jsonl":
        return _import_everything(folder, paths[0], database)
    outcomes = []
    for row in read_rows(paths[0], _FIX):
        with _expected(row.where, form):
            outcomes.append(RELEASES[form].read(row.value))
    return _import_outcomes(folder, RELEASES[form].kinds[0], outcomes, database)


@contextmanager
def _expected(where: str, form: str) -> Iterator[None]:
    """Turn what a wrong form leads to into an error that names it."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadInput(
            f"{where}: it does not have the form of '{form}' ({error}). {_FIX}"
        ) from None


def _import_outcomes(
    folder: Path, kind: str, outcomes: Sequence[Outcome], database: str, names: Sequence[str] = ()
) -> Project:
    if not outcomes:
        raise BadInput("The file has no questions.")
    at = time.time()
    overlap = max(1, *(len(one.values) for one in outcomes))
    events = []
    for number, name in enumerate(names or [""] * overlap, 1):
        invited = {"name": name or f"annotator {number}", "role": "annotator", "imported": True}
        events.append(Event(0, 0, f"import-{number}", 0, "invite", invited, at))
    items = [_item_of(KINDS[kind], one) for one in outcomes]
    places: list[Place] = []
    for number, item in enumerate(items, 1):
        for slot, (who, value) in enumerate(item.values.items(), 1):
            events.append(Event(0, number, who, 1, "save", {"set": value}, at))
            events.append(Event(0, number, who, 2, "submit", {}, at))
            places.append((number, slot, who))
    settings = Settings(
        kind=kind, overlap=overlap, database=database, guidelines=KINDS[kind].guidelines
    )
    return make_project(folder, settings, items, places, events)


def _item_of(kind: Kind, outcome: Outcome) -> Item:
    if kind.name == "readings" and not outcome.body["readings"]:
        return Item(outcome.body, "unread")
    values = {f"import-{number}": value for number, value in enumerate(outcome.values, 1)}
    item = Item(outcome.body, values=values)
    return replace(item, difference=difference(kind, item))


def _import_forms(folder: Path, paths: Sequence[Path], database: str) -> Project:
    forms = []
    for path in paths:
        with _expected(f"'{path}'", "readings"):
            forms.append(form := read_json(path))
            questions = _unmarked(form)
        if questions != _unmarked(forms[0]):
            raise BadInput(f"'{path}' is another form than '{paths[0]}'. Import each by itself.")
    if questions:
        about = {name: value for name, value in forms[0].items() if name not in _A_READERS}
        questions[0]["form"] = about
    names = [form.get("reader", "") for form in forms]
    marked = zip(*map(_marks, forms), strict=True)
    outcomes = list(map(Outcome, questions, marked))
    return _import_outcomes(folder, "readings", outcomes, database, names)


def _marks(form: Value) -> list[dict[str, Any]]:
    """What a reader marked, for each question."""
    questions = [question["readings"] for question in form["questions"]]
    return [{"marks": [one.get("marks", {}) for one in own]} for own in questions]


def _unmarked(form: Value) -> list[dict[str, Any]]:
    """The questions of a form as they were before anybody marked them."""
    questions = []
    for question in form["questions"]:
        bare = [
            {name: value for name, value in one.items() if name != "marks"}
            for one in question["readings"]
        ]
        questions.append({**question, "readings": bare})
    return questions


def _import_everything(folder: Path, path: Path, database: str) -> Project:
    settings: Settings | None = None
    items: list[Item] = []
    counts: dict[int, int] = {}
    events = []
    for number, row in read_jsonl(path):
        with _expected(f"'{path}', line {number}", "jsonl"):
            if "project" in row:
                own = {**row["project"], "database": database}
                settings = from_table(Settings, own, str(path))
            elif "event" in row:
                events.append(Event(0, **row["event"]))
            else:
                counts[row.pop("item")] = row.pop("slots")
                items.append(Item(**row))
    if settings is None or list(counts) != list(range(1, len(items) + 1)):
        raise BadInput(
            f"'{path}' is no whole export: its first line names the project, and items are numbered."
        )
    return make_project(folder, settings, items, _places(events, counts), events)


def _places(events: Sequence[Event], counts: Mapping[int, int]) -> list[Place]:
    """The places of each item: those whose annotation was submitted are taken, the others are free."""
    done: dict[int, list[str | None]] = {number: [] for number in counts}
    for (item, who), history in by_draft(events).items():
        if fold(history).is_submitted and item in done:
            done[item].append(who)
    places = []
    for item, submitted in done.items():
        people = [*submitted, *[None] * (counts[item] - len(submitted))]
        places += [(item, slot, who) for slot, who in enumerate(people, 1)]
    return places
