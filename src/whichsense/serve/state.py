"""What a service keeps: traces, conversations, uploads, in one database."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import sqlite3
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from whichsense.conversation import Conversation, ServedConversation
from whichsense.files import lock, sha256
from whichsense.jobs.limits import check_limits
from whichsense.types import Case, ServedCase

# SQLite for several threads and processes: one connection with a lock, write-ahead log.

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

    def insert(self, into: str, row: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Insert one row; its id."""
        marks = ", ".join("?" * len(row))
        return self.rows(f"INSERT {into} VALUES ({marks}) RETURNING rowid", row)

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


def _packed(record: Case | Conversation) -> bytes:
    return zlib.compress(json.dumps(record.to_json()).encode(), 1)


def _unpacked(body: bytes) -> Any:
    return json.loads(zlib.decompress(body))


@dataclass(frozen=True, slots=True)
class View:
    """Which cases and conversations a caller sees."""

    owner: str | None = None
    """Whose; None: everyone's."""
    indexes: tuple[str, ...] = ()
    """Asked of which indexes; none: of all."""

    def shows(self, owner: str, index: str) -> bool:
        """Whether what an owner asked of an index is seen."""
        is_own = self.owner in (None, owner)
        return is_own and (not self.indexes or index in self.indexes)


EVERYTHING = View()

# Every answered question leaves its case in SQLite, with what people said of it.

FILE = "traces.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS traces (
    id TEXT PRIMARY KEY, at REAL, owner TEXT, question TEXT, seconds REAL, readings INTEGER, stopped TEXT, body BLOB,
    system TEXT DEFAULT '', spent TEXT DEFAULT '{}', place TEXT DEFAULT ''
);
CREATE INDEX IF NOT EXISTS traces_by_time ON traces (at);
CREATE TABLE IF NOT EXISTS feedback (trace TEXT, at REAL, owner TEXT, verdict TEXT, about TEXT, correction TEXT);
CREATE INDEX IF NOT EXISTS feedback_by_trace ON feedback (trace);
CREATE TABLE IF NOT EXISTS gaps (since REAL, until REAL, lost INTEGER, reason TEXT);
"""
# What earlier versions did not keep.
_LATER = {
    "system": "TEXT DEFAULT ''",
    "spent": "TEXT DEFAULT '{}'",
    "place": "TEXT DEFAULT ''",  # the name of the index
}
_COLUMNS = "id, at, owner, question, seconds, readings, stopped, body, system, spent, place"
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
    index: str = ""
    """The name of the index that was asked."""


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

    def add(self, served: ServedCase, owner: str) -> bool:
        """Keep a case, and what answered; False where it could not be written."""
        case = served.case
        spent = {stage: round(cost.seconds, 4) for stage, cost in case.spent.items()}
        row = (
            served.id,
            time.time(),
            owner,
            case.question,
            case.seconds,
            len(case.readings),
            case.stopped,
            _packed(case),
            served.system,
            json.dumps(spent),
            served.index,
        )
        try:
            self._database.insert(f"OR REPLACE INTO traces ({_COLUMNS})", row)
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
        self._database.insert("INTO gaps", astuple(gap))
        _log.warning("traces are written again; %d were lost", gap.lost)

    def find(self, case_id: str, view: View = EVERYTHING) -> ServedCase | None:
        """A case by its id, with what answered; None where the view does not show it."""
        rows = self._database.rows(
            "SELECT body, owner, system, place FROM traces WHERE id = ?", (case_id,)
        )
        for body, owner, system, index in rows:
            if view.shows(owner, index):
                case = Case.from_json(_unpacked(body))
                return ServedCase(case_id, case, system, index)
        return None

    def add_feedback(self, case_id: str, owner: str, feedback: Feedback) -> None:
        verdict, about, correction, _ = astuple(feedback)
        row = (case_id, time.time(), owner, verdict, about, correction)
        self._database.insert("INTO feedback", row)

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
        view: View = EVERYTHING,
        *,
        kind: Kind = "",
        containing: str = "",
    ) -> list[TraceSummary]:
        """The latest cases of a view, newest first: before a time, of a kind, with words in the question."""
        rows = self._database.rows(
            "SELECT * FROM (SELECT id, at, question, seconds, readings, stopped,"
            " (SELECT count(*) FROM feedback WHERE trace = id AND verdict = 'up') AS up,"
            " (SELECT count(*) FROM feedback WHERE trace = id AND verdict = 'down') AS down,"
            " system, spent, place FROM traces"
            " WHERE (?1 IS NULL OR at < ?1) AND (?2 IS NULL OR owner = ?2)"
            " AND (?5 = '[]' OR place IN (SELECT value FROM json_each(?5)))"
            " AND (?3 = '' OR instr(lower(question), lower(?3)) > 0))"
            f" WHERE {_WHERE[kind]} ORDER BY at DESC LIMIT ?4",
            (before, view.owner, containing, limit, json.dumps(view.indexes)),
        )
        summaries = []
        for *row, spent, index in rows:
            summary = TraceSummary(*row)
            summaries.append(replace(summary, spent=json.loads(spent), index=index))
        return summaries

    def gaps(self) -> list[Gap]:
        """Every time in which cases were lost, oldest first."""
        rows = self._database.rows("SELECT since, until, lost, reason FROM gaps ORDER BY since")
        return [Gap(*row) for row in rows]

    def export(self) -> Iterator[dict[str, Any]]:
        """Every case with its id, time and feedback, oldest first."""
        for case_id, at in self._database.rows("SELECT id, at FROM traces ORDER BY at"):
            served = self.find(case_id)
            if served is not None:
                yield {
                    "id": case_id,
                    "at": at,
                    "index": served.index,
                    "case": served.case.to_json(),
                    "feedback": [asdict(one) for one in self.feedback(case_id)],
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
            "DELETE FROM feedback WHERE trace IN (SELECT id FROM traces WHERE at < ?)", before
        )
        gone = self._database.rows("DELETE FROM traces WHERE at < ? RETURNING id", before)
        return len(gone)

    def close(self) -> None:
        self._database.close()


# Conversations that can be resumed by their id, in another worker or after a restart.

_CONVERSATIONS_SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY, at REAL, owner TEXT, case_id TEXT, mark INTEGER, body BLOB, system TEXT DEFAULT '',
    place TEXT DEFAULT ''
);
"""
# What earlier versions did not keep.
_CONVERSATIONS_LATER = {"system": "TEXT DEFAULT ''", "place": "TEXT DEFAULT ''"}
_IN_MEMORY = 200  # conversations that are remembered while they cannot be written


