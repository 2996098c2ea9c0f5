"""What names point to: redirects, and the senses that disambiguation pages list. One SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from whichsense.errors import DamagedIndex
from whichsense.text.words import whole_characters
from whichsense.types import Redirect, Sense

_SCHEMA = """
CREATE TABLE IF NOT EXISTS redirect (key TEXT PRIMARY KEY, name TEXT, target TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sense (key TEXT, title TEXT, gloss TEXT, name TEXT, PRIMARY KEY (key, title, gloss))
    WITHOUT ROWID;
"""


def _key(name: str) -> str:
    """A name as it is looked up: without case, with single spaces for underscores and white space."""
    spaced = whole_characters(name).replace("_", " ")
    return " ".join(spaced.casefold().split())


class NamesWriter:
    """Collects names. Adding the same one twice changes nothing, so a resumed build may repeat itself."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)
        try:
            self._database.executescript(_SCHEMA)
        except sqlite3.DatabaseError:
            self._database.close()
            raise

    def add(self, record: Redirect | Sense) -> None:
        if isinstance(record, Redirect):
            row = (_key(record.name), record.name, record.target)
            self._database.execute(
                "INSERT OR REPLACE INTO redirect VALUES (?, ?, ?)", row
            )
        else:
            entry = (_key(record.name), record.title, record.gloss, record.name)
            self._database.execute(
                "INSERT OR REPLACE INTO sense VALUES (?, ?, ?, ?)", entry
            )

    def commit(self) -> None:
        self._database.commit()

    def close(self) -> None:
        self._database.commit()
        self._database.close()


class Names:
    """Looks names up; safe for many processes because the file never changes once it is served."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._database = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro&immutable=1",
                uri=True,
                check_same_thread=False,
            )
        except sqlite3.OperationalError as error:
            raise DamagedIndex(
                f"'{path}' cannot be opened ({error}). Build the index again."
            ) from None

    def close(self) -> None:
        self._database.close()

    def redirect(self, name: str) -> str | None:
        """Where a name is redirected to, if it is."""
        rows = self._rows("SELECT target FROM redirect WHERE key = ?", name)
        for (target,) in rows:
            return target
        return None

    def senses(self, name: str) -> list[Sense]:
        """What a name may mean, as its disambiguation page lists it; redirects are followed once."""
        query = "SELECT name, title, gloss FROM sense WHERE key = ? ORDER BY title"
        rows = list(self._rows(query, name))
        if not rows and (target := self.redirect(name)):
            rows = list(self._rows(query, target.removesuffix(" (disambiguation)")))
        return [Sense(*row) for row in rows]

    def problem(self) -> str | None:
        """What SQLite finds wrong with the file."""
        try:
            (verdict,) = self._database.execute("PRAGMA quick_check").fetchone()
        except sqlite3.DatabaseError as error:
            return str(error)
        return None if verdict == "ok" else str(verdict)

    def _rows(self, query: str, name: str) -> Iterable[tuple[str, ...]]:
        try:
            return self._database.execute(query, (_key(name),)).fetchall()
        except sqlite3.DatabaseError as error:
            raise DamagedIndex(
                f"'{self.path}' cannot be read ({error}). Build the index again."
            ) from None
