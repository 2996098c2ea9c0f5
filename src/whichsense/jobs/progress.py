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
    """Show no progress: the default of library calls."""


def unsaid(line: str) -> None:
    """Print no remarks: the default of library calls."""


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
    """The speed since this run, or this phase of it, began. What an earlier run did does not count."""

    def __init__(self) -> None:
        self._count = self._first_count = -1
        self._done = self._first_done = 0.0  # shares of the whole
        self._start = 0.0  # seconds

    def note(self, done: float | None, count: int) -> None:
        if count < self._count or self._first_count < 0:
            # A new phase counts from the start again.
            self._first_count = count
            self._first_done = done or 0.0
            self._start = time.monotonic()
        self._count = count
        self._done = done or 0.0

    @property
    def rate(self) -> float:
        """Items in a second."""
        seconds = time.monotonic() - self._start
        return (self._count - self._first_count) / max(seconds, 1e-9)

    @property
    def speed(self) -> str:
        """The rate, or the seconds of one item where it is slow; empty before anything is done."""
        rate = self.rate
        if not rate:
            return ""
        if rate >= 1:
            return f"{rate:,.0f}/s"
        return f"{1 / rate:,.1f} s each"

    @property
    def seconds_left(self) -> float | None:
        done_here = self._done - self._first_done
        if done_here <= 0 or self._done >= 1:
            return None
        seconds = time.monotonic() - self._start
        return seconds * (1 - self._done) / done_here


class _Lines:
    """One line every ten seconds, for logs."""

    def __init__(self, title: str, unit: str) -> None:
        self.title = title
        self.unit = unit
        self._last = time.monotonic()  # when a line was printed
        self._pace = _Pace()

    def __call__(self, done: float | None, count: int) -> None:
        self._pace.note(done, count)
        if time.monotonic() - self._last < 10 and done != 1.0:
            return
        self._last = time.monotonic()
        share = "" if done is None else f" {done:.0%},"
        line = f"{self.title}:{share} {count:,} {self.unit}"
        if speed := self._pace.speed:
            line += f", {speed}"
        seconds = self._pace.seconds_left
        if seconds is not None:
            line += f", {seconds:.0f} s left"
        print(line, file=sys.stderr)  # noqa: T201
