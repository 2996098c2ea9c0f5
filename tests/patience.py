"""Waiting for something to happen. No test fails because a machine is busy: limits only end what hangs."""

from __future__ import annotations

import time
from collections.abc import Callable

LONGEST = 600.0
"""Seconds after which something will never happen. A quiet machine needs one or two."""


def wait_for(condition: Callable[[], object], seconds: float = LONGEST) -> None:
    """Return as soon as it holds."""
    ends_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends_at, "it never happened"
        time.sleep(0.02)
