"""Time and pay: how long people worked, by their events, and what they are owed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from whichsense.studio.agreement import similarity
from whichsense.studio.checks import Value
from whichsense.studio.history import Event, by_draft
from whichsense.studio.kinds import Kind

if TYPE_CHECKING:
    from whichsense.studio.project import Pay


def working_seconds(times: Sequence[float], pause: float) -> float:
    """The time between events, without gaps that are longer than a pause.

    >>> working_seconds([0, 30, 60, 4000, 4010], pause=120)
    70.0
    """
    gaps = (after - before for before, after in pairwise(times))
    return float(sum(gap for gap in gaps if gap <= pause))


def seconds_by_item(events: Iterable[Event], pause: float) -> dict[tuple[int, str], float]:
    """How long each annotator worked on each item."""
    worked = by_draft(one for one in events if one.kind not in ("adjudicate", "grade"))
    return {key: working_seconds([one.at for one in own], pause) for key, own in worked.items()}


def pay_table(
    pay: Pay,
    kind: Kind,
    work: Iterable[Work],
    names: Mapping[str, str],
    seconds: Mapping[tuple[int, str], float],
) -> list[dict[str, Any]]:
    """What each annotator is owed: for items, for hours, and bonuses."""
    rows: dict[str, dict[str, Any]] = {}
    for (_, who), spent in seconds.items():
        row = rows.setdefault(who, _empty(who, names))
        row["seconds"] += spent
    for one in work:
        row = rows.setdefault(one.annotator, _empty(one.annotator, names))
        row["items"] += 1
        row["bonus"] += sum(rule.amount for rule in pay.bonus if _earns(kind, rule.when, one))
    for row in rows.values():
        hours = row["seconds"] / 3600
        row["pay"] = round(pay.per_item * row["items"] + pay.per_hour * hours, 2)
        row["bonus"] = round(row["bonus"], 2)
        row["total"] = round(row["pay"] + row["bonus"], 2)
    return sorted(rows.values(), key=lambda row: str(row["name"]))


@dataclass(frozen=True, slots=True)
class Work:
    """A submitted annotation, and the final one of its item where it was adjudicated."""

    annotator: str
    body: Value
    value: Value
    final: Value | None


def _empty(who: str, names: Mapping[str, str]) -> dict[str, Any]:
    return {"member": who, "name": names.get(who, who), "items": 0, "seconds": 0.0, "bonus": 0.0}


def _earns(kind: Kind, when: str, work: Work) -> bool:
    if when == "accepted":
        is_same = (
            work.final is not None and similarity(kind, work.body, work.value, work.final) == 1
        )
        return bool(is_same)
    if when == "several":
        return work.value.get("outcome") == "several"
    return work.value.get("outcome") != "nothing"
