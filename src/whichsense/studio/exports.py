"""Exports: a project as the file of a release, as forms of marks, or as everything; with a data statement."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.errors import BadInput
from whichsense.files import as_json, write_atomically
from whichsense.studio.adjudication import finals, unswapped
from whichsense.studio.checks import Value
from whichsense.studio.database import slots
from whichsense.studio.history import Event, read_events
from whichsense.studio.items import PARTS
from whichsense.studio.kinds import MARKS, Kind
from whichsense.studio.releases import RELEASES, Outcome
from whichsense.studio.statement import write_statement
from whichsense.studio.workbench import Item, Studio, all_submitted, read_items

FORMATS = (*RELEASES, "readings", "jsonl")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of files in an archive, which is the same each time


def default_format(kind: Kind) -> str:
    """The release that a kind's data fits; everything, where there is none."""
    if kind.name == "readings":
        return "readings"
    fitting = [one.name for one in RELEASES.values() if kind.name in one.kinds]
    return fitting[0] if fitting else "jsonl"


def export_files(studio: Studio, name: str) -> dict[str, bytes]:
    """The files of an export by name, the data statement last."""
    with studio.database.reading() as connection:
        if name == "jsonl":
            files = {"everything.jsonl": b"".join(map(as_json, _everything(studio, connection)))}
        elif name == "readings":
            files = _forms(studio, connection)
        else:
            files = _release(studio, connection, name)
    return {**files, "statement.md": write_statement(studio, name).encode(errors="replace")}


def export_to(studio: Studio, name: str, folder: Path) -> list[Path]:
    """Write an export's files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for file, body in export_files(studio, name).items():
        paths.append(folder / file)
        write_atomically(paths[-1], body)
    return paths


def export_archive(studio: Studio, name: str) -> bytes:
    """An export's files in one archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, body in export_files(studio, name).items():
            archive.writestr(zipfile.ZipInfo(file, _EPOCH), body, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _release(studio: Studio, connection: Connection, name: str) -> dict[str, bytes]:
    form = RELEASES[name]
    if studio.kind.name not in form.kinds:
        fitting = default_format(studio.kind)
        raise BadInput(
            f"A project of the kind '{studio.kind.name}' has no place in the format '{name}'. Export it as {fitting}."
        )
    rows = [row for one in outcomes(studio, connection) if (row := form.write(one))]
    if form.file.endswith(".jsonl"):
        return {form.file: b"".join(map(as_json, rows))}
    return {form.file: as_json(rows, indent=1)}


def outcomes(studio: Studio, connection: Connection) -> list[Outcome]:
    """Every item with its accepted annotations, searches and pages."""
    decided = finals(connection)
    values = all_submitted(connection)
    read = read_events(connection, kinds=("search", "view"))
    by_item: dict[int, list[Event]] = {}
    for event in read:
        by_item.setdefault(event.item, []).append(event)
    found = []
    for item in read_items(connection, "work", "agreed"):
        own = unswapped(studio, item, values.get(item.number, {}))
        if item.number in decided:
            own = {"": decided[item.number].payload["value"]}
        history = by_item.get(item.number, [])
        found.append(
            Outcome(
                item.body,
                accepted(studio.kind, item, own),
                [_search(one) for one in history if one.kind == "search"],
                [one.payload["title"] for one in history if one.kind == "view"],
            )
        )
    return found


def accepted(kind: Kind, item: Item, values: Mapping[str, Value]) -> list[Value]:
    """The annotations that count: those of generators that a validator accepts, or the validator's own."""
    if item.part == "agreed":
        return list(item.body["annotations"])
    if kind.name != "validate" or not values:
        return list(values.values())
    verdict = next(iter(values.values()))
    if verdict["verdict"] == "same":
        return list(item.body["annotations"])
    if verdict["verdict"] == "better":
        return [item.body["annotations"][verdict["better"]]]
    return [verdict]


def _search(event: Event) -> dict[str, Any]:
    results = event.payload["results"]
    shown = [{"title": one["title"], "snippet": one["snippet"]} for one in results]
    return {"query": event.payload["query"], "results": shown}


def _forms(studio: Studio, connection: Connection) -> dict[str, bytes]:
    """A filled form of `whichsense evaluate readings` for each annotator."""
    if studio.kind.name != "readings":
        raise BadInput("Only a project of the kind 'readings' has marks. Export it as jsonl.")
    items = read_items(connection, "work", "unread")
    values = all_submitted(connection)
    names = studio.members.names()
    readers = dict.fromkeys(who for own in values.values() for who in own)
    files = {}
    for number, who in enumerate(sorted(readers), 1):
        questions = []
        form: dict[str, Any] = {}
        for item in items:
            form = {**item.body.get("form", {}), **form}
            questions.append(_marked(item, values.get(item.number, {}).get(who, {})))
        filled = {**form, "reader": names.get(who, who), "questions": questions}
        files[f"reader-{number}.json"] = as_json(filled, indent=1)
    return files


def _marked(item: Item, value: Value) -> dict[str, Any]:
    marks = value.get("marks") or []
    readings = []
    for number, reading in enumerate(item.body["readings"]):
        own = marks[number] if number < len(marks) else {}
        readings.append({**reading, "marks": {name: own.get(name) for name in MARKS}})
    return {
        "id": item.body["id"],
        "question": item.body["question"],
        "gold": item.body.get("gold", []),
        "readings": readings,
    }


def _everything(studio: Studio, connection: Connection) -> Iterable[dict[str, Any]]:
    """The project's settings, its items, and every event in its order."""
    yield {"project": {**asdict(studio.settings), "title": studio.project.name, "database": ""}}
    by_item = sa.select(slots.c.item, sa.func.count()).group_by(slots.c.item)
    counts = {item: count for item, count in connection.execute(by_item)}
    for item in read_items(connection, *PARTS):
        row = asdict(item)
        number = row.pop("number")
        places = counts.get(number, 0) if item.part == "work" else 0
        yield {"item": number, **row, "slots": places}
    for event in read_events(connection):
        fields = asdict(event)
        del fields["id"]
        yield {"event": fields}
