"""Qualification: training with feedback, a test, and silent gold items; who falls below is paused, their work kept."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.studio.agreement import similarity
from whichsense.studio.database import items, slots
from whichsense.studio.history import read_events, record

if TYPE_CHECKING:
    from whichsense.studio.checks import Value
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
    if not parts:
        return None
    done = _done(connection, member.id)
    for part in BEFORE:
        for number in sorted(parts):
            if parts[number] == part and number not in done:
                return number
    silent = [number for number in parts if parts[number] in DURING]
    given = sum(number in done for number in silent)
    work = len(done) - sum(number in done for number in parts)
    waiting = [number for number in silent if number not in done]
    if not waiting or work < rule.every * (given + 1):
        return None
    return min(waiting, key=lambda number: _place(member.id, number))


def _place(member_id: str, number: int) -> str:
    """Everyone has the silent items in another order, so that nobody can warn the next."""
    return hashlib.sha256(f"{member_id}\0{number}".encode()).hexdigest()


def _done(connection: Connection, member_id: str) -> set[int]:
    query = sa.select(slots.c.item).where(slots.c.annotator == member_id, slots.c.done)
    return set(connection.scalars(query))


def score(kind: Kind, part: str, body: Value, gold: Any, value: Value) -> float:
    """How right an annotation is, from 0 to 1; an attention check is right or wrong."""
    found = similarity(kind, body, gold, value)
    return float(found > 1 - 1e-9) if part == "attention" else found


def feedback(kind: Kind, body: Value, gold: Any, value: Value) -> dict[str, Any]:
    """What an annotator is told about a training item."""
    right = score(kind, "training", body, gold, value)
    says = (
        "This is right."
        if right > 1 - 1e-9
        else f"{right:.0%} right. Compare it with the right annotation."
    )
    return {"value": gold, "score": right, "says": says}


def scores(connection: Connection, member_id: str, *parts: str) -> list[float]:
    """A member's scores on the items of some parts, in the order of submission."""
    graded = read_events(connection, annotator=member_id, kinds=("grade",))
    return [one.payload["score"] for one in graded if one.payload["part"] in parts]


def grade(
    connection: Connection, kind: Kind, rule: Qualification, work: tuple[Member, int], value: Value
) -> None:
    """Keep how right an annotation is, and pause a member who has fallen below what is asked."""
    member, number = work
    row = connection.execute(sa.select(items).where(items.c.item == number)).one()
    right = score(kind, row.part, json.loads(row.body), json.loads(row.gold), value)
    payload = {"part": row.part, "score": right}
    record(connection, "grade", payload, annotator=member.id, item=number)
    if row.part == "test":
        _end_test(connection, rule, member)
    elif row.part in DURING:
        latest = scores(connection, member.id, *DURING)[-rule.window :]
        mean = sum(latest) / len(latest)
        if 2 * len(latest) >= min(rule.window, _count(connection, *DURING)) and mean < rule.floor:
            _pause(connection, member, f"control items {mean:.0%} right, below {rule.floor:.0%}")


def _end_test(connection: Connection, rule: Qualification, member: Member) -> None:
    own = scores(connection, member.id, "test")
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
