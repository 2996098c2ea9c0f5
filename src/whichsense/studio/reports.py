"""Reports over a project: agreement, time and pay, and what a paper counts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from whichsense.studio.adjudication import annotated, finals
from whichsense.studio.agreement import measure_all, row
from whichsense.studio.database import events
from whichsense.studio.effort import Work, pay_table, seconds_by_item
from whichsense.studio.history import read_events
from whichsense.studio.workbench import Studio


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


def work_seconds(
    studio: Studio, connection: Connection
) -> dict[tuple[int, str], float]:
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
