"""Every answered question leaves its case in SQLite, with what people said of it."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense.serve.state.database import Database
from whichsense.types import Case

FILE = "traces.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS traces (
    id TEXT PRIMARY KEY, at REAL, owner TEXT, question TEXT, seconds REAL, readings INTEGER, stopped TEXT, body BLOB
);
CREATE INDEX IF NOT EXISTS traces_by_time ON traces (at);
CREATE TABLE IF NOT EXISTS feedback (trace TEXT, at REAL, owner TEXT, verdict TEXT, about TEXT, correction TEXT);
CREATE INDEX IF NOT EXISTS feedback_by_trace ON feedback (trace);
CREATE TABLE IF NOT EXISTS gaps (since REAL, until REAL, lost INTEGER, reason TEXT);
"""
_log = logging.getLogger("whichsense.serve")


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person said of an answer."""

    verdict: str
    """"up" or "down"."""
    about: str = ""
    """What is wrong: "answer", "question" or "source"."""
    correction: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """One line of a list of traces."""

    id: str
    at: float
    """Seconds since 1970."""
    question: str
    seconds: float
    readings: int
    stopped: str
    up: int = 0
    down: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which cases could not be written."""

    since: float
    until: float
    lost: int
    reason: str


class Traces:
    """The store. A write that fails is counted, and the next one that succeeds leaves a `Gap`; answers go on."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, _SCHEMA)
        self._lock = threading.Lock()
        self._gap: Gap | None = None

    @property
    def gap(self) -> Gap | None:
        """The cases that could not be written since the last one that could."""
        return self._gap

    def add(self, case_id: str, owner: str, case: Case) -> bool:
        """Keep a case; False where it could not be written."""
        body = zlib.compress(json.dumps(case.to_json()).encode(), 1)
        row = (
            case_id,
            time.time(),
            owner,
            case.question,
            case.seconds,
            len(case.readings),
            case.stopped,
            body,
        )
        try:
            self._database.rows(
                "INSERT OR REPLACE INTO traces VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
            )
            self._close_gap()
        except (sqlite3.Error, OSError) as error:
            self._count_lost(str(error))
            return False
        return True

    def _count_lost(self, reason: str) -> None:
        now = time.time()
        with self._lock:
            gap = self._gap or Gap(now, now, 0, reason)
            self._gap = Gap(gap.since, now, gap.lost + 1, gap.reason)
            lost = self._gap.lost
        if lost == 1:
            _log.error("traces cannot be written (%s); answers go on", reason)

    def _close_gap(self) -> None:
        with self._lock:
            gap, self._gap = self._gap, None
        if gap is None:
            return
        row = (gap.since, gap.until, gap.lost, gap.reason)
        self._database.rows("INSERT INTO gaps VALUES (?, ?, ?, ?)", row)
        _log.warning("traces are written again; %d were lost", gap.lost)

    def find(self, case_id: str, owner: str | None = None) -> Case | None:
        """A case by its id; with an owner, only that owner's."""
        rows = self._database.rows(
            "SELECT body, owner FROM traces WHERE id = ?", (case_id,)
        )
        for body, kept_for in rows:
            if owner is None or owner == kept_for:
                return Case.from_json(json.loads(zlib.decompress(body)))
        return None

    def add_feedback(self, case_id: str, owner: str, feedback: Feedback) -> None:
        row = (
            case_id,
            time.time(),
            owner,
            feedback.verdict,
            feedback.about,
            feedback.correction,
        )
        self._database.rows("INSERT INTO feedback VALUES (?, ?, ?, ?, ?, ?)", row)

    def feedback(self, case_id: str) -> list[Feedback]:
        rows = self._database.rows(
            "SELECT verdict, about, correction, at FROM feedback WHERE trace = ? ORDER BY at",
            (case_id,),
        )
        return [Feedback(*row) for row in rows]

    def summaries(
        self, limit: int = 50, before: float | None = None, owner: str | None = None
    ) -> list[TraceSummary]:
        """The latest cases, newest first; those before a time, or of one owner."""
        rows = self._database.rows(
            "SELECT id, at, question, seconds, readings, stopped,"
            " (SELECT count(*) FROM feedback WHERE trace = id AND verdict = 'up'),"
            " (SELECT count(*) FROM feedback WHERE trace = id AND verdict = 'down')"
            " FROM traces WHERE (?1 IS NULL OR at < ?1) AND (?2 IS NULL OR owner = ?2)"
            " ORDER BY at DESC LIMIT ?3",
            (before, owner, limit),
        )
        return [TraceSummary(*row) for row in rows]

    def gaps(self) -> list[Gap]:
        """Every time in which cases were lost, oldest first."""
        rows = self._database.rows(
            "SELECT since, until, lost, reason FROM gaps ORDER BY since"
        )
        return [Gap(*row) for row in rows]

    def export(self) -> Iterator[dict[str, Any]]:
        """Every case with its id, time and feedback, oldest first."""
        for case_id, at in self._database.rows("SELECT id, at FROM traces ORDER BY at"):
            case = self.find(case_id)
            if case is not None:
                said = []
                for one in self.feedback(case_id):
                    said.append(
                        {
                            "verdict": one.verdict,
                            "about": one.about,
                            "correction": one.correction,
                            "at": one.at,
                        }
                    )
                yield {
                    "id": case_id,
                    "at": at,
                    "case": case.to_json(),
                    "feedback": said,
                }

    def delete(self, case_id: str) -> bool:
        """Delete one case and its feedback; False where there is none."""
        self._database.rows("DELETE FROM feedback WHERE trace = ?", (case_id,))
        statement = "DELETE FROM traces WHERE id = ? RETURNING id"
        return bool(self._database.rows(statement, (case_id,)))

    def delete_older(self, seconds: float) -> int:
        """Delete cases that are older than so many seconds; how many there were."""
        before = (time.time() - seconds,)
        self._database.rows(
            "DELETE FROM feedback WHERE trace IN (SELECT id FROM traces WHERE at < ?)",
            before,
        )
        gone = self._database.rows(
            "DELETE FROM traces WHERE at < ? RETURNING id", before
        )
        return len(gone)

    def close(self) -> None:
        self._database.close()
