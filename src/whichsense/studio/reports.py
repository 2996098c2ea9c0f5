"""Reports over a project: agreement, time and pay, and what a paper counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.studio.adjudication import annotated, finals
from whichsense.studio.agreement import Annotated, measure_all, resolved_answers, row
from whichsense.studio.checks import answers_of
from whichsense.studio.database import events
from whichsense.studio.effort import Work, pay_table, seconds_by_item
from whichsense.studio.history import read_events
from whichsense.studio.workbench import Studio, read_items


def agreement(studio: Studio) -> dict[str, Any]:
    """Every measure with its interval, and a row for each item; computed again once something has happened."""
    with studio.database.reading() as connection:
        latest = connection.scalar(sa.select(sa.func.max(events.c.id))) or 0
        known, report = studio.agreement_cache
        if report and known == latest:
            return report
        items = annotated(studio, connection)
    measures = [asdict(one) for one in measure_all(studio.kind, items)]
    report = {"measures": measures, "rows": [row(studio.kind, item) for item in items]}
    studio.agreement_cache = (latest, report)
    return report


def pay(studio: Studio) -> dict[str, Any]:
    """What each annotator is owed, by project.toml."""
    with studio.database.reading() as connection:
        work = _work(studio, connection)
        seconds = work_seconds(studio, connection)
    rule = studio.settings.pay
    rows = pay_table(rule, studio.kind, work, studio.members.names(), seconds)
    return {"currency": rule.currency, "rows": rows}


def work_seconds(studio: Studio, connection: Connection) -> dict[tuple[int, str], float]:
    """How long each annotator worked on each item."""
    return seconds_by_item(read_events(connection), studio.settings.pause)


def _work(studio: Studio, connection: Connection) -> list[Work]:
    decided = finals(connection)
    work = []
    for item in annotated(studio, connection):
        final = decided.get(item.number)
        value = None if final is None else final.payload["value"]
        for who, own in item.values.items():
            work.append(Work(who, item.body, own, value))
    return work


def paper_counts(studio: Studio, connection: Connection) -> dict[str, str]:
    """What AmbigNQ's paper counts: questions by their number of answers, and how often annotations passed."""
    if studio.kind.measure != "answers":
        return {}
    items = annotated(studio, connection)
    agreed = read_items(connection, "agreed")
    sizes = [[len(answers_of(one)) for one in item.body["annotations"]] for item in agreed]
    sizes += [_sizes(studio, item) for item in items if item.values]
    # With several accepted annotations the smallest number counts, as in the paper's table.
    smallest = Counter(min(own) for own in map(_found, sizes) if own)
    total = sum(smallest.values())
    counts = {"questions with an answer": f"{total:,}"}
    for size in (1, 2, 3):
        counts[f"… with {size}"] = _share(smallest[size], total)
    counts["… with 4 or more"] = _share(sum(n for size, n in smallest.items() if size > 3), total)
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
