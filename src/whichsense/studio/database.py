"""The database of a project: items, who holds them, and every event, on SQLite or PostgreSQL."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Connection, Index, Table, UniqueConstraint, event
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError

from whichsense.errors import BadConfig
from whichsense.studio.items import Item

MIGRATIONS = Path(__file__).parent / "migrations"
_WAIT = 30  # seconds: for another process's write, for PostgreSQL to answer, for a connection that others use
# A thread that finds all connections in use waits for its turn.
_POOL: dict[str, Any] = {"pool_size": 16, "max_overflow": 0, "pool_timeout": _WAIT}
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
VERSIONED = ("save", "undo", "submit", "reopen")
"""Events that change a draft: each has the draft's next version."""

Place = tuple[int, int, str | None]
"""Item, slot and who has submitted there; None: the place is free."""

metadata = sa.MetaData()

items = Table(
    "items",
    metadata,
    Column("item", sa.Integer, primary_key=True, autoincrement=False),
    Column("part", sa.Text, nullable=False),  # work, training, test, gold, attention
    Column("body", sa.Text, nullable=False),
    Column("gold", sa.Text),  # the value that is right, of what qualifies
    Column("uncertainty", sa.Float, nullable=False),
    Column("difference", sa.Float, nullable=False),
)
# Who may annotate an item: as many rows as its overlap. A row that nobody holds is free.
slots = Table(
    "slots",
    metadata,
    Column("id", _KEY, primary_key=True, autoincrement=True),
    Column("item", sa.Integer, sa.ForeignKey("items.item"), nullable=False),
    Column("slot", sa.Integer, nullable=False),
    Column("annotator", sa.Text),
    Column("until", sa.Float, nullable=False),
    Column("done", sa.Boolean, nullable=False),
    UniqueConstraint("item", "slot"),
    UniqueConstraint("item", "annotator"),  # nobody annotates an item twice
    Index("slots_free", "done", "slot", "item"),
    Index("slots_of", "annotator", "item"),
)
# The truth. Rows are only ever added.
events = Table(
    "events",
    metadata,
    Column("id", _KEY, primary_key=True, autoincrement=True),
    Column("item", sa.Integer, nullable=False),  # 0: about a person, not an item
    Column("annotator", sa.Text, nullable=False),
    Column("version", sa.Integer, nullable=False),
    Column("kind", sa.Text, nullable=False),
    Column("payload", sa.Text, nullable=False),
    Column("at", sa.Float, nullable=False),
    Index("events_of", "item", "annotator", "id"),
    Index("events_by", "annotator", "kind", "item"),
)
Index(
    "events_versions",
    events.c.item,
    events.c.annotator,
    events.c.version,
    unique=True,
    sqlite_where=events.c.kind.in_(VERSIONED),
    postgresql_where=events.c.kind.in_(VERSIONED),
)
sessions = Table(
    "sessions",
    metadata,
    Column("digest", sa.Text, primary_key=True),
    Column("member", sa.Text, nullable=False),
    Column("token", sa.Text, nullable=False),  # against forged requests
    Column("until", sa.Float, nullable=False),
)


class Database:
    """One project's database. Its methods may be called from any thread."""

    def __init__(self, url: str) -> None:
        self.engine = _make_engine(url)
        self._is_sqlite = self.engine.dialect.name == "sqlite"
        level = {} if self._is_sqlite else {"isolation_level": "REPEATABLE READ"}
        self._reader = self.engine.execution_options(**level)
        # SQLite has one writer. A lock is fair to threads that wait; its own waiting is not.
        self._turn = threading.Lock() if self._is_sqlite else nullcontext()
        self._migrate(url)

    def _migrate(self, url: str) -> None:
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        try:
            with self.writing() as connection:
                if not self._is_sqlite:  # services that start at once go one by one
                    connection.execute(sa.text("SELECT pg_advisory_xact_lock(7701)"))
                config.attributes["connection"] = connection
                if sa.inspect(connection).has_table(items.name):
                    command.upgrade(config, "head")
                else:
                    metadata.create_all(connection)
                    command.stamp(config, "head")
        except DatabaseError as error:
            shown = self.engine.url.render_as_string(hide_password=True)
            raise BadConfig(
                f"The database '{shown}' cannot be opened: {str(error.orig).strip()}. Check that it runs, and "
                "'database' in project.toml."
            ) from None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database."""
        with self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is there as a whole after the block, or not at all."""
        with self._turn, self.engine.connect() as connection:
            writer = connection.execution_options(writes=True)
            with writer.begin():
                yield writer

    def count_items(self) -> int:
        with self.reading() as connection:
            count = connection.scalar(sa.select(sa.func.count()).select_from(items))
        return int(count or 0)

    def close(self) -> None:
        self.engine.dispose()


def _make_engine(url: str) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
        if parsed.get_backend_name() == "sqlite":
            return _sqlite_engine(parsed)
        if parsed.get_backend_name() != "postgresql":
            raise NoSuchModuleError
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        waits = {"connect_timeout": _WAIT}
        return sa.create_engine(parsed, connect_args=waits, pool_pre_ping=True, **_POOL)
    except (ArgumentError, NoSuchModuleError):
        raise BadConfig(
            f"'{url}' names no database of the studio. Write postgresql+psycopg://USER@HOST/NAME, or leave "
            "'database' out for a SQLite file."
        ) from None


def _sqlite_engine(url: sa.URL) -> sa.Engine:
    waits = {"timeout": _WAIT, "check_same_thread": False}
    engine = sa.create_engine(url, connect_args=waits, **_POOL)

    def connected(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    def begin(connection: Connection) -> None:
        # A transaction that will write is the writer from its first statement on.
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begin)
    return engine


def encode(value: Any) -> str:
    """JSON in plain ASCII: any text, NULs and halves of surrogate pairs too, fits into any database."""
    return json.dumps(value, separators=(",", ":"))


def add_items(connection: Connection, new: Sequence[Item]) -> None:
    """Add items, numbered from 1, to a database that has none."""
    rows = []
    for number, item in enumerate(new, 1):
        row = {"item": number, "part": item.part, "body": encode(item.body)}
        row["gold"] = None if item.gold is None else encode(item.gold)
        row["uncertainty"], row["difference"] = item.uncertainty, item.difference
        rows.append(row)
    if rows:
        connection.execute(items.insert(), rows)


def free_slot(item: int, slot: int) -> dict[str, Any]:
    return {"item": item, "slot": slot, "annotator": None, "until": 0.0, "done": False}


def add_slots(connection: Connection, places: Sequence[Place]) -> None:
    """Add places of items."""
    rows = [
        {**free_slot(item, slot), "annotator": who, "done": who is not None}
        for item, slot, who in places
    ]
    if rows:
        connection.execute(slots.insert(), rows)
