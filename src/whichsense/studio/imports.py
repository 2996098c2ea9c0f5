"""Imports: the file of a release becomes a project with its annotations, and an export of everything the same project.

Nothing of a file is executed, and no text is changed: it is kept as it stands.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from whichsense.config import from_table
from whichsense.errors import BadInput
from whichsense.files import read_json, read_jsonl
from whichsense.lab.datasets.rows import read_rows
from whichsense.studio.agreement import Annotated, item_agreement
from whichsense.studio.checks import Value
from whichsense.studio.database import add_items, add_slots
from whichsense.studio.exports import FORMATS
from whichsense.studio.history import Event, fold, insert_events
from whichsense.studio.items import NewItem
from whichsense.studio.kinds import KINDS
from whichsense.studio.project import Project, Settings, check_name, make_project
from whichsense.studio.releases import RELEASES, Outcome

_FIX = "Export it again, or name its format with --format."
_RELEASED_KIND = {name: one.kinds[0] for name, one in RELEASES.items()}


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
        try:
            outcomes.append(RELEASES[form].read(row.value))
        except (KeyError, TypeError, AttributeError) as error:
            raise row.bad(f"it does not have the form of '{form}' ({error})") from None
    return _import_outcomes(folder, outcomes, _settings(_RELEASED_KIND[form], outcomes, database))


def _settings(kind: str, outcomes: Sequence[Outcome], database: str) -> Settings:
    if not outcomes:
        raise BadInput("The file has no questions.")
    overlap = max(1, *(len(one.values) for one in outcomes))
    guidelines = KINDS[kind].guidelines
    return Settings(kind=kind, overlap=overlap, database=database, guidelines=guidelines)


def _import_outcomes(
    folder: Path, outcomes: Sequence[Outcome], settings: Settings, names: Sequence[str] = ()
) -> Project:
    at = time.time()
    people = [
        name or f"annotator {n}" for n, name in enumerate(names or [""] * settings.overlap, 1)
    ]
    events: list[dict[str, Any]] = []
    for number, name in enumerate(people, 1):
        invited = {"name": name, "role": "annotator", "imported": True}
        events.append(_event(at, (0, number), "invite", invited))
    kind = KINDS[settings.kind]
    items, places = [], []
    for number, one in enumerate(outcomes, 1):
        is_shown = settings.kind != "readings" or one.body["readings"]
        people_say = {str(who): value for who, value in enumerate(one.values)}
        item = Annotated(number, one.body, people_say)
        differ = 1 - item_agreement(kind, item) if is_shown and len(people_say) > 1 else 0.0
        items.append(NewItem(one.body, "work" if is_shown else "unread", difference=differ))
        for who, value in enumerate(one.values, 1) if is_shown else ():
            events.append(_event(at, (number, who), "save", {"set": value}, 1))
            events.append(_event(at, (number, who), "submit", {}, 2))
            places.append((number, who, f"import-{who}"))

    def fill(connection: Connection) -> None:
        add_items(connection, items, 0)
        add_slots(connection, places)
        insert_events(connection, events)

    return make_project(folder, settings, fill)


def _event(
    at: float, of: tuple[int, int], kind: str, payload: Value, version: int = 0
) -> dict[str, Any]:
    item, who = of
    fields = {"item": item, "annotator": f"import-{who}", "version": version}
    return {**fields, "kind": kind, "payload": payload, "at": at}


def _import_forms(folder: Path, paths: Sequence[Path], database: str) -> Project:
    forms = [read_json(path) for path in paths]
    for path, form in zip(paths, forms, strict=True):
        if not isinstance(form, dict) or "questions" not in form:
            raise BadInput(f"'{path}' is no form of whichsense evaluate readings.")
        if _unmarked(form) != _unmarked(forms[0]):
            raise BadInput(f"'{path}' is another form than '{paths[0]}'. Import each by itself.")
    if not forms:
        raise BadInput("Name at least one form.")
    outcomes = []
    for number, question in enumerate(forms[0]["questions"]):
        body = {**question, "readings": _bare(question)}
        if not number:
            body["form"] = {
                name: value
                for name, value in forms[0].items()
                if name not in ("questions", "reader")
            }
        marks = [
            [one.get("marks", {}) for one in form["questions"][number]["readings"]]
            for form in forms
        ]
        outcomes.append(Outcome(body, [{"marks": own} for own in marks]))
    settings = _settings("readings", outcomes, database)
    return _import_outcomes(folder, outcomes, settings, [form.get("reader", "") for form in forms])


def _bare(question: Value) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in one.items() if name != "marks"}
        for one in question["readings"]
    ]


def _unmarked(form: Value) -> list[dict[str, Any]]:
    return [{**question, "readings": _bare(question)} for question in form["questions"]]


def _import_everything(folder: Path, path: Path, database: str) -> Project:
    settings: Settings | None = None
    items: list[NewItem] = []
    counts: dict[int, int] = {}
    events: list[dict[str, Any]] = []
    for row in _lines(path):
        if "project" in row:
            settings = from_table(Settings, {**row["project"], "database": database}, str(path))
        elif "event" in row:
            events.append(row["event"])
        else:
            items.append(
                NewItem(
                    row["body"], row["part"], row["gold"], row["uncertainty"], row["difference"]
                )
            )
            counts[row["item"]] = row["slots"]
    if settings is None or list(counts) != list(range(1, len(items) + 1)):
        raise BadInput(
            f"'{path}' is no whole export: its first line names the project, and items are numbered."
        )
    places = _places(events, counts)

    def fill(connection: Connection) -> None:
        add_items(connection, items, 0)
        add_slots(connection, places)
        insert_events(connection, events)

    return make_project(folder, settings, fill)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for number, row in read_jsonl(path):
        if not isinstance(row, dict) or not ({"project", "event"} & set(row) or "body" in row):
            raise BadInput(f"'{path}', line {number}: no project, item or event. {_FIX}")
        yield row


def _places(
    events: Sequence[Value], counts: Mapping[int, int]
) -> list[tuple[int, int, str | None]]:
    """The places of each item: those whose annotation was submitted are taken, the others are free."""
    histories: dict[tuple[int, str], list[Event]] = {}
    for one in events:
        if one["item"]:
            histories.setdefault((one["item"], one["annotator"]), []).append(Event(id=0, **one))
    done: dict[int, list[str | None]] = {number: [] for number in counts}
    for (item, who), history in histories.items():
        if fold(history).is_submitted and item in done:
            done[item].append(who)
    places = []
    for item, submitted in done.items():
        free = [None] * (counts[item] - len(submitted))
        people = [*submitted, *free]
        places += [(item, slot, who) for slot, who in enumerate(people, 1)]
    return places
