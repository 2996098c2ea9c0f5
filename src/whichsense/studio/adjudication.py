"""Adjudication: who decides sees every annotation of an item, once all are submitted, and writes the final one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.errors import BadInput
from whichsense.studio.agreement import Annotated
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
)


def annotated(studio: Studio, connection: Connection) -> list[Annotated]:
    """Every item of work with what was submitted for it, about the item as it is and not as somebody saw it."""
    values = all_submitted(connection)
    return [
        Annotated(
            item.number, item.body, unswapped(studio, item, values.get(item.number, {}))
        )
        for item in read_items(connection, "work")
    ]


def unswapped(
    studio: Studio, item: Item, values: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Annotations about the item's two answers in their own order."""
    turn = studio.kind.unswapped
    return {who: turn(item.body, who, value) for who, value in values.items()}


def finals(connection: Connection) -> dict[int, Event]:
    """The latest decision on each item that has one."""
    return {one.item: one for one in read_events(connection, kinds=("adjudicate",))}


def queue(studio: Studio) -> list[dict[str, Any]]:
    """The items that can be decided, the most different first."""
    with studio.database.reading() as connection:
        rows = annotated(studio, connection)
        decided = finals(connection)
        still_open = set(
            connection.scalars(sa.select(slots.c.item).where(sa.not_(slots.c.done)))
        )
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
                }
            )
    return sorted(
        listed, key=lambda one: (one["final"], -one["difference"], one["item"])
    )


def open_case(studio: Studio, number: int) -> dict[str, Any]:
    """Everything about an item: it is blind until all its annotations are submitted."""
    with studio.database.reading() as connection:
        item = read_item(connection, number)
        _refuse_unfinished(connection, item)
        values = unswapped(
            studio, item, all_submitted(connection, number).get(number, {})
        )
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
                "searches": [
                    one.payload["query"] for one in own if one.kind == "search"
                ],
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
    }


def decide(
    studio: Studio,
    member: Member,
    number: int,
    version: int,
    *,
    value: Mapping[str, Any] | None = None,
    accept: str = "",
) -> dict[str, Any]:
    """Write the final annotation of an item, or accept an annotator's as it is.

    Raises `Stale` where somebody decided in between, `NotComplete` where the form has errors.
    """
    with studio.database.writing() as connection:
        locked = sa.select(items.c.item).where(items.c.item == number)
        connection.execute(locked.with_for_update())
        item = read_item(connection, number)
        _refuse_unfinished(connection, item)
        values = unswapped(
            studio, item, all_submitted(connection, number).get(number, {})
        )
        if accept and accept not in values:
            raise BadInput(
                "Nobody of this name has submitted an annotation of this item."
            )
        final = dict(values[accept] if accept else value or {})
        errors = [
            one for one in studio.kind.check(item.body, final) if one.level == "error"
        ]
        if errors and not accept:
            raise NotComplete(errors)
        decisions = read_events(connection, number, kinds=("adjudicate",))
        if len(decisions) != version:
            raise Stale(
                Draft(
                    len(decisions), decisions[-1].payload["value"] if decisions else {}
                )
            )
        payload = {"value": final, "accept": accept}
        record(connection, "adjudicate", payload, annotator=member.id, item=number)
    return open_case(studio, number)


def _refuse_unfinished(connection: Connection, item: Item) -> None:
    of_item = slots.c.item == item.number
    places = connection.scalars(sa.select(slots.c.done).where(of_item)).all()
    if item.part != "work" or not all(places):
        raise BadInput(
            "Not all annotations of this item are submitted; until then nobody sees them."
        )
