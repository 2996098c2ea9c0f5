"""Limits of one answer: a deadline, and a caller who may have gone away.

The pipeline sets them for as long as it runs; stages call `check_limits` between steps
that take a noticeable time (a passage, a decoded token, a request). Without limits that
costs one look-up.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass


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
        """Limits that count from now."""
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
    """The limits of what runs now; hand them to threads of your own, which have none."""
    return _current.get()


def check_limits() -> None:
    """Raise `LimitReached` where the deadline has passed or the caller has gone away."""
    _current.get().check()
