"""Every answered question leaves its case in SQLite, with what people said of it."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from whichsense.serve.state.database import Database
from whichsense.types import Case, ServedCase

FILE = "traces.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS traces (
    id TEXT PRIMARY KEY, at REAL, owner TEXT, question TEXT, seconds REAL, readings INTEGER, stopped TEXT, body BLOB,
    system TEXT DEFAULT '', spent TEXT DEFAULT '{}'
);
CREATE INDEX IF NOT EXISTS traces_by_time ON traces (at);
CREATE TABLE IF NOT EXISTS feedback (trace TEXT, at REAL, owner TEXT, verdict TEXT, about TEXT, correction TEXT);
CREATE INDEX IF NOT EXISTS feedback_by_trace ON feedback (trace);
CREATE TABLE IF NOT EXISTS gaps (since REAL, until REAL, lost INTEGER, reason TEXT);
"""
# What earlier versions did not keep.
_LATER = {"system": "TEXT DEFAULT ''", "spent": "TEXT DEFAULT '{}'"}
Kind = Literal["", "judged", "wrong", "unanswered", "stopped"]
"""Which cases to list: all, those that someone judged, found wrong, without an answer, stopped."""
_WHERE: dict[str, str] = {
    "": "1",
    "judged": "up + down > 0",
    "wrong": "down > 0",
    "unanswered": "readings = 0",
    "stopped": "stopped <> ''",
}
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
    system: str = ""
    """The system that answered."""
    spent: Mapping[str, float] = field(default_factory=dict)
    """Seconds by stage."""


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
        self._database.add_columns("traces", _LATER)
        self._lock = threading.Lock()
        self._gap: Gap | None = None

    @property
    def gap(self) -> Gap | None:
        """The cases that could not be written since the last one that could."""
        return self._gap

    def add(self, case_id: str, owner: str, case: Case, system: str = "") -> bool:
        """Keep a case, and which system answered; False where it could not be written."""
        body = zlib.compress(json.dumps(case.to_json()).encode(), 1)
        spent = {stage: round(cost.seconds, 4) for stage, cost in case.spent.items()}
        row = (
            case_id,
            time.time(),
            owner,
            case.question,
            case.seconds,
            len(case.readings),
            case.stopped,
            body,
            system,
            json.dumps(spent),
        )
        try:
            self._database.rows(
                "INSERT OR REPLACE INTO traces"
                " (id, at, owner, question, seconds, readings, stopped, body, system, spent)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
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
        served = self.find_served(case_id, owner)
        return served.case if served else None

    def find_served(self, case_id: str, owner: str | None = None) -> ServedCase | None:
        """A case with the system that answered."""
        rows = self._database.rows(
            "SELECT body, owner, system FROM traces WHERE id = ?", (case_id,)
        )
        for body, kept_for, system in rows:
            if owner is None or owner == kept_for:
                case = Case.from_json(json.loads(zlib.decompress(body)))
                return ServedCase(case_id, case, system)
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
        self,
        limit: int = 50,
        before: float | None = None,
        owner: str | None = None,
        *,
        kind: Kind = "",
        containing: str = "",
    ) -> list[TraceSummary]:
        """The latest cases, newest first: before a time, of one owner, of a kind, with words in the question."""
        rows = self._database.rows(
            "SELECT * FROM (SELECT id, at, question, seconds, readings, stopped,"
            " (SELECT count(*) FROM feedback WHERE trace = id AND verdict = 'up') AS up,"
            " (SELECT count(*) FROM feedback WHERE trace = id AND verdict = 'down') AS down,"
            " system, spent FROM traces"
            " WHERE (?1 IS NULL OR at < ?1) AND (?2 IS NULL OR owner = ?2)"
            " AND (?3 = '' OR instr(lower(question), lower(?3)) > 0))"
            f" WHERE {_WHERE[kind]} ORDER BY at DESC LIMIT ?4",
            (before, owner, containing, limit),
        )
        summaries = []
        for *row, spent in rows:
            summary = TraceSummary(*row)
            summaries.append(replace(summary, spent=json.loads(spent)))
        return summaries

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
