"""Server-sent events of an answer as it comes. The work stops when the client goes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from whichsense import records
from whichsense.serve.answering.running import Running
from whichsense.serve.openai.answers import STATUS
from whichsense.serve.openai.writing import Written
from whichsense.serve.problems import INTERNAL, Problem
from whichsense.serve.service import Service

DONE = b"data: [DONE]\n\n"
PING = KEEPALIVE_COMMENT


class AnswerStream(StreamingResponse):
    """A response that cancels its answer, if it has not ended, however it ends itself."""

    media_type = "text/event-stream"

    def __init__(
        self, body: AsyncIterator[bytes], service: Service, running: Running | None
    ) -> None:
        # nginx would hold events back.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(body, headers=headers)
        self._service = service
        self._running = running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._running is not None and not self._running.ended:
                self._service.answers.cancel(self._running)


async def progress(
    running: Running, heartbeat: float
) -> AsyncIterator[str | Written | Problem | None]:
    """What each stage has done, then the answer or a problem; None after so many seconds of silence."""
    async for event in running.follow(heartbeat=heartbeat):
        if event is None:
            yield None
        elif event.name == STATUS:
            yield str(json.loads(event.data))
        elif event.name == "done":
            yield records.decode(Written, json.loads(event.data))
        elif event.name == "problem":
            yield running.problem or INTERNAL


def as_event(value: dict[str, Any], name: str | None = None) -> bytes:
    """An event. Its JSON has no line breaks."""
    data = json.dumps(value, separators=(",", ":"))
    return format_sse_event(data_str=data, event=name)
