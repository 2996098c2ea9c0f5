"""Adjudication: who decides sees every annotation of an item, once all are submitted, and writes the final one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.errors import BadInput
from whichsense.studio.agreement import Annotated
from whichsense.studio.checks import Value
from whichsense.studio.database import items, slots
from whichsense.studio.effort import seconds_by_item
from whichsense.studio.history import Draft, Event, Stale, read_events, record
from whichsense.studio.kinds import UNSHOWN
from whichsense.studio.members import Member
from whichsense.studio.workbench import (
    Item,
    NotComplete,
    Studio,
    all_submitted,
    read_item,
    read_items,
    submitted_values,
)


class OwnAnnotation(Exception):
    """Nobody decides about what they wrote themselves."""


def annotated(studio: Studio, connection: Connection) -> list[Annotated]:
    """Every item of work with what was submitted for it, about the item as it is and not as somebody saw it."""
    values = all_submitted(connection)
    return [
        Annotated(item.number, item.body, unswapped(studio, item, values.get(item.number, {})))
        for item in read_items(connection, "work")
    ]


def unswapped(studio: Studio, item: Item, values: Mapping[str, Value]) -> dict[str, Value]:
    """Annotations about the item's two answers in their own order."""
    turn = studio.kind.unswapped
    return {who: turn(item.body, who, value) for who, value in values.items()}


def _values(studio: Studio, connection: Connection, item: Item) -> dict[str, Value]:
    """What was submitted for an item, about its answers in their own order."""
    return unswapped(studio, item, submitted_values(connection, item.number))


def finals(connection: Connection) -> dict[int, Event]:
    """The latest decision on each item that has one."""
    return {one.item: one for one in read_events(connection, kinds=("adjudicate",))}


def queue(studio: Studio, member: Member) -> list[dict[str, Any]]:
    """The items that can be decided, the most different first; what the member annotated is for others to decide."""
    with studio.database.reading() as connection:
        rows = annotated(studio, connection)
        decided = finals(connection)
        still_open = set(connection.scalars(sa.select(slots.c.item).where(sa.not_(slots.c.done))))
        by_item = sa.select(items.c.item, items.c.difference)
        differences = {number: value for number, value in connection.execute(by_item)}
    listed = []
    for row in rows:
        if row.values and row.number not in still_open:
            listed.append(
                {
                    "item": row.number,
                    "question": row.body["question"],
                    "difference": differences[row.number],
                    "annotations": len(row.values),
                    "final": row.number in decided,
                    "own": member.id in row.values,
                }
            )
    open_first = ("final", "own")
    return sorted(
        listed, key=lambda one: (*map(one.get, open_first), -one["difference"], one["item"])
    )


def open_case(studio: Studio, member: Member, number: int) -> dict[str, Any]:
    """Everything about an item: it is blind until all its annotations are submitted."""
    with studio.database.reading() as connection:
        item = read_item(connection, number)
        _refuse_unfinished(connection, item)
        values = _values(studio, connection, item)
        history = read_events(connection, number)
    seconds = seconds_by_item(history, studio.settings.pause)
    names = studio.members.names()
    shown = []
    for who, value in values.items():
        own = [one for one in history if one.annotator == who]
        shown.append(
            {
                "annotator": who,
                "name": names.get(who, who),
                "value": value,
                "seconds": seconds.get((number, who), 0.0),
                "searches": [one.payload["query"] for one in own if one.kind == "search"],
                "viewed": [dict(one.payload) for one in own if one.kind == "view"],
            }
        )
    decisions = [one for one in history if one.kind == "adjudicate"]
    return {
        "item": number,
        "body": {name: one for name, one in item.body.items() if name not in UNSHOWN},
        "annotations": shown,
        "difference": item.difference,
        "final": decisions[-1].payload["value"] if decisions else None,
        "version": len(decisions),
        "own": member.id in values,
    }


def decide(
    studio: Studio,
    member: Member,
    number: int,
    version: int,
    *,
    value: Value | None = None,
    accept: str = "",
) -> dict[str, Any]:
    """Write the final annotation of an item, or accept an annotator's as it is.

    Raises `OwnAnnotation` where the member annotated the item, `Stale` where somebody decided in between, `NotComplete`
    where the form has errors.
    """
    with studio.members.writing(member) as connection:
        item = read_item(connection, number, is_locked=True)
        _refuse_unfinished(connection, item)
        values = _values(studio, connection, item)
        if member.id in values:
            raise OwnAnnotation
        if accept and accept not in values:
            raise BadInput("Nobody of this name has submitted an annotation of this item.")
        final = dict(values[accept] if accept else value or {})
        errors = [one for one in studio.kind.check(item.body, final) if one.level == "error"]
        if errors and not accept:
            raise NotComplete(errors)
        decisions = read_events(connection, number, kinds=("adjudicate",))
        if len(decisions) != version:
            latest = decisions[-1].payload["value"] if decisions else {}
            raise Stale(Draft(len(decisions), latest), value)
        payload = {"value": final, "accept": accept}
        record(connection, "adjudicate", payload, annotator=member.id, item=number)
    return open_case(studio, member, number)


def _refuse_unfinished(connection: Connection, item: Item) -> None:
    of_item = slots.c.item == item.number
    places = connection.scalars(sa.select(slots.c.done).where(of_item)).all()
    if item.part != "work" or not all(places):
        raise BadInput(
            "Not all annotations of this item are submitted; until then nobody sees them."
        )
