"""Chains: what one project made is what the next one asks about, such as generation and then validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from whichsense.errors import BadInput
from whichsense.studio.checks import composed, same_answers
from whichsense.studio.database import slots
from whichsense.studio.exports import outcomes
from whichsense.studio.releases import Outcome
from whichsense.studio.workbench import Studio, read_items

_STEPS = {
    "generate": ("validate", "clarification", "long-answer"),
    "validate": ("clarification", "long-answer"),
    "clarification": ("preference",),
    "long-answer": ("compare",),
}
"""What may follow on a kind."""


def next_rows(studio: Studio, kind: str) -> list[dict[str, Any]]:
    """The questions for a project of a kind that follows on this one, of the items that are complete.

    Where all generators found exactly the same there is nothing to validate: the item goes along as agreed on.
    """
    following = _STEPS.get(studio.kind.name, ())
    if kind not in following:
        known = ", ".join(following) or "nothing"
        raise BadInput(f"After '{studio.kind.name}' comes {known}, not '{kind}'.")
    with studio.database.reading() as connection:
        numbers = [item.number for item in read_items(connection, "work", "agreed")]
        still_open = set(connection.scalars(sa.select(slots.c.item).where(sa.not_(slots.c.done))))
        found = outcomes(studio, connection)
    rows = []
    for number, outcome in zip(numbers, found, strict=True):
        made = _row(kind, outcome) if number not in still_open and outcome.values else {}
        if made:
            rows.append({**_shared(outcome), **made})
    if not rows:
        raise BadInput(
            f"No item of '{studio.project.name}' is complete and has something for '{kind}' yet."
        )
    return rows


def _shared(outcome: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {name: outcome.body[name] for name in ("id", "question")}
    row["pages"] = list(dict.fromkeys([*outcome.body.get("pages", ()), *outcome.pages]))
    row["queries"] = [*outcome.body.get("queries", ()), *outcome.searches]
    if "release" in outcome.body:
        row["release"] = outcome.body["release"]
    return row


def _row(kind: str, outcome: Outcome) -> dict[str, Any]:
    """What an item of the next kind has beside its question; nothing where it asks for none."""
    values = outcome.values
    if kind == "validate":
        agreed = len(values) > 1 and all(same_answers(values[0], one) for one in values)
        return {"annotations": [dict(one) for one in values], "agreed": agreed}
    if kind == "compare":
        texts = [one["text"] for one in values]
        return (
            {"readings": outcome.body["readings"], "answers": texts[:2]} if len(texts) > 1 else {}
        )
    if kind == "preference":
        asked = [one for one in values if one["action"] != "not ambiguous"]
        readings = outcome.body["readings"]
        return {"readings": readings, "clarification": composed(asked[0])} if asked else {}
    several = [one for one in values if one.get("outcome") == "several"]
    return {"readings": [_reading(pair) for pair in several[0]["pairs"]]} if several else {}


def _reading(pair: Mapping[str, Any]) -> dict[str, Any]:
    return {"question": pair["question"], "answers": list(pair["answers"])}
