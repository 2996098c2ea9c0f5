"""Stop long work cleanly: the first Ctrl-C (or SIGTERM) requests a stop, the second interrupts."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

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
    before = {
        number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
