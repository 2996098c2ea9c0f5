"""What the workers of one service share while it runs: streams to rejoin, sessions, how often each key has asked.

One SQLite file in a temporary folder. Nothing in it outlives the service.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from whichsense.serve.events import Event
from whichsense.serve.state.database import Database

FILE = "shared.sqlite"
_SESSION = 7 * 86_400.0  # seconds after which nobody comes back to a session
_log = logging.getLogger("whichsense.serve")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS running (
    id TEXT PRIMARY KEY, owner TEXT, process INTEGER, followed REAL, cancelled INTEGER DEFAULT 0, at REAL
);
CREATE TABLE IF NOT EXISTS events (id TEXT, number INTEGER, name TEXT, data TEXT, PRIMARY KEY (id, number));
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, process INTEGER, at REAL);
CREATE TABLE IF NOT EXISTS rates (key TEXT PRIMARY KEY, due REAL);
"""


class Shared:
    """Times are those of `time.time`, which all processes have in common."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, _SCHEMA, durable=False)

    def begin(self, case_id: str, owner: str) -> None:
        """Announce a stream that this process works on."""
        now = time.time()
        self._write(
            "INSERT INTO running VALUES (?, ?, ?, ?, 0, ?)",
            (case_id, owner, os.getpid(), now, now),
        )

    def add(self, case_id: str, event: Event) -> None:
        self._write(
            "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?)",
            (case_id, event.number, event.name, event.data),
        )

    def owner(self, case_id: str) -> str | None:
        """Whose stream this is; None where there is none."""
        for (owner,) in self._database.rows(
            "SELECT owner FROM running WHERE id = ?", (case_id,)
        ):
            return str(owner)
        return None

    def events(self, case_id: str, after: int) -> list[Event]:
        """The events of a stream after a number. Whoever asks follows it, and keeps it running."""
        self._write(
            "UPDATE running SET followed = ? WHERE id = ?", (time.time(), case_id)
        )
        rows = self._database.rows(
            "SELECT number, name, data FROM events WHERE id = ? AND number > ? ORDER BY number",
            (case_id, after),
        )
        return [Event(*row) for row in rows]

    def is_alive(self, case_id: str) -> bool:
        """Whether the process that works on a stream is still there."""
        for (process,) in self._database.rows(
            "SELECT process FROM running WHERE id = ?", (case_id,)
        ):
            return _is_running(process)
        return False

    def cancel(self, case_id: str) -> None:
        self._database.rows("UPDATE running SET cancelled = 1 WHERE id = ?", (case_id,))

    def wishes(self, case_ids: Sequence[str]) -> dict[str, tuple[bool, float]]:
        """Of each stream whether another worker was told to cancel it, and when one last followed it."""
        wishes = {}
        for case_id in case_ids:
            for cancelled, followed in self._database.rows(
                "SELECT cancelled, followed FROM running WHERE id = ?", (case_id,)
            ):
                wishes[case_id] = (bool(cancelled), float(followed))
        return wishes

    def add_session(self, session_id: str) -> None:
        """Announce a session of MCP that this process holds."""
        self._write(
            "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)",
            (session_id, os.getpid(), time.time()),
        )

    def session_process(self, session_id: str) -> int | None:
        """The process that holds a session; None where nobody does."""
        for (process,) in self._database.rows(
            "SELECT process FROM sessions WHERE id = ?", (session_id,)
        ):
            return int(process)
        return None

    def forget_older(self, seconds: float) -> None:
        """Forget streams that began so long ago."""
        before = (time.time() - seconds,)
        self._database.rows(
            "DELETE FROM events WHERE id IN (SELECT id FROM running WHERE at < ?)",
            before,
        )
        self._database.rows("DELETE FROM running WHERE at < ?", before)
        long_before = (time.time() - _SESSION,)
        self._database.rows("DELETE FROM sessions WHERE at < ?", long_before)

    def admit(self, key: str, rate: int, burst: int) -> float:
        """0 where a key may ask now, else the seconds until it may.

        The generic cell rate algorithm: `due` is when the key would have used up what it asked so far at exactly its
        rate, and may lie at most `burst` requests ahead.
        """
        now, each = time.time(), 60.0 / rate
        admitted = self._write(
            "INSERT INTO rates VALUES (?1, ?2 + ?3) ON CONFLICT (key) DO UPDATE SET due = max(due, ?2) + ?3"
            " WHERE max(due, ?2) - ?2 <= ?3 * (?4 - 1) RETURNING due",
            (key, now, each, burst),
        )
        if admitted or admitted is None:
            return 0.0
        (due,) = self._database.rows("SELECT due FROM rates WHERE key = ?", (key,))[0]
        return max(0.0, float(due) - now - each * (burst - 1))

    def _write(
        self, statement: str, values: Sequence[object]
    ) -> list[tuple[object, ...]] | None:
        """Run a statement; None where the disk is full: what is shared helps, but no answer waits for it."""
        try:
            return self._database.rows(statement, values)
        except sqlite3.OperationalError as error:
            _log.error("what workers share cannot be written: %s", error)
            return None

    def close(self) -> None:
        self._database.close()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
