"""A project is a folder: project.toml says what is asked of whom, a database holds what they said."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, product
from pathlib import Path
from typing import Any, Literal

from whichsense.config import load_as
from whichsense.errors import BadConfig, BadInput, did_you_mean
from whichsense.files import write_atomically
from whichsense.index import Index
from whichsense.lab.datasets.rows import Row
from whichsense.studio.database import Database, Place, add_items, add_slots
from whichsense.studio.history import Event, insert_events
from whichsense.studio.items import Item, items_of, load_items, suggest
from whichsense.studio.kinds import KINDS, Kind

FILE = "project.toml"
DATABASE = "studio.sqlite"
_EMBEDDED = ("sample", "handbook")  # indexes that are always there
Order = Literal["least annotated", "most uncertain", "most different", "random"]
Suggestions = Literal["shown", "hidden"]
_NAME = re.compile(r"[^\W_][\w .-]{0,99}")


@dataclass(frozen=True, slots=True)
class Bonus:
    """An amount for each submitted annotation of which something is true."""

    amount: float
    when: Literal["several", "accepted", "found"]
    """"several": it has more than one answer; "accepted": the final annotation equals it; "found": it is not "nothing
    found"."""


@dataclass(frozen=True, slots=True)
class Pay:
    """What is paid. Amounts are in the currency's units."""

    currency: str = "USD"
    per_item: float = 0.0
    per_hour: float = 0.0
    bonus: tuple[Bonus, ...] = ()


@dataclass(frozen=True, slots=True)
class Qualification:
    """What an annotator has to show, before work and during it."""

    threshold: float = 0.8
    """The least mean score over the test items."""
    floor: float = 0.6
    """The least mean score over the latest silent gold items; who falls below is paused."""
    window: int = 10
    """How many of the latest gold items count; nobody is paused before half as many."""
    every: int = 10
    """A gold item or an attention check comes after so many annotations, where there are any."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What project.toml says."""

    kind: str
    title: str = ""
    overlap: int = 1
    """Annotators of each item."""
    tiebreak: bool = False
    """One annotator more for an item on which the others disagree."""
    index: str = "sample"
    """The folder that is searched beside the form, or "sample" or "handbook"."""
    database: str = ""
    """A URL such as postgresql+psycopg://host/name; empty: a SQLite file in the folder."""
    suggestions: Suggestions = "hidden"
    """Whether annotators see what a system suggests; either way it is recorded."""
    order: Order = "least annotated"
    require_search: bool = False
    """Whether an annotation may only be submitted after a page was viewed."""
    lease: float = 300.0
    """Seconds for which an item is held without a sign of its annotator."""
    pause: float = 120.0
    """Seconds between two events after which time is no longer counted as work."""
    guidelines: str = ""
    """Markdown."""
    pay: Pay = field(default_factory=Pay)
    qualification: Qualification = field(default_factory=Qualification)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadConfig(
                f"There is no kind '{self.kind}'. {did_you_mean(self.kind, KINDS)} Kinds: {', '.join(KINDS)}."
            )
        if not 1 <= self.overlap <= 100:
            raise BadConfig("'overlap' must be between 1 and 100.")
        if not 10 <= self.lease <= 3600:
            raise BadConfig("'lease' must be between 10 and 3600 seconds.")


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with its settings."""

    folder: Path
    settings: Settings

    @classmethod
    def open(cls, folder: str | Path) -> Project:
        """Open the project in a folder."""
        folder = Path(folder)
        if not (folder / FILE).exists():
            raise BadInput(
                f"'{folder}' is no project: it has no {FILE}. Make one: whichsense studio new NAME --kind KIND "
                "--questions FILE"
            )
        return cls(folder, load_as(Settings, folder / FILE))

    @property
    def kind(self) -> Kind:
        return KINDS[self.settings.kind]

    @property
    def name(self) -> str:
        return self.settings.title or self.folder.resolve().name

    @property
    def url(self) -> str:
        """Where the database is."""
        return self.settings.database or f"sqlite:///{self.folder / DATABASE}"

    def database(self) -> Database:
        """Open the database, with its tables brought up to date."""
        return Database(self.url)


def create_project(
    folder: Path,
    settings: Settings,
    questions: Path | Sequence[Mapping[str, Any]],
    *,
    qualifying: Mapping[str, Path] | None = None,
    suggested: Mapping[str, Any] | None = None,
) -> Project:
    """Make a project's folder with the items of a file, or of rows; `qualifying` names files by part: training, test,
    gold, attention. `suggested` are a system's suggestions by the id of the question.
    """
    check_name(folder)
    kind = KINDS[settings.kind]
    if isinstance(questions, Path):
        items = load_items(questions, kind)
    else:
        items = items_of(map(_numbered, count(1), questions), kind)
    if suggested is not None:
        items = [suggest(item, kind, suggested) for item in items]
    for part, path in (qualifying or {}).items():
        items += load_items(path, kind, part=part)
    _refuse_useless(kind, settings.index, items)
    settings = dataclasses.replace(settings, guidelines=settings.guidelines or kind.guidelines)
    numbered = product(enumerate(items, 1), range(1, settings.overlap + 1))
    places = [(number, slot, None) for (number, item), slot in numbered if item.part == "work"]
    return make_project(folder, settings, items, places)


def _refuse_useless(kind: Kind, index: str, items: Sequence[Item]) -> None:
    """Refuse a project in which nobody could work."""
    if all(item.part == "unread" for item in items):
        raise BadInput("No question has a reading to judge. Take a form of 'evaluate readings'.")
    if kind.searches and index not in _EMBEDDED:
        Index.open(index).close()


def _numbered(number: int, row: Mapping[str, Any]) -> Row:
    return Row(dict(row), f"question {number}", "")


def make_project(
    folder: Path,
    settings: Settings,
    items: Sequence[Item],
    places: Sequence[Place],
    events: Sequence[Event] = (),
) -> Project:
    """Make a project's folder and database: all of it, or nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    project = Project(folder, settings)
    try:
        database = project.database()
    except BadConfig:
        with contextlib.suppress(OSError):
            folder.rmdir()  # where nothing else is in it
        raise
    try:
        if database.count_items():
            raise BadInput(
                f"The database '{settings.database}' holds a project already. Name another one with --database URL."
            )
        with database.writing() as connection:
            add_items(connection, items)
            add_slots(connection, places)
            insert_events(connection, events)
    finally:
        database.close()
    write_atomically(folder / FILE, _as_toml(settings))
    return project


