"""Waits for work that may never end: it runs in a thread that can be left behind."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from whichsense.jobs.limits import Limits

Item = TypeVar("Item")
_POLL = 0.1  # seconds between two looks at whether the caller has gone away


class TookTooLong(Exception):
    """The time of a call is over."""


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


_DONE = object()


def items_within(
    work: Callable[[], Iterable[Item]], ends_at: float, limits: Limits
) -> Iterator[Item]:
    """The items that work yields, as they come. Raises `TookTooLong` at `ends_at` (of `time.monotonic`), and
    `LimitReached` where the caller has gone away.

    A server can hold a connection in ways that no time limit of a socket ends, such as a byte now and then. So the
    work has a thread of its own, which ends with the process or with the connection.
    """
    items: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def run() -> None:
        try:
            for item in work():
                items.put(item)
            items.put(_DONE)
        except BaseException as error:
            items.put(_Failed(error))

    threading.Thread(target=run, name="whichsense-llm", daemon=True).start()
    while True:
        left = ends_at - time.monotonic()
        if left <= 0:
            raise TookTooLong
        if limits.cancelled is not None:
            limits.check()
        try:
            item = items.get(timeout=min(left, _POLL))
        except queue.Empty:
            continue
        if item is _DONE:
            return
        if isinstance(item, _Failed):
            raise item.error
        yield item
