"""Adjudication: who decides sees every annotation of an item, once all are submitted, and writes the final one. What
counts of an item is that, or what its annotators wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.errors import BadInput
from whichsense.studio.checks import Value, present
from whichsense.studio.database import slots
from whichsense.studio.effort import seconds_by_item
from whichsense.studio.history import Draft, Event, Stale, payloads, read_events, record
from whichsense.studio.items import Item
from whichsense.studio.kinds import UNSHOWN, Kind
from whichsense.studio.members import Member
from whichsense.studio.releases import Outcome
from whichsense.studio.workbench import NotComplete, Studio, read_item, read_items, with_values


class OwnAnnotation(Exception):
    """Nobody decides about what they wrote themselves."""


def annotated(studio: Studio, connection: Connection) -> list[Item]:
    """Read every item of work with what was submitted for it."""
    return with_values(connection, studio.kind, read_items(connection, "work"))


def finals(connection: Connection) -> dict[int, Event]:
    """Read the latest decision on each item that has one."""
    return {one.item: one for one in read_events(connection, kinds=("adjudicate",))}


def read_unfinished(connection: Connection) -> set[int]:
    """Read which items still have a place that is free or in work."""
    return set(connection.scalars(sa.select(slots.c.item).where(sa.not_(slots.c.done))))


def queue(studio: Studio, member: Member) -> list[dict[str, Any]]:
    """List what can be decided, the most different first; what the member annotated is for others to decide."""
    with studio.database.reading() as connection:
        found = annotated(studio, connection)
        decided = finals(connection)
        unfinished = read_unfinished(connection)
    listed = [
        {
            "item": item.number,
            "question": item.body["question"],
            "difference": item.difference,
            "annotations": len(item.values),
            "final": item.number in decided,
            "own": member.id in item.values,
        }
        for item in found
        if item.values and item.number not in unfinished
    ]
    return sorted(
        listed, key=lambda one: (one["final"], one["own"], -one["difference"], one["item"])
    )


def open_case(studio: Studio, member: Member, number: int) -> dict[str, Any]:
    """Show everything about an item: it is blind until all its annotations are submitted."""
    with studio.database.reading() as connection:
        item = _finished(studio, connection, read_item(connection, number))
        history = read_events(connection, number)
    seconds = seconds_by_item(history, studio.settings.pause)
    names = studio.members.names()
    shown = []
    for who, value in item.values.items():
        own = [one for one in history if one.annotator == who]
        shown.append(
            {
                "annotator": who,
                "name": names.get(who, who),
                "value": value,
                "seconds": seconds.get((number, who), 0.0),
                "searches": [query["query"] for query in payloads(own, "search")],
                "viewed": payloads(own, "view"),
            }
        )
    decisions = payloads(history, "adjudicate")
    return {
        "item": number,
        "body": {name: one for name, one in item.body.items() if name not in UNSHOWN},
        "annotations": shown,
        "difference": item.difference,
        "final": decisions[-1]["value"] if decisions else None,
        "version": len(decisions),
        "own": member.id in item.values,
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
        item = _finished(studio, connection, read_item(connection, number, is_locked=True))
        if member.id in item.values:
            raise OwnAnnotation
        if accept and accept not in item.values:
            raise BadInput("Nobody of this name has submitted an annotation of this item.")
        final = item.values[accept] if accept else present(value or {})
        if not accept and (errors := studio.kind.errors(item.body, final)):
            raise NotComplete(errors)
        decisions = payloads(read_events(connection, number), "adjudicate")
        if len(decisions) != version:
            latest = decisions[-1]["value"] if decisions else {}
            raise Stale(Draft(len(decisions), latest), value)
        payload = {"value": final, "accept": accept}
        record(connection, "adjudicate", payload, annotator=member.id, item=number)
    return open_case(studio, member, number)


def _finished(studio: Studio, connection: Connection, item: Item) -> Item:
    """The item with all its annotations; refused before they are submitted."""
    if item.part != "work" or item.number in read_unfinished(connection):
        raise BadInput(
            "Not all annotations of this item are submitted; until then nobody sees them."
        )
    return with_values(connection, studio.kind, [item])[0]


# What counts, once it is decided or as it is.


def outcomes(studio: Studio, connection: Connection) -> list[Outcome]:
    """Read every item with what counts of its annotations, its searches and pages."""
    decided = finals(connection)
    read: dict[int, list[Event]] = {}
    for event in read_events(connection, kinds=("search", "view")):
        read.setdefault(event.item, []).append(event)
    found = []
    for item in with_values(connection, studio.kind, read_items(connection, "work", "agreed")):
        own = list(item.values.values())
        if item.number in decided:
            own = [decided[item.number].payload["value"]]
        history = read.get(item.number, [])
        found.append(
            Outcome(
                item.body,
                _accepted(studio.kind, item, own),
                list(map(_search, payloads(history, "search"))),
                [one["title"] for one in payloads(history, "view")],
                item.number,
            )
        )
    return found


def _accepted(kind: Kind, item: Item, values: Sequence[Value]) -> Sequence[Value]:
    """The annotations that count: those of generators that a validator accepts, or the validator's own."""
    generated: Sequence[Value] = item.body.get("annotations", ())
    if item.part == "agreed":
        return generated
    if kind.name != "validate" or not values:
        return values
    verdict = values[0]["verdict"]
    if verdict == "better":
        return [generated[values[0]["better"]]]
    return generated if verdict == "same" else values[:1]


def _search(search: Value) -> dict[str, Any]:
    shown = [{"title": one["title"], "snippet": one["snippet"]} for one in search["results"]]
    return {"query": search["query"], "results": shown}
