"""Progress of long work: a bar on a terminal, a line now and then elsewhere, silence for libraries."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """How far the work is: `done` is a share between 0 and 1 (None where unknown), `count` what was made so far."""

    def __call__(self, done: float | None, count: int) -> None: ...


def silent(done: float | None, count: int) -> None:
    """The progress of a library call: none."""


def unsaid(line: str) -> None:
    """The remarks of a library call: none."""


@contextmanager
def shown(title: str, unit: str) -> Iterator[Progress]:
    """A bar with rate and time left on standard error, so that standard output stays clean for pipes."""
    if sys.stderr.isatty():
        with _bar(title, unit) as bar:
            yield bar
    else:
        yield _Lines(title, unit)


@contextmanager
def _bar(title: str, unit: str) -> Iterator[Progress]:
    from rich import progress as rich_progress
    from rich.console import Console

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.TaskProgressColumn(),
        rich_progress.TextColumn("{task.fields[count]:,} " + unit),
        rich_progress.TextColumn("{task.fields[rate]:,.0f}/s"),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None, count=0, rate=0.0)
        began = time.monotonic()
        first: list[int] = []

        def report(done: float | None, count: int) -> None:
            if not first:
                first.append(count)  # a resumed job does not claim what an earlier run made
            rate = (count - first[0]) / max(time.monotonic() - began, 1e-9)
            total = None if done is None else 1.0
            bar.update(task, total=total, completed=done or 0.0, count=count, rate=rate)

        yield report


class _Lines:
    """One line every ten seconds, for logs."""

    def __init__(self, title: str, unit: str) -> None:
        self.title, self.unit = title, unit
        self.began = self.last = time.monotonic()
        self.first: int | None = None
        self.done_before = 0.0

    def __call__(self, done: float | None, count: int) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first, self.done_before = count, done or 0.0
        if now - self.last < 10 and done != 1.0:
            return
        self.last = now
        share = "" if done is None else f" {done:.0%},"
        rate = (count - self.first) / max(now - self.began, 1e-9)
        fresh = (done or 0.0) - self.done_before
        left = f", {(now - self.began) * (1 - (done or 0)) / fresh:.0f} s left" if fresh > 0 and done != 1 else ""
        print(f"{self.title}:{share} {count:,} {self.unit}, {rate:,.0f}/s{left}", file=sys.stderr)  # noqa: T201
