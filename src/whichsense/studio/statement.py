"""The data statement: who made the data, how, in what time, and how far they agree.

It goes with every export.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import median
from typing import Any

from whichsense.studio.adjudication import annotated, finals
from whichsense.studio.effort import seconds_by_item
from whichsense.studio.history import read_events
from whichsense.studio.reports import agreement, paper_counts
from whichsense.studio.workbench import Studio, read_items


def write_statement(studio: Studio, form: str) -> str:
    """The statement in Markdown. Annotators have numbers, not names."""
    settings, pay = studio.settings, studio.settings.pay
    with studio.database.reading() as connection:
        items = annotated(studio, connection)
        agreed = len(read_items(connection, "agreed"))
        decided = len(finals(connection))
        history = read_events(connection)
        shares = paper_counts(studio, connection)
    seconds = seconds_by_item(history, settings.pause)
    submitted = [one.at for one in history if one.kind == "submit"]
    times: dict[str, list[float]] = {}
    for item in items:
        for who in item.values:
            times.setdefault(who, []).append(seconds.get((item.number, who), 0.0))
    by_hand = sum(bool(one.values) for one in items)
    going_along = f" and {agreed:,} agreed on by those who wrote them" * bool(agreed)
    one_more = ", one more where they disagree" * settings.tiebreak
    lines = [
        f"# Data statement: {studio.project.name}\n",
        f"- Kind: {studio.kind.name} ({studio.kind.title}); exported as {form}",
        f"- Items: {len(items) + agreed:,}, of which {by_hand:,} annotated here{going_along}",
        f"- Annotations: {sum(map(len, times.values())):,} by {len(times):,} annotators; "
        f"{settings.overlap} for each item{one_more}",
        f"- Adjudicated: {decided:,} items",
        f"- Made: {_days(submitted)}",
        f"- Suggestions of a system: {settings.suggestions}, where items have them",
        f"- Paid: {pay.per_item:g} {pay.currency} an item, {pay.per_hour:g} an hour",
        "\n## Annotators\n",
        "| annotator | annotations | median seconds |",
        "|---|---|---|",
    ]
    lines += [
        f"| {number} | {len(own):,} | {median(own):.0f} |"
        for number, own in enumerate(times.values(), 1)
    ]
    lines += [
        "\n## Agreement\n",
        "| measure | value | 95% interval | items | |",
        "|---|---|---|---|---|",
        *map(_agreement_line, agreement(studio)["measures"]),
    ]
    if shares:
        lines += ["\n## Counts\n", "| | |", "|---|---|"]
        lines += [f"| {name} | {value} |" for name, value in shares.items()]
    return "\n".join([*lines, "\n## Guidelines\n", settings.guidelines.strip(), ""])


def _agreement_line(measure: Mapping[str, Any]) -> str:
    value = "undefined" if measure["value"] is None else f"{measure['value']:.3f}"
    bounds = "" if measure["low"] is None else f"{measure['low']:.3f} to {measure['high']:.3f}"
    return f"| {measure['name']} | {value} | {bounds} | {measure['units']:,} | {measure['says']} |"


def _days(times: list[float]) -> str:
    days = [time.strftime("%Y-%m-%d", time.gmtime(one)) for one in sorted(times)]
    return " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "not yet"
