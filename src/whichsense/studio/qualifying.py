"""Qualification: training with feedback, a test, and silent gold items; who falls below is paused, their work kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.studio.agreement import similarity
from whichsense.studio.database import items, slots
from whichsense.studio.history import Event, read_events, record

if TYPE_CHECKING:
    from whichsense.studio.checks import Value
    from whichsense.studio.items import Item
    from whichsense.studio.kinds import Kind
    from whichsense.studio.members import Member
    from whichsense.studio.project import Qualification

BEFORE = ("training", "test")
DURING = ("gold", "attention")


def next_item(connection: Connection, rule: Qualification, member: Member) -> int | None:
    """The item that qualifies and comes now; None where it is work's turn."""
    if member.role != "annotator":
        return None
    query = sa.select(items.c.item, items.c.part).where(items.c.part.in_((*BEFORE, *DURING)))
    parts: dict[int, str] = {number: part for number, part in connection.execute(query)}
    done = set(
        connection.scalars(
            sa.select(slots.c.item).where(slots.c.annotator == member.id, slots.c.done)
        )
    )
    waiting = parts.keys() - done
    before = [(BEFORE.index(parts[n]), n) for n in waiting if parts[n] in BEFORE]
    if before:
        return min(before)[1]
    given = sum(parts.get(number) in DURING for number in done)
    if not waiting or len(done - parts.keys()) < rule.every * (given + 1):
        return None
    return min(waiting, key=lambda number: _place(member.id, number))


def _place(member_id: str, number: int) -> str:
    """Everyone has the silent items in another order, so that nobody can warn the next."""
    return hashlib.sha256(f"{member_id}\0{number}".encode()).hexdigest()


def score(kind: Kind, item: Item, value: Value) -> float:
    """Return how right an annotation is, from 0 to 1; an attention check is right or wrong."""
    found = similarity(kind, item.body, item.gold or {}, value)
    return float(found > 1 - 1e-9) if item.part == "attention" else found


def feedback(kind: Kind, item: Item, value: Value) -> dict[str, Any]:
    """Tell an annotator about a training item."""
    right = score(kind, item, value)
    says = f"{right:.0%} right. Compare it with the right annotation."
    if right > 1 - 1e-9:
        says = "This is right."
    return {"value": item.gold, "score": right, "says": says}


def mean_scores(events: Iterable[Event], member_id: str) -> dict[str, float]:
    """Return a member's mean score on what qualifies, by part."""
    by_part: dict[str, list[float]] = {}
    for one in events:
        if one.kind == "grade" and one.annotator == member_id:
            by_part.setdefault(one.payload["part"], []).append(one.payload["score"])
    return {part: sum(own) / len(own) for part, own in by_part.items()}


def grade(
    connection: Connection, rule: Qualification, member: Member, item: Item, right: float
) -> None:
    """Keep how right an annotation is, and pause a member who has fallen below what is asked."""
    payload = {"part": item.part, "score": right}
    record(connection, "grade", payload, annotator=member.id, item=item.number)
    if item.part == "test":
        _end_test(connection, rule, member)
    elif item.part in DURING:
        latest = _scores(connection, member, *DURING)[-rule.window :]
        mean = sum(latest) / len(latest)
        if 2 * len(latest) >= min(rule.window, _count(connection, *DURING)) and mean < rule.floor:
            _pause(connection, member, f"control items {mean:.0%} right, below {rule.floor:.0%}")


def _scores(connection: Connection, member: Member, *parts: str) -> list[float]:
    """A member's scores on the items of some parts, in the order of submission."""
    graded = read_events(connection, annotator=member.id, kinds=("grade",))
    return [one.payload["score"] for one in graded if one.payload["part"] in parts]


def _end_test(connection: Connection, rule: Qualification, member: Member) -> None:
    own = _scores(connection, member, "test")
    if len(own) < _count(connection, "test"):
        return
    mean = sum(own) / len(own)
    passed = mean >= rule.threshold
    record(connection, "pass" if passed else "fail", {"score": mean}, annotator=member.id)
    if not passed:
        _pause(connection, member, f"test {mean:.0%} right, below {rule.threshold:.0%}")


def _count(connection: Connection, *parts: str) -> int:
    query = sa.select(sa.func.count()).select_from(items).where(items.c.part.in_(parts))
    return int(connection.scalar(query) or 0)


def _pause(connection: Connection, member: Member, reason: str) -> None:
    record(connection, "pause", {"reason": reason, "by": ""}, annotator=member.id)
