"""Chains: what one project made is what the next one asks about, such as generation and then validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from whichsense.errors import BadInput
from whichsense.studio.adjudication import outcomes, read_unfinished
from whichsense.studio.checks import answer_keys, composed
from whichsense.studio.releases import Outcome
from whichsense.studio.workbench import Studio

_STEPS = {
    "generate": ("validate", "clarification", "long-answer"),
    "validate": ("clarification", "long-answer"),
    "clarification": ("preference",),
    "long-answer": ("compare",),
}
"""What may follow on a kind."""


def next_rows(studio: Studio, kind: str) -> list[dict[str, Any]]:
    """Make the questions for a project of a kind that follows on this one, of the items that are complete.

    Where all generators found exactly the same there is nothing to validate: the item goes along as agreed on.
    """
    following = _STEPS.get(studio.kind.name, ())
    if kind not in following:
        known = ", ".join(following) or "nothing"
        raise BadInput(f"After '{studio.kind.name}' comes {known}, not '{kind}'.")
    with studio.database.reading() as connection:
        unfinished = read_unfinished(connection)
        found = outcomes(studio, connection)
    complete = [one for one in found if one.values and one.item not in unfinished]
    rows = [{**_shared(one), **made} for one in complete if (made := _MADE[kind](one))]
    if not rows:
        raise BadInput(
            f"No item of '{studio.project.name}' is complete and has something for '{kind}' yet."
        )
    return rows


def _shared(outcome: Outcome) -> dict[str, Any]:
    body = outcome.body
    row = {name: body[name] for name in ("id", "question", "release") if name in body}
    row["pages"] = list(dict.fromkeys([*body.get("pages", ()), *outcome.pages]))
    row["queries"] = [*body.get("queries", ()), *outcome.searches]
    return row


# What an item of the next kind has beside its question; nothing where it asks for none.


def _to_validate(outcome: Outcome) -> dict[str, Any]:
    values = outcome.values
    is_agreed = len(values) > 1 and len(set(map(answer_keys, values))) == 1
    return {"annotations": list(map(dict, values)), "agreed": is_agreed}


def _to_compare(outcome: Outcome) -> dict[str, Any]:
    texts = [one["text"] for one in outcome.values[:2]]
    return {"readings": outcome.body["readings"], "answers": texts} if len(texts) > 1 else {}


def _to_prefer(outcome: Outcome) -> dict[str, Any]:
    asked = [one for one in outcome.values if one["action"] != "not ambiguous"]
    readings = outcome.body["readings"]
    return {"readings": readings, "clarification": composed(asked[0])} if asked else {}


def _to_read(outcome: Outcome) -> dict[str, Any]:
    """The readings of the first annotation that found several answers."""
    for value in outcome.values:
        if value.get("outcome") == "several":
            return {"readings": list(map(dict, value["pairs"]))}
    return {}


_MADE: dict[str, Callable[[Outcome], dict[str, Any]]] = {
    "validate": _to_validate,
    "clarification": _to_read,
    "long-answer": _to_read,
    "preference": _to_prefer,
    "compare": _to_compare,
}
