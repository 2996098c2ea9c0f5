"""Replies on disk: one SQLite file, bounded, shared by threads and processes. It is a convenience: a file that cannot
be used is replaced, or done without."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from whichsense.models.llm.exchange import Reply

_FILE = "replies-1.sqlite"  # the number is the format's
_TABLE = """
create table if not exists replies (
    key text primary key, reply text not null, size integer not null, used real not null
) without rowid
"""
_WAIT = 5.0  # seconds for another process's write
_LEFT = 0.9  # of the bound: what stays when it is exceeded


@dataclass(frozen=True, slots=True)
class ReplyCache:
    """Replies by the key of their request. The replies that were not used for longest go first."""

    folder: Path
    megabytes: float = 200.0

    @property
    def path(self) -> Path:
        return self.folder / _FILE

    def get(self, key: str) -> Reply | None:
        """The reply to a request, if it is there and can be read."""
        try:
            with self._open() as database:
                row = database.execute(
                    "select reply from replies where key = ?", (key,)
                ).fetchone()
                if row is None:
                    return None
                database.execute(
                    "update replies set used = ? where key = ?", (time.time(), key)
                )
            return Reply.from_json(row[0])
        except (sqlite3.Error, OSError, ValueError, TypeError):
            return None

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply. What cannot be written is not kept."""
        text = reply.to_json()
        row = (key, text, len(text.encode()), time.time())
        try:
            with self._open() as database:
                database.execute("insert or replace into replies values (?,?,?,?)", row)
                self._shrink(database)
        except sqlite3.DatabaseError as error:
            if not isinstance(error, sqlite3.OperationalError):
                # Not a database, or a damaged one: the next reply begins a new file.
                self.path.unlink(missing_ok=True)
        except OSError:
            return

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection of this call's own, whose changes are committed together."""
        if not self.path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            # Replies quote the user's documents: nobody else may read them.
            self.path.touch(mode=0o600)
        database = sqlite3.connect(self.path, timeout=_WAIT)
        try:
            database.execute("pragma journal_mode = wal")
            database.execute("pragma synchronous = normal")
            with database:
                database.execute(_TABLE)
                yield database
        finally:
            database.close()

    def _shrink(self, database: sqlite3.Connection) -> None:
        bound = self.megabytes * 2**20
        (total,) = database.execute("select total(size) from replies").fetchone()
        if total <= bound:
            return
        oldest = database.execute("select key, size from replies order by used")
        for key, size in oldest.fetchall():
            if total <= _LEFT * bound:
                break
            database.execute("delete from replies where key = ?", (key,))
            total -= size
