"""Time and pay: how long people worked, by their events, and what they are owed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from whichsense.studio.history import Event


def working_seconds(times: Sequence[float], pause: float) -> float:
    """The time between events, without gaps that are longer than a pause.

    >>> working_seconds([0, 30, 60, 4000, 4010], pause=120)
    70.0
    """
    gaps = (after - before for before, after in pairwise(times))
    return float(sum(gap for gap in gaps if gap <= pause))


def seconds_by_item(
    events: Iterable[Event], pause: float
) -> dict[tuple[int, str], float]:
    """How long each annotator worked on each item."""
    times: dict[tuple[int, str], list[float]] = {}
    for event in events:
        if event.item and event.kind != "adjudicate":
            times.setdefault((event.item, event.annotator), []).append(event.at)
    return {key: working_seconds(own, pause) for key, own in times.items()}
