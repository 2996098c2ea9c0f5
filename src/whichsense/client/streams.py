"""Server-sent events, from lines to events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whichsense.client.errors import ServiceError
from whichsense.types import ServedCase

REJOINS = 3
"""How often a stream that breaks off is rejoined."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream: "stage", then "done" with the answer."""

    id: str
    name: str
    data: Mapping[str, Any]

    @property
    def answer(self) -> ServedCase:
        """The answer of the event "done"."""
        return ServedCase.from_json(self.data)


class EventLines:
    """Puts the lines of a stream together to events."""

    def __init__(self) -> None:
        self.last_id = ""
        self.ended = False
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> StreamEvent | None:
        """The event that a line completes. A problem is raised."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        self.last_id = fields.get("id", "")
        event = StreamEvent(
            self.last_id, fields.get("event", ""), json.loads(fields["data"])
        )
        self.ended = event.name in ("done", "problem")
        if event.name == "problem":
            raise ServiceError(int(event.data.get("status", 500)), event.data)
        return event
