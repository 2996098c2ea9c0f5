"""The data statement: who made the data, how, in what time, and how far they agree.

It goes with every export.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from whichsense.studio.adjudication import annotated, finals
from whichsense.studio.history import read_events
from whichsense.studio.reports import agreement, paper_counts, work_seconds
from whichsense.studio.workbench import Studio, read_items


def write_statement(studio: Studio, form: str) -> str:
    """The statement in Markdown. Annotators have numbers, not names."""
    settings = studio.settings
    with studio.database.reading() as connection:
        items = annotated(studio, connection)
        agreed = len(read_items(connection, "agreed"))
        decided = len(finals(connection))
        seconds = work_seconds(studio, connection)
        submitted = [one.at for one in read_events(connection, kinds=("submit",))]
        shares = paper_counts(studio, connection)
    times: dict[str, list[float]] = {}
    for item in items:
        for who in item.values:
            times.setdefault(who, []).append(seconds.get((item.number, who), 0.0))
    count = sum(map(len, times.values()))
    lines = [
        f"# Data statement: {studio.project.name}\n",
        f"- Kind: {studio.kind.name} ({studio.kind.title}); exported as {form}",
        f"- Items: {len(items) + agreed:,}, of which {sum(bool(one.values) for one in items):,} annotated here"
        + (f" and {agreed:,} agreed on by those who wrote them" if agreed else ""),
        f"- Annotations: {count:,} by {len(times):,} annotators; {settings.overlap} for each item"
        + (", one more where they disagree" if settings.tiebreak else ""),
        f"- Adjudicated: {decided:,} items",
        f"- Made: {_days(submitted)}",
        f"- Suggestions of a system: {settings.suggestions}, where items have them",
        f"- Paid: {settings.pay.per_item:g} {settings.pay.currency} an item, {settings.pay.per_hour:g} an hour",
        "\n## Annotators\n",
        "| annotator | annotations | median seconds |",
        "|---|---|---|",
        *[
            f"| {number} | {len(own):,} | {_median(own):.0f} |"
            for number, own in enumerate(times.values(), 1)
        ],
        "\n## Agreement\n",
        "| measure | value | 95% interval | items | |",
        "|---|---|---|---|---|",
        *[_agreement_line(one) for one in agreement(studio)["measures"]],
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
    days = [
        time.strftime("%Y-%m-%d", time.gmtime(one))
        for one in (min(times, default=0), max(times, default=0))
    ]
    return " to ".join(dict.fromkeys(days)) if times else "not yet"


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
