"""One call of a tool: who calls, what can be told of progress, and the answer of the service."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mcp.server.context import ServerRequestContext
from mcp_types import CallToolRequestParams
from mcp_types.version import is_version_at_least

from whichsense.serve.access import Caller
from whichsense.serve.answering.dialogue import Reply, Wanted
from whichsense.serve.answering.running import Running
from whichsense.serve.events import Event, describe_stage
from whichsense.serve.mcp.errors import ToolFault
from whichsense.serve.service import Service
from whichsense.serve.state.conversations import KeptConversation
from whichsense.types import ServedCase

Context = ServerRequestContext[Any, Any]
Result = TypeVar("Result")
_MODERN = "2026-07-28"  # from here on, a question back is a result
_POLL = 0.1  # seconds between looks whether the models are there
_LONGEST_ID = 100


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that is being answered."""

    service: Service
    caller: Caller
    context: Context
    params: CallToolRequestParams
    _steps: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def is_stateless(self) -> bool:
        """Whether the client is asked by a result rather than by a request."""
        return is_version_at_least(self.context.protocol_version, _MODERN)

    async def wait_until_ready(self) -> None:
        """A client that starts the program asks before the models are loaded."""
        ends_at = time.monotonic() + self.service.settings.deadline
        if not self.service.engine.is_ready:
            await self.tell("Loading the models")
        while not self.service.engine.is_ready:
            if time.monotonic() > ends_at or self.service.failure is not None:
                raise ToolFault("The models are not loaded. Call again in a minute.")
            await asyncio.sleep(_POLL)

    async def begin(self, question: str) -> KeptConversation:
        """A new conversation about a question."""
        running = self.service.begin(question, self.caller.id, **self._options())
        return await self._kept(running)

    async def reply(self, kept: KeptConversation, said: Reply) -> KeptConversation:
        """The conversation with one more turn."""
        running = self.service.reply(kept, said, **self._options())
        return await self._kept(running)

    async def explain(self, question: str) -> ServedCase:
        wanted = Wanted(question, explain=True)
        running = self.service.ask(wanted, self.caller.id, **self._options())
        body = await self._finish(running)
        return await self.briefly(lambda: ServedCase.from_json(json.loads(body)))

    async def find(self, conversation_id: str) -> KeptConversation | None:
        """A conversation that this caller may see."""
        if len(conversation_id) > _LONGEST_ID:
            return None
        conversations = self.service.conversations
        return await self.briefly(
            lambda: conversations.find(conversation_id, self.caller.sees)
        )

    async def briefly(self, work: Callable[[], Result]) -> Result:
        return await self.service.briefly(work)

    async def tell(self, message: str) -> None:
        """Report progress, if the client wants to know of it."""
        session = self.context.session
        await session.report_progress(next(self._steps), message=message)

    def _options(self) -> dict[str, Any]:
        """Stages are published for clients that want to know of them."""
        meta: Mapping[str, Any] = self.context.meta or {}
        headers = getattr(self.context.request, "headers", None)
        return {"streamed": "progress_token" in meta, "parent": headers}

    async def _kept(self, running: Running) -> KeptConversation:
        body = await self._finish(running)
        return await self.briefly(
            lambda: KeptConversation.from_json(json.loads(body), running.owner)
        )

    async def _finish(self, running: Running) -> str:
        """The JSON of an answer. A client that goes away, or cancels, stops its work."""
        events = running.follow(heartbeat=self.service.settings.heartbeat)
        try:
            async with contextlib.aclosing(events) as stream:
                async for event in stream:
                    await self._report(event)
        finally:
            if not running.ended:
                self.service.answers.cancel(running)
        return running.result()

    async def _report(self, event: Event | None) -> None:
        if event is None:
            await self.tell("Still at work")
        elif event.name == "stage":
            stage = json.loads(event.data)
            message = describe_stage(stage["stage"], stage["counts"])
            if message:
                await self.tell(message)
