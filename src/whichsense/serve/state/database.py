"""SQLite for several threads and processes: one connection with a lock, write-ahead log."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_WAIT = 5.0  # seconds for another process's write


class Database:
    """One file. Every statement is its own transaction: it is there after a kill, or it is not."""

    def __init__(self, path: Path, schema: str, *, durable: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            path, timeout=_WAIT, isolation_level=None, check_same_thread=False
        )
        path.chmod(0o600)  # questions are private
        self._connection.execute("PRAGMA journal_mode = WAL")
        level = "NORMAL" if durable else "OFF"
        self._connection.execute(f"PRAGMA synchronous = {level}")
        self._connection.executescript(schema)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; its rows."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def add_columns(self, table: str, columns: Mapping[str, str]) -> None:
        """Add columns that an older file lacks: name → type and default. Another process may do it in this moment."""
        present = {row[1] for row in self.rows(f"PRAGMA table_info({table})")}
        for name, kind in columns.items():
            if name not in present:
                with contextlib.suppress(sqlite3.OperationalError):
                    self.rows(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")

    def close(self) -> None:
        with self._lock:
            self._connection.close()
