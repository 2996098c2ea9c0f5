"""The data statement: who made the data, how, in what time, and how far they agree."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from whichsense.studio.adjudication import annotated, finals
from whichsense.studio.agreement import Annotated, resolved_answers
from whichsense.studio.checks import answers_of
from whichsense.studio.history import read_events
from whichsense.studio.reports import agreement, work_seconds
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


def paper_counts(studio: Studio, connection: Connection) -> dict[str, str]:
    """What AmbigNQ's paper counts: questions by their number of answers, and how often annotations passed."""
    if studio.kind.measure != "answers":
        return {}
    items = annotated(studio, connection)
    agreed = read_items(connection, "agreed")
    sizes = [
        [len(answers_of(one)) for one in item.body["annotations"]] for item in agreed
    ]
    sizes += [_sizes(studio, item) for item in items if item.values]
    # With several accepted annotations the smallest number counts, as in the paper's table.
    smallest = Counter(min(own) for own in map(_found, sizes) if own)
    total = sum(smallest.values())
    counts = {"questions with an answer": f"{total:,}"}
    for size in (1, 2, 3):
        counts[f"… with {size}"] = _share(smallest[size], total)
    counts["… with 4 or more"] = _share(
        sum(n for size, n in smallest.items() if size > 3), total
    )
    if studio.kind.name == "validate":
        verdicts = Counter(
            next(iter(item.values.values()))["verdict"] for item in items if item.values
        )
        every = sum(verdicts.values()) + len(agreed)
        counts["validation skipped, annotations equal"] = _share(len(agreed), every)
        counts["all annotations passed"] = _share(len(agreed) + verdicts["same"], every)
        counts["one passed"] = _share(verdicts["better"], every)
        counts["written anew"] = _share(verdicts["new"], every)
    return counts


def _sizes(studio: Studio, item: Annotated) -> list[int]:
    if studio.kind.name != "validate":
        return [len(answers_of(value)) for value in item.values.values()]
    verdict = next(iter(item.values.values()))
    if verdict["verdict"] == "same":
        return [len(answers_of(one)) for one in item.body["annotations"]]
    return [len(resolved_answers(item.body, verdict))]


def _found(sizes: list[int]) -> list[int]:
    return [size for size in sizes if size]


def _share(count: int, total: int) -> str:
    return f"{count:,} ({count / total:.0%})" if total else "0"


def _agreement_line(measure: Mapping[str, Any]) -> str:
    value = "undefined" if measure["value"] is None else f"{measure['value']:.3f}"
    bounds = (
        ""
        if measure["low"] is None
        else f"{measure['low']:.3f} to {measure['high']:.3f}"
    )
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
