"""Server-sent events, and what the workers of one service share."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from whichsense import types
from whichsense.serve.problems import Problem
from whichsense.serve.state import Database, View
from whichsense.types import Case, Cost

# Server-sent events: what a stage has filled in, heartbeats, the end.

# The fields of a case that a stage fills in, and that its event carries.
_FILLED = {
    "retrieve": ("hits",),
    "rerank": ("hits",),
    "read": ("answers",),
    "detect": ("ambiguous", "is_ambiguous"),
    "disambiguate": ("readings",),
    "round trip": ("readings",),
    "verify": ("readings", "possible", "is_ambiguous"),
    "clarify": ("clarification",),
    "summarize": ("long_answer",),
}
# What a person is told of a stage: what it did, how many, of what.
_DONE = {
    "retrieve": ("Found", "passages", "passage"),
    "read": ("Found", "answers", "candidate answer"),
    "disambiguate": ("Found", "readings", "reading"),
    "verify": ("Checked:", "readings", "reading"),
    "summarize": ("Wrote the long answer", "", ""),
}
_COUNTED = {
    "passages": "hits",
    "answers": "answers",
    "readings": "readings",
    "possible": "possible",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream. `last` ends the stream: "done" with the answer, "problem" with what went wrong."""

    number: int
    """From 1 in each stream: the `id` with which a client resumes."""
    name: str
    data: str
    """JSON, in one line."""

    @property
    def last(self) -> bool:
        return self.name in ("done", "problem")

    def encode(self) -> bytes:
        return format_sse_event(data_str=self.data, event=self.name, id=str(self.number))


def stage_data(stage: str, case: Case) -> str:
    """What one stage has done: its seconds, how much there is by now, and the fields that it filled in."""
    seconds = round(case.spent.get(stage, Cost()).seconds, 6)
    table = {"stage": stage, "counts": stage_counts(case), "seconds": seconds}
    filled = {name: getattr(case, name) for name in _FILLED.get(stage, ())}
    return dump(table | types.encode(filled))


def stage_counts(case: Case) -> dict[str, int]:
    """How much there is by now."""
    return {name: len(getattr(case, key)) for name, key in _COUNTED.items()}


def describe_stage(stage: str, counts: Mapping[str, int]) -> str:
    """What a stage has done, in a few words; empty where a person would not care.

    >>> describe_stage("retrieve", {"passages": 1}), describe_stage("retrieve", {"passages": 40})
    ('Found 1 passage', 'Found 40 passages')
    """
    if stage not in _DONE:
        return ""
    verb, counted, noun = _DONE[stage]
    if not noun:
        return verb
    number = counts[counted]
    return f"{verb} {number} {noun}" + ("" if number == 1 else "s")


def replayed(body: str, case: Case) -> Iterator[Event]:
    """The events of an answer that has ended: its stages as they were left, and the answer itself."""
    number = 0
    for number, stage in enumerate(case.spent, 1):
        yield Event(number, "stage", stage_data(stage, case))
    yield Event(number + 1, "done", body)


def problem_event(number: int, problem: Problem) -> Event:
    return Event(number, "problem", dump(problem.body()))


def dump(value: Any) -> str:
    """JSON without line breaks; half a surrogate pair stays an escape."""
    return json.dumps(value, separators=(",", ":"))


def as_json(body: str) -> Response:
    """JSON that was made in a thread: the event loop only sends it."""
    return Response(body, media_type="application/json")


def wants_events(request: Request) -> bool:
    return "text/event-stream" in request.headers.get("accept", "")


class EventStream(StreamingResponse):
    """Events as they come."""

    media_type = "text/event-stream"

    def __init__(
        self, body: AsyncIterator[bytes], headers: Mapping[str, str] | None = None
    ) -> None:
        # nginx would hold events back.
        usual = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(body, headers={**usual, **(headers or {})})


async def encoded(events: AsyncIterator[Event | None]) -> AsyncIterator[bytes]:
    """Events as they are sent; None is a heartbeat."""
    async for event in events:
        yield KEEPALIVE_COMMENT if event is None else event.encode()


# What the workers of one service share while it runs: streams to rejoin, how often each key has asked.
#
# One SQLite file in a temporary folder. Nothing in it outlives the service.

