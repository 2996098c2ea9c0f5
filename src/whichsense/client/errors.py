"""What a client raises where the service refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whichsense.errors import WhichsenseError


class ServiceError(WhichsenseError):
    """The service refused. Its message has the fix; `retry_after` is how long to wait, where the service says so."""

    def __init__(self, status: int, problem: Mapping[str, Any], wait: str = "") -> None:
        title = problem.get("title", f"The service answered with {status}.")
        super().__init__(f"{title} {problem.get('fix', '')}".strip())
        self.status = status
        self.problem = problem
        self.retry_after = float(wait) if wait.isascii() and wait.isdigit() else None
