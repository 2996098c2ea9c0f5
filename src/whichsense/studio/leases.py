"""Leases: who holds which item, taken in one SQL statement, and never longer than minutes."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.studio.database import events, free_slot, items, slots

_PRIME = 2_147_483_647


@dataclass(frozen=True, slots=True)
class Lease:
    """An item that an annotator holds."""

    item: int
    until: float
    """Seconds since 1970."""


def take(
    connection: Connection,
    annotator: str,
    seconds: float,
    *,
    order: str = "least annotated",
    item: int | None = None,
    part: str = "work",
) -> Lease | None:
    """Take the next item of a part, or a given one; None where there is none left. An item that the annotator holds
    already comes first.

    Raises `IntegrityError` where the annotator's other window takes a slot of the same item at the same time.
    """
    until = time.time() + seconds
    statement = _take_statement(annotator, until, order=order, item=item, part=part)
    taken = connection.scalar(statement)
    return None if taken is None else Lease(taken, until)


def _take_statement(
    annotator: str, until: float, *, order: str, item: int | None, part: str
) -> Any:
    other = slots.alias()
    twice = sa.exists().where(
        other.c.item == slots.c.item, other.c.annotator == annotator, other.c.id != slots.c.id
    )
    rows = sa.select(slots.c.id).join(items, items.c.item == slots.c.item)
    rows = rows.where(items.c.part == part, sa.not_(slots.c.done))
    if item is not None:
        rows = rows.where(slots.c.item == item)
    else:
        skipped = sa.exists().where(
            events.c.item == slots.c.item, events.c.annotator == annotator, events.c.kind == "skip"
        )
        rows = rows.where(sa.not_(skipped))
    # What another connection is taking in this moment is passed over, not waited for.
    rows = rows.order_by(*_order(order, annotator), slots.c.slot, slots.c.item)
    rows = rows.limit(1).with_for_update(of=slots, skip_locked=True)
    own = rows.where(slots.c.annotator == annotator)
    is_free = sa.or_(slots.c.annotator.is_(None), slots.c.until <= time.time())
    free = rows.where(is_free, sa.not_(twice))
    # Two queries, of which each walks an index in order: among many items one query would sort all.
    first = sa.func.coalesce(own.scalar_subquery(), free.scalar_subquery())
    return (
        slots.update()
        .where(slots.c.id == first)
        .values(annotator=annotator, until=until)
        .returning(slots.c.item)
    )


def _order(order: str, annotator: str) -> list[sa.ColumnElement[Any]]:
    """What comes first. Every item's first slot is filled before any item's second, unless something else decides."""
    if order == "most uncertain":
        return [items.c.uncertainty.desc()]
    if order == "most different":
        return [items.c.difference.desc()]
    if order == "random":  # the annotator's own, and always the same
        step = int.from_bytes(annotator.encode()[:6], "big") * 48_271 % (_PRIME - 1) + 1
        place = sa.cast(slots.c.item, sa.BigInteger) * step % _PRIME
        return [place]
    return []


def assign(connection: Connection, annotator: str, item: int, seconds: float) -> None:
    """Give an annotator an item in a place of their own, if they have none there: what qualifies is for everyone."""
    own = sa.select(slots.c.id).where(slots.c.item == item, slots.c.annotator == annotator)
    if connection.scalar(own) is None:
        row = free_slot(item, secrets.randbelow(_PRIME) + 1)
        until = time.time() + seconds
        connection.execute(slots.insert().values({**row, "annotator": annotator, "until": until}))


def held(connection: Connection, annotator: str) -> int | None:
    """The item that an annotator holds, the one taken last."""
    query = sa.select(slots.c.item).where(
        slots.c.annotator == annotator, sa.not_(slots.c.done), slots.c.until > time.time()
    )
    # Without statistics SQLite would look through all that is open.
    query = query.with_hint(slots, "INDEXED BY slots_of", "sqlite")
    return connection.scalar(query.order_by(slots.c.until.desc()).limit(1))


def until(connection: Connection, annotator: str, item: int) -> float | None:
    """Until when an annotator holds an item, or held it; None where it is not theirs, or done."""
    return connection.scalar(sa.select(slots.c.until).where(*_held(annotator, item)))


def renew(connection: Connection, annotator: str, item: int, seconds: float) -> Lease | None:
    """Hold an item for longer; None where another has it by now, or it is done."""
    until = time.time() + seconds
    statement = (
        slots.update().where(*_held(annotator, item)).values(until=until).returning(slots.c.item)
    )
    renewed = connection.scalar(statement)
    return None if renewed is None else Lease(item, until)


def release(connection: Connection, annotator: str, item: int) -> bool:
    """Put an item back; False where the annotator does not hold it. The draft stays in the events."""
    statement = (
        slots.update()
        .where(*_held(annotator, item))
        .values(annotator=None, until=0.0)
        .returning(slots.c.item)
    )
    return connection.scalar(statement) is not None


def _held(annotator: str, item: int) -> tuple[sa.ColumnElement[bool], ...]:
    return slots.c.item == item, slots.c.annotator == annotator, sa.not_(slots.c.done)


def add_slot(connection: Connection, item: int, most: int) -> None:
    """Let one annotator more have an item, up to `most`."""
    last = connection.scalar(sa.select(sa.func.max(slots.c.slot)).where(slots.c.item == item))
    if (last or 0) < most:
        connection.execute(slots.insert().values(free_slot(item, (last or 0) + 1)))


def holder_count(connection: Connection) -> dict[str, int]:
    """How many slots are done, held and free."""
    now = time.time()
    is_held = sa.and_(slots.c.annotator.is_not(None), slots.c.until > now)
    state = sa.case((slots.c.done, "done"), (is_held, "held"), else_="free")
    query = sa.select(state, sa.func.count()).join(items, items.c.item == slots.c.item)
    query = query.where(items.c.part == "work").group_by(state)
    counts = {"done": 0, "held": 0, "free": 0}
    for name, count in connection.execute(query):
        counts[name] = count
    return counts
