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
from whichsense.studio.adjudication import outcomes
from whichsense.studio.checks import Value
from whichsense.studio.database import slots
from whichsense.studio.history import read_events
from whichsense.studio.items import PARTS, Item
from whichsense.studio.kinds import MARKS, Kind
from whichsense.studio.releases import RELEASES
from whichsense.studio.statement import write_statement
from whichsense.studio.workbench import Studio, read_items, with_values

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
    names = studio.members.names()
    with studio.database.reading() as connection:
        if name == "jsonl":
            files = {"everything.jsonl": b"".join(map(as_json, _everything(studio, connection)))}
        elif name == "readings":
            files = _forms(studio, connection, names)
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


def _forms(studio: Studio, connection: Connection, names: Mapping[str, str]) -> dict[str, bytes]:
    """A filled form of `whichsense evaluate readings` for each annotator."""
    if studio.kind.name != "readings":
        raise BadInput("Only a project of the kind 'readings' has marks. Export it as jsonl.")
    items = with_values(connection, studio.kind, read_items(connection, "work", "unread"))
    form: dict[str, Any] = {}
    for item in reversed(items):
        form |= item.body.get("form", {})
    files = {}
    for number, who in enumerate(sorted({who for item in items for who in item.values}), 1):
        questions = [_marked(item, item.values.get(who, {})) for item in items]
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
        del row["values"]
        places = counts.get(item.number, 0) if item.part == "work" else 0
        yield {"item": row.pop("number"), **row, "slots": places}
    for event in read_events(connection):
        fields = asdict(event)
        del fields["id"]
        yield {"event": fields}
