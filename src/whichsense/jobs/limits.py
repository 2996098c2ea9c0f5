"""Bounds and signs of long work: deadlines, cancelling, stopping on a signal, progress."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

# Limits of one answer: a deadline, and a caller who may have gone away.
#
# The pipeline sets them for as long as it runs; stages call `check_limits` between steps that take a
# noticeable time (a passage, a decoded token, a request). Without limits that costs one look-up.


class LimitReached(Exception):
    """Raised inside a stage to leave it; the pipeline turns it into `Case.stopped`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Limits:
    """When to give up."""

    ends_at: float | None = None
    """In seconds of `time.monotonic`."""
    cancelled: Callable[[], bool] | None = None

    @classmethod
    def of(
        cls, seconds: float | None = None, cancelled: Callable[[], bool] | None = None
    ) -> Limits:
        """Return limits that count from now."""
        ends_at = None if seconds is None else time.monotonic() + seconds
        return cls(ends_at, cancelled)

    def check(self) -> None:
        if self.cancelled is not None and self.cancelled():
            raise LimitReached("cancelled")
        if self.ends_at is not None and time.monotonic() >= self.ends_at:
            raise LimitReached("deadline")


_NO_LIMITS = Limits()
_current: ContextVar[Limits] = ContextVar("whichsense_limits", default=_NO_LIMITS)


@contextlib.contextmanager
def within(limits: Limits) -> Iterator[None]:
    """Make these the limits of what runs inside, in this thread."""
    token = _current.set(limits)
    try:
        yield
    finally:
        _current.reset(token)


def current_limits() -> Limits:
    """Return the limits of what runs now; hand them to threads of your own, which have none."""
    return _current.get()


def check_limits() -> None:
    """Raise `LimitReached` where the deadline has passed or the caller has gone away."""
    _current.get().check()


# Stop long work cleanly: the first Ctrl-C (or SIGTERM) requests a stop, the second interrupts.

_HEARD = b"\nStopping at the next point from which it can go on. Once more: at once.\n"


class Stopped(KeyboardInterrupt):
    """Long work stopped on request, at a point from which it can resume."""


@contextlib.contextmanager
def stop_requested() -> Iterator[Callable[[], bool]]:
    """A function that says whether a stop was requested. Call it wherever the work can stop without loss."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        os.write(2, _HEARD)  # print might be in the middle of another line

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set  # only the main thread may handle signals; elsewhere the caller stops the thread
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Progress of long work: a bar on a terminal, a line now and then elsewhere, silence for libraries.


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
            bar.update(task, total=total, completed=done or 0.0, count=count, speed=pace.speed)

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
