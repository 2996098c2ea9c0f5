"""Events: append-only, and the truth. A draft is what they fold to; undo is one of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.studio.checks import Value, present
from whichsense.studio.database import VERSIONED, encode, events, slots


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a person did."""

    id: int
    item: int
    """0: it is about the person."""
    annotator: str
    version: int
    """Of the draft, after the event."""
    kind: str
    """Of a draft: save, undo, submit, reopen. Of an item: take (opened), leave (put back), skip (put back for good,
    with a reason), active (the annotator was there), search (with its results), view (a page was read), suggest (what
    a system suggested, and whether it was shown), note (a remark for the owner), adjudicate (the final annotation),
    grade (how right an annotation is). Of a person: invite, join, pause, resume, revoke, pass, fail.
    """
    payload: Value
    at: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What an annotator has written about an item."""

    version: int = 0
    value: Value = field(default_factory=dict)
    is_submitted: bool = False
    before: int | None = None
    """The version to which undo leads; None: nothing can be undone."""


class Stale(Exception):
    """Somebody saved in between: in another window, or on another machine."""

    def __init__(self, draft: Draft, yours: Value | None) -> None:
        super().__init__("stale")
        self.draft = draft
        self.yours = yours


class NotHeld(Exception):
    """The annotator does not hold the item, or no longer."""


def fold(history: Iterable[Event]) -> Draft:
    """The draft that events lead to.

    >>> def at(version, kind, **payload): return Event(version, 1, "ann", version, kind, payload, 0.0)
    >>> saved = [at(1, "save", set={"text": "a"}), at(2, "save", set={"text": "b"})]
    >>> fold([*saved, at(3, "undo", to=1), at(4, "submit")])
    Draft(version=4, value={'text': 'a'}, is_submitted=True, before=0)
    """
    values: dict[int, Value] = {0: {}}
    # What a version shows may be an earlier one's value; before that value came another.
    shows: dict[int, int] = {0: 0}
    earlier: dict[int, int] = {}
    version = 0
    is_submitted = False
    for one in history:
        if one.kind not in VERSIONED:
            continue
        shown = shows[version]
        if one.kind == "save":
            values[one.version] = {**values[shown], **one.payload["set"]}
            earlier[one.version] = shown
            shown = one.version
        elif one.kind == "undo":
            shown = shows[one.payload["to"]]
        else:
            is_submitted = one.kind == "submit"
        version = one.version
        shows[version] = shown
    shown = shows[version]
    return Draft(version, present(values[shown]), is_submitted, earlier.get(shown))


def read_events(
    connection: Connection,
    item: int | None = None,
    annotator: str | None = None,
    kinds: Iterable[str] = (),
) -> list[Event]:
    """Events in the order in which they happened: of an item, of an annotator, of some kinds."""
    query = sa.select(events).order_by(events.c.id)
    if item is not None:
        query = query.where(events.c.item == item)
    if annotator is not None:
        query = query.where(events.c.annotator == annotator)
    if wanted := tuple(kinds):
        query = query.where(events.c.kind.in_(wanted))
    found = []
    for row in connection.execute(query):
        fields = dict(row._mapping)
        fields["payload"] = json.loads(fields["payload"])
        found.append(Event(**fields))
    return found


def payloads(events: Iterable[Event], kind: str) -> list[dict[str, Any]]:
    """What the events of a kind hold."""
    return [dict(one.payload) for one in events if one.kind == kind]


def by_draft(events: Iterable[Event]) -> dict[tuple[int, str], list[Event]]:
    """Events by item and annotator; without those that are about people."""
    found: dict[tuple[int, str], list[Event]] = {}
    for one in events:
        if one.item:
            found.setdefault((one.item, one.annotator), []).append(one)
    return found


def read_draft(connection: Connection, item: int, annotator: str) -> Draft:
    """What an annotator has written about an item so far."""
    return fold(read_events(connection, item, annotator, VERSIONED))


def record(
    connection: Connection,
    kind: str,
    payload: Value,
    *,
    annotator: str,
    item: int = 0,
    at: float | None = None,
) -> None:
    """Add an event that changes no draft."""
    connection.execute(
        events.insert().values(
            item=item,
            annotator=annotator,
            version=_latest_version(item, annotator),
            kind=kind,
            payload=encode(payload),
            at=time.time() if at is None else at,
        )
    )


def change_draft(
    connection: Connection, kind: str, payload: Value, *, item: int, annotator: str, version: int
) -> Draft:
    """Add an event that changes a draft of this version, in one statement that also looks who holds the item; with it,
    what follows for the slot. The caller has locked the item.

    Raises `Stale` where the draft has another version by now, `NotHeld` where the annotator holds no lease. A change
    that is sent again, because its answer was lost, is there once.
    """
    own: dict[str, Any] = {"item": item, "annotator": annotator}
    added = _append(connection, kind, payload, version=version, **own)
    if added and kind in ("submit", "reopen"):
        is_done = {"done": kind == "submit"}
        connection.execute(slots.update().where(*_own(item, annotator)).values(is_done))
    history = read_events(connection, item, annotator, VERSIONED)
    draft = fold(history)
    if added or _is_repeated(history, kind, payload, version):
        return draft
    if not connection.scalar(sa.select(_holds(item, annotator, kind))):
        raise NotHeld
    raise Stale(draft, payload.get("set"))


def insert_events(connection: Connection, happened: Sequence[Event]) -> None:
    """Add events that happened elsewhere, in their order."""
    rows = []
    for one in happened:
        rows.append({**asdict(one), "payload": encode(one.payload)})
        del rows[-1]["id"]  # it gets one here
    if rows:
        connection.execute(events.insert(), rows)


def _append(
    connection: Connection, kind: str, payload: Value, *, item: int, annotator: str, version: int
) -> bool:
    names = ["item", "annotator", "version", "kind", "payload", "at"]
    own = item, annotator, version + 1, kind, encode(payload), time.time()
    columns = [sa.literal(one, events.c[name].type) for name, one in zip(names, own, strict=True)]
    is_latest = _latest_version(item, annotator) == version
    row = sa.select(*columns).where(is_latest, _holds(item, annotator, kind))
    statement = events.insert().from_select(names, row).returning(events.c.id)
    return connection.scalar(statement) is not None


def _own(item: int, annotator: str) -> tuple[sa.ColumnElement[bool], ...]:
    return slots.c.item == item, slots.c.annotator == annotator


def _holds(item: int, annotator: str, kind: str) -> sa.ColumnElement[bool]:
    """Whether the annotator has a lease; what was submitted is held until it is adjudicated."""
    if kind == "reopen":
        final = sa.select(events.c.id).where(events.c.item == item, events.c.kind == "adjudicate")
        held = sa.select(slots.c.id).where(*_own(item, annotator), slots.c.done)
        return sa.and_(sa.exists(held), sa.not_(sa.exists(final)))
    held = sa.select(slots.c.id).where(
        *_own(item, annotator), sa.not_(slots.c.done), slots.c.until > time.time()
    )
    return sa.exists(held)


def _latest_version(item: int, annotator: str) -> sa.ColumnElement[int]:
    latest = sa.select(sa.func.max(events.c.version)).where(
        events.c.item == item, events.c.annotator == annotator
    )
    return sa.func.coalesce(latest.scalar_subquery(), 0)


def _is_repeated(history: list[Event], kind: str, payload: Value, version: int) -> bool:
    """Whether the last change is this very one."""
    if not history:
        return False
    last = history[-1]
    return (last.version, last.kind, last.payload) == (version + 1, kind, payload)
