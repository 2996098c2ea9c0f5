"""Progress of long work: a bar on a terminal, a line now and then elsewhere, silence for libraries."""

from __future__ import annotations

import os
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
def show_progress(title: str, unit: str) -> Iterator[Progress]:
    """Show a bar with rate and time left on standard error: standard output stays clean for pipes.

    Of several processes that a launcher (torchrun) started, only the first shows it.
    """
    if os.environ.get("RANK", "0") != "0":
        yield silent
    elif sys.stderr.isatty():
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
        rich_progress.TextColumn("{task.fields[speed]}"),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None, count=0, speed="")
        pace = _Pace()

        def report(done: float | None, count: int) -> None:
            pace.note(done, count)
            total = None if done is None else 1.0
            bar.update(
                task, total=total, completed=done or 0.0, count=count, speed=pace.speed
            )

        yield report


class _Pace:
    """How fast it goes since this run, or this phase of it, began: a resumed job claims nothing of an earlier one."""

    def __init__(self) -> None:
        self._count = self._first = -1
        self._done = self._done_before = self._began = 0.0

    def note(self, done: float | None, count: int) -> None:
        if (
            count < self._count or self._first < 0
        ):  # a new phase counts from the start again
            self._first, self._done_before, self._began = (
                count,
                done or 0.0,
                time.monotonic(),
            )
        self._count, self._done = count, done or 0.0

    @property
    def rate(self) -> float:
        return (self._count - self._first) / max(time.monotonic() - self._began, 1e-9)

    @property
    def speed(self) -> str:
        """What is slow is told by how long one takes; nothing before anything is done."""
        if not self.rate:
            return ""
        return (
            f"{self.rate:,.0f}/s" if self.rate >= 1 else f"{1 / self.rate:,.1f} s each"
        )

    @property
    def seconds_left(self) -> float | None:
        fresh = self._done - self._done_before
        return (
            (time.monotonic() - self._began) * (1 - self._done) / fresh
            if fresh > 0 and self._done < 1
            else None
        )


class _Lines:
    """One line every ten seconds, for logs."""

    def __init__(self, title: str, unit: str) -> None:
        self.title, self.unit = title, unit
        self._last, self._pace = time.monotonic(), _Pace()

    def __call__(self, done: float | None, count: int) -> None:
        self._pace.note(done, count)
        if time.monotonic() - self._last < 10 and done != 1.0:
            return
        self._last = time.monotonic()
        share = "" if done is None else f" {done:.0%},"
        left = (
            ""
            if self._pace.seconds_left is None
            else f", {self._pace.seconds_left:.0f} s left"
        )
        speed = self._pace.speed and f", {self._pace.speed}"
        print(  # noqa: T201
            f"{self.title}:{share} {count:,} {self.unit}{speed}{left}", file=sys.stderr
        )