class Changed(Exception):
    """Someone else replied in the same moment."""


class Conversations:
    """The store. While the disk is full, the latest conversations are kept in memory."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, _CONVERSATIONS_SCHEMA)
        self._database.add_columns("conversations", _CONVERSATIONS_LATER)
        self._unwritten: OrderedDict[str, ServedConversation] = OrderedDict()

    def save(self, kept: ServedConversation, before: ServedConversation | None) -> None:
        """Keep a conversation in the place of `before`; `Changed` where that is not what is there any more."""
        conversation = kept.conversation
        body = _packed(conversation)
        row = (conversation.id, time.time(), kept.owner, kept.case_id, body)
        # Every turn changes the last one, whose checksum stands for the whole.
        mark = _mark(conversation)
        try:
            if before is None or conversation.id in self._unwritten:
                columns = "id, at, owner, case_id, body, mark, system, place"
                written = self._database.insert(
                    f"OR REPLACE INTO conversations ({columns})",
                    (*row, mark, kept.system, kept.index),
                )
            else:
                written = self._database.rows(
                    "UPDATE conversations SET at = ?2, case_id = ?4, mark = ?6, body = ?5"
                    " WHERE id = ?1 AND owner = ?3 AND mark = ?7 RETURNING id",
                    (*row, mark, _mark(before.conversation)),
                )
        except (sqlite3.Error, OSError) as error:
            _log.error("a conversation cannot be written (%s); it goes on", error)
            self._unwritten[conversation.id] = kept
            while len(self._unwritten) > _IN_MEMORY:
                self._unwritten.popitem(last=False)
            return
        self._unwritten.pop(conversation.id, None)
        if not written:
            raise Changed(conversation.id)

    def find(self, conversation_id: str, view: View = EVERYTHING) -> ServedConversation | None:
        """A conversation by its id; None where the view does not show it."""
        kept = self._unwritten.get(conversation_id)
        if kept is None:
            for body, *about in self._database.rows(
                "SELECT body, case_id, system, place, owner FROM conversations WHERE id = ?",
                (conversation_id,),
            ):
                value = Conversation.from_json(_unpacked(body))
                kept = ServedConversation(value, *about)
        if kept is None or not view.shows(kept.owner, kept.index):
            return None
        return kept

    def delete(self, conversation_id: str) -> None:
        self._unwritten.pop(conversation_id, None)
        self._database.rows("DELETE FROM conversations WHERE id = ?", (conversation_id,))

    def delete_older(self, seconds: float) -> None:
        before = (time.time() - seconds,)
        self._database.rows("DELETE FROM conversations WHERE at < ?", before)

    def close(self) -> None:
        self._database.close()


def _mark(conversation: Conversation) -> int:
    """A number that another turn changes, also where the oldest turns were dropped."""
    said = json.dumps([turn.said for turn in conversation.turns])
    return zlib.crc32(f"{len(conversation.turns)} {said}".encode())


# Files on their way into the index: pieces of one that is being sent, and whole ones until they are
# read.

_KEPT = 86_400.0  # seconds for which a file that was not sent to its end can be continued
QUOTAS = "quotas.sqlite"
_DAY = 86_400.0
_QUOTAS_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS spent (key TEXT, day REAL, bytes INTEGER, PRIMARY KEY (key, day))"
)
_POLL = 0.05  # seconds between two looks at whose turn it is


class Uploads:
    """A folder. A client calls its upload by a key of its own; what is there of it outlives the service."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def part(self, owner: str, key: str) -> Path:
        """Where the pieces of an upload are put together."""
        digest = hashlib.sha256(f"{owner}\0{key}".encode("utf-8", "replace"))
        return self._folder / "parts" / digest.hexdigest()[:32]

    def received(self, owner: str, key: str) -> int:
        """How many bytes of an upload are there: the offset from which it is continued."""
        try:
            return self.part(owner, key).stat().st_size
        except FileNotFoundError:
            return 0

    def begin(self) -> None:
        """Make the folder, and sweep what nobody continued."""
        (self._folder / "parts").mkdir(parents=True, exist_ok=True, mode=0o700)
        before = time.time() - _KEPT
        for path in (*self._folder.glob("*"), *self._folder.glob("parts/*")):
            with contextlib.suppress(OSError):
                if path.name == "parts" or path.stat().st_mtime >= before:
                    continue
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until no other worker changes the index, and keep the others waiting until the block ends."""
        path = self._folder.with_suffix(".lock")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(path, "wb") as file:
            while not lock(file):
                check_limits()
                time.sleep(_POLL)
            yield

    @contextlib.contextmanager
    def named(self, body: Path, name: str) -> Iterator[Path]:
        """A whole file under its own name, in a folder of its own that ends with the block.

        Its time says what it holds: an index that was stopped while it read the file resumes with the same bytes, and
        with no others.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as place:
            path = Path(place) / name
            try:
                os.link(body, path)
            except OSError:  # a file system without links
                shutil.copyfile(body, path)
            seconds = int(sha256(path)[:16], 16) % 2**31
            os.utime(path, ns=(0, seconds * 10**9))
            yield path


class Quotas:
    """How much each key has uploaded today, in a database of its own that is made when it is needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._database: Database | None = None

    def spend(self, key: str, size: int, quota: int) -> float:
        """Count so many bytes of a key, and return 0; where they would be more than its quota of a day, count nothing
        and return the seconds until tomorrow (UTC)."""
        with self._lock:
            if self._database is None:
                self._database = Database(self._path, _QUOTAS_SCHEMA)
        day, passed = divmod(time.time(), _DAY)
        self._database.rows("DELETE FROM spent WHERE day < ?", (day,))
        fits = size <= quota and self._database.rows(
            "INSERT INTO spent VALUES (?1, ?2, ?3) ON CONFLICT (key, day) DO UPDATE SET bytes = bytes + ?3"
            " WHERE bytes + ?3 <= ?4 RETURNING bytes",
            (key, day, size, quota),
        )
        return 0.0 if fits else _DAY - passed

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