FILE = "shared.sqlite"
_log = logging.getLogger("whichsense.serve")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS running (
    id TEXT PRIMARY KEY, owner TEXT, place TEXT, process INTEGER, followed REAL, cancelled INTEGER DEFAULT 0, at REAL
);
CREATE TABLE IF NOT EXISTS events (id TEXT, number INTEGER, name TEXT, data TEXT, PRIMARY KEY (id, number));
CREATE TABLE IF NOT EXISTS rates (key TEXT PRIMARY KEY, due REAL);
CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, count INTEGER);
"""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asked, which index, and what answers."""

    owner: str
    index: str
    system: str = ""


class Shared:
    """Times are those of `time.time`, which all processes have in common."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, _SCHEMA, durable=False)

    def begin(self, case_id: str, origin: Origin) -> None:
        """Announce a stream that this process works on."""
        self._write(
            "INSERT INTO running VALUES (?1, ?2, ?3, ?4, ?5, 0, ?5)",
            (case_id, origin.owner, origin.index, os.getpid(), time.time()),
        )

    def add(self, case_id: str, event: Event) -> None:
        self._write(
            "INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?)",
            (case_id, event.number, event.name, event.data),
        )

    def is_seen(self, case_id: str, view: View) -> bool:
        """Whether there is such a stream, and the view shows it."""
        rows = self._database.rows("SELECT owner, place FROM running WHERE id = ?", (case_id,))
        return any(view.shows(*row) for row in rows)

    def events(self, case_id: str, after: int) -> list[Event]:
        """The events of a stream after a number. Whoever asks follows it, and keeps it running."""
        self._write("UPDATE running SET followed = ? WHERE id = ?", (time.time(), case_id))
        rows = self._database.rows(
            "SELECT number, name, data FROM events WHERE id = ? AND number > ? ORDER BY number",
            (case_id, after),
        )
        return [Event(*row) for row in rows]

    def is_alive(self, case_id: str) -> bool:
        """Whether the process that works on a stream is still there."""
        rows = self._database.rows("SELECT process FROM running WHERE id = ?", (case_id,))
        return any(is_process(process) for (process,) in rows)

    def cancel(self, case_id: str) -> None:
        self._database.rows("UPDATE running SET cancelled = 1 WHERE id = ?", (case_id,))

    def wishes(self, case_ids: Sequence[str]) -> dict[str, tuple[bool, float]]:
        """Of each stream whether another worker was told to cancel it, and when one last followed it."""
        rows = self._database.rows(
            "SELECT id, cancelled, followed FROM running"
            " WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(case_ids),),
        )
        return {row[0]: (bool(row[1]), float(row[2])) for row in rows}

    def forget_older(self, seconds: float) -> None:
        """Forget streams that began so long ago."""
        before = (time.time() - seconds,)
        self._database.rows(
            "DELETE FROM events WHERE id IN (SELECT id FROM running WHERE at < ?)", before
        )
        self._database.rows("DELETE FROM running WHERE at < ?", before)

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
        return self.wait(key, rate, burst)

    def wait(self, key: str, rate: int, burst: int) -> float:
        """The seconds until a key may ask; nothing is counted."""
        rows = self._database.rows("SELECT due FROM rates WHERE key = ?", (key,))
        ahead = max((float(due) for (due,) in rows), default=0.0) - time.time()
        return max(0.0, ahead - 60.0 / rate * (burst - 1))

    def count(self, name: str) -> None:
        """Count something that happens to the service as a whole."""
        self._write(
            "INSERT INTO counts VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1",
            (name,),
        )

    def counted(self, name: str) -> int:
        """How often that has happened."""
        rows = self._database.rows("SELECT count FROM counts WHERE name = ?", (name,))
        return sum(count for (count,) in rows)

    def _write(self, statement: str, values: Sequence[object]) -> list[tuple[object, ...]] | None:
        """Run a statement; None where the disk is full: what is shared helps, but no answer waits for it."""
        try:
            return self._database.rows(statement, values)
        except sqlite3.OperationalError as error:
            _log.error("what workers share cannot be written: %s", error)
            return None

    def close(self) -> None:
        self._database.close()


def is_process(process: int) -> bool:
    """Whether a process is there."""
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)  # another user's is there, too
    return True
