"""What a client raises where the service refuses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from whichsense.errors import WhichsenseError, require


class ServiceError(WhichsenseError):
    """The service refused, or does not answer (`status` 0). Its message has the fix; `retry_after` is how long to wait,
    where the service says so."""

    def __init__(self, status: int, problem: Mapping[str, Any], wait: str = "") -> None:
        title = problem.get("title", f"The service answered with {status}.")
        super().__init__(f"{title} {problem.get('fix', '')}".strip())
        self.status = status
        self.problem = problem
        self.retry_after = float(wait) if wait.isascii() and wait.isdigit() else None


@contextlib.contextmanager
def reaching(url: object) -> Iterator[None]:
    """Raise ServiceError where the service at a URL does not answer."""
    http = require("httpx2", "client")
    try:
        yield
    except http.TransportError as error:
        title = f"The service at '{url}' does not answer ({type(error).__name__})."
        fix = "Check the address, and that it runs there: whichsense serve"
        raise ServiceError(0, {"title": title, "fix": fix}) from error
