"""Reports over a project: agreement, time and pay, and what a paper counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.studio.adjudication import annotated, finals, outcomes
from whichsense.studio.agreement import measure_all, row
from whichsense.studio.checks import answers_of
from whichsense.studio.database import events
from whichsense.studio.effort import Work, pay_table, seconds_by_item
from whichsense.studio.history import read_events
from whichsense.studio.releases import Outcome
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
    """Return what each annotator is owed, by project.toml."""
    with studio.database.reading() as connection:
        decided = finals(connection)
        found = annotated(studio, connection)
        seconds = seconds_by_item(read_events(connection), studio.settings.pause)
    work = []
    for item in found:
        final = decided[item.number].payload["value"] if item.number in decided else None
        work += [Work(who, item.body, value, final) for who, value in item.values.items()]
    rule = studio.settings.pay
    rows = pay_table(rule, studio.kind, work, studio.members.names(), seconds)
    return {"currency": rule.currency, "rows": rows}


def paper_counts(studio: Studio, connection: Connection) -> dict[str, str]:
    """Count what AmbigNQ's paper counts: questions by their number of answers, and how often annotations passed."""
    if studio.kind.measure != "answers":
        return {}
    # With several accepted annotations the smallest number counts, as in the paper's table.
    sizes = Counter(size for one in outcomes(studio, connection) if (size := _smallest(one)))
    total = sizes.total()
    counts = {"questions with an answer": f"{total:,}"}
    for size in (1, 2, 3):
        counts[f"… with {size}"] = _share(sizes.pop(size, 0), total)
    counts["… with 4 or more"] = _share(sizes.total(), total)
    if studio.kind.name == "validate":
        said = [
            next(iter(one.values.values())) for one in annotated(studio, connection) if one.values
        ]
        verdicts = Counter(value["verdict"] for value in said)
        agreed = len(read_items(connection, "agreed"))
        every = agreed + len(said)
        counts["validation skipped, annotations equal"] = _share(agreed, every)
        counts["all annotations passed"] = _share(agreed + verdicts["same"], every)
        counts["one passed"] = _share(verdicts["better"], every)
        counts["written anew"] = _share(verdicts["new"], every)
    return counts


def _smallest(outcome: Outcome) -> int:
    """The smallest number of answers in an annotation that has any."""
    return min(filter(None, (len(answers_of(one)) for one in outcome.values)), default=0)


def _share(count: int, total: int) -> str:
    return f"{count:,} ({count / total:.0%})" if total else "0"
