"""From a request to its answer on the way: the model, the message, the conversation, a place in the queue."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from fastapi import Request

from whichsense import records
from whichsense.serve.access import Caller
from whichsense.serve.answering.queue import new_id
from whichsense.serve.answering.running import Running
from whichsense.serve.openai.answers import Asked, make_answer
from whichsense.serve.openai.history import (
    REPLAYED,
    USER,
    Found,
    Said,
    find_conversation,
)
from whichsense.serve.openai.models import find_model
from whichsense.serve.openai.open_webui import is_open_webui
from whichsense.serve.openai.requests import ChatRequest, ResponsesRequest, check_text
from whichsense.serve.openai.streams import progress
from whichsense.serve.openai.tasks import answer_task, question_in
from whichsense.serve.openai.writing import Written
from whichsense.serve.problems import Problem, Refused
from whichsense.serve.service import Service

Body = ChatRequest | ResponsesRequest
RESPONSE = "resp_"
"""Before the id of a response."""


class Entry:
    """One request: refused as it is made, or with an answer on its way, or with one that needs no work."""

    def __init__(self, service: Service, request: Request, said: Said) -> None:
        self.service = service
        self.request = request
        self.said = said
        self.is_open_webui = is_open_webui(request.headers)
        self.running: Running | None = None
        self._ready: Written | None = None
        self._unkept = new_id()

    @property
    def id(self) -> str:
        """Of the answer; what was ready at once gets one that nothing can follow."""
        return self.running.id if self.running else self._unkept

    @classmethod
    async def of(
        cls, service: Service, request: Request, body: Body, caller: Caller
    ) -> Entry:
        """Take a request in, or refuse it."""
        entry = cls(service, request, body.said())
        await entry._begin(body, caller)
        return entry

    async def _begin(self, body: Body, caller: Caller) -> None:
        model = find_model(body.model, self.service.served.pipeline)
        task = answer_task(self.said.text)
        if task is not None:
            self._ready = Written(task)
            return
        asked = Asked(
            text=check_text(question_in(self.said.text), body.said_in),
            found=await self._find(body, caller),
            model=model,
            base=str(self.request.base_url).rstrip("/"),
            kept=body.store is not False,
            has_id=isinstance(body, ResponsesRequest),
            in_open_webui=self.is_open_webui and bool(body.stream),
        )
        self.running = self.service.submit(
            lambda watched, running: make_answer(self.service, asked, watched, running),
            caller.id,
            threshold=body.threshold,
            parent=self.request.headers,
        )

    async def _find(self, body: Body, caller: Caller) -> Found:
        """The conversation, by the id of its last response or by the messages before."""
        store = self.service.conversations
        history = self.said.history
        previous = getattr(body, "previous_response_id", None)
        if previous is None:
            return await self.service.briefly(
                lambda: find_conversation(store, caller.id, history)
            )
        identifier = previous.removeprefix(RESPONSE)
        kept = await self.service.briefly(lambda: store.find(identifier, caller.id))
        if kept is None:
            raise Refused(_no_previous(previous))
        replayed = [message.text for message in history if message.role == USER]
        return Found("", kept, tuple(replayed[-REPLAYED:]))

    async def result(self) -> Written:
        """The answer, when it is there. A client that goes away stops its work."""
        if self._ready is not None:
            return self._ready
        assert self.running is not None
        body = await self.service.result(self.running, self.request)
        return records.decode(Written, json.loads(body))

    async def progress(self) -> AsyncIterator[str | Written | Problem | None]:
        """What each stage has done, then the answer or a problem; None is a heartbeat."""
        if self._ready is not None:
            yield self._ready
            return
        assert self.running is not None
        async for item in progress(self.running, self.service.settings.heartbeat):
            yield item


def _no_previous(previous: str) -> Problem:
    title = f"There is no response '{previous[:80]}' that can be followed."
    fix = "Send the whole conversation as input instead; a response with store=false cannot be followed by its id."
    errors = [{"where": "body.previous_response_id", "problem": "not found"}]
    return Problem(400, "previous-response-not-found", title, fix, errors)