def check_name(folder: Path) -> None:
    """Refuse a name that a project cannot have, or has already."""
    if not _NAME.fullmatch(folder.name):
        raise BadInput(
            f"'{folder.name}' cannot name a project. Use letters, digits, spaces, dots and hyphens."
        )
    if (folder / FILE).exists():
        raise BadInput(f"'{folder}' is a project already. Choose another name.")


def _as_toml(settings: Settings) -> str:
    lines = ["# A project of the studio: whichsense studio serve. See docs/studio.md.\n"]
    tables = []
    for item in dataclasses.fields(settings):
        value = getattr(settings, item.name)
        if dataclasses.is_dataclass(value):
            tables.append(_table(item.name, value))
        else:
            lines.append(f"{item.name} = {_value(value)}\n")
    return "".join([*lines, *tables])


def _table(name: str, record: Any) -> str:
    lines = [f"\n[{name}]\n"]
    arrays = []
    for item in dataclasses.fields(record):
        value = getattr(record, item.name)
        if not isinstance(value, tuple):
            lines.append(f"{item.name} = {_value(value)}\n")
            continue
        for row in value:
            arrays.append(_table(f"[{name}.{item.name}]", row))
    return "".join([*lines, *arrays])


def _value(value: Any) -> str:
    """A value as TOML writes it: JSON's spelling, but for texts of several lines."""
    if isinstance(value, str) and "\n" in value and "'''" not in value:
        if value.isprintable() or value.replace("\n", "").isprintable():
            return f"'''\n{value}'''"
    return json.dumps(value)
