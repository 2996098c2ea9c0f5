"""The client for asyncio: the same calls, awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Self

from whichsense.client import calls
from whichsense.client.calls import (
    LOCAL,
    ApiRequest,
    PassageInContext,
    Result,
    ServedConversation,
    authorization,
    check_response,
    read_response,
)
from whichsense.client.errors import reaching
from whichsense.client.streams import REJOINS, EventLines, StreamEvent
from whichsense.errors import require
from whichsense.types import Case, Hit, Method, ServedCase


class AsyncClient:
    """The same for asyncio."""

    def __init__(
        self, url: str = LOCAL, key: str | None = None, *, timeout: float = 120.0
    ) -> None:
        http = require("httpx2", "client")
        self._http = http.AsyncClient(
            base_url=url, headers=authorization(key), timeout=timeout
        )

    async def ask(self, question: str, **options: Any) -> ServedCase:
        return await self._send(calls.ask(question, options))

    def stream(self, question: str, **options: Any) -> AsyncIterator[StreamEvent]:
        return self._events(calls.ask(question, {**options, "stream": True}))

    def follow(self, case_id: str, after: str = "") -> AsyncIterator[StreamEvent]:
        return self._events(calls.follow(case_id, after))

    async def search(
        self, question: str, k: int = 10, method: Method | None = None
    ) -> list[Hit]:
        return await self._send(calls.search(question, k, method))

    async def passage(self, passage_id: str) -> PassageInContext:
        return await self._send(calls.passage(passage_id))

    async def case(self, case_id: str) -> Case | None:
        return await self._send(calls.case(case_id))

    async def delete(self, case_id: str) -> None:
        await self._send(calls.delete(case_id))

    async def feedback(
        self, case_id: str, verdict: str, about: str = "", correction: str = ""
    ) -> None:
        await self._send(calls.feedback(case_id, verdict, about, correction))

    async def begin(self, question: str, *, system: str = "") -> ServedConversation:
        """Begin a conversation. Its last turn says what to show: an answer, or a question back."""
        return await self._send(calls.begin(question, system))

    async def reply(self, conversation_id: str, text: str) -> ServedConversation:
        """Reply in words: a choice among the options, or a new question."""
        return await self._send(calls.reply(conversation_id, {"text": text}))

    async def choose(
        self, conversation_id: str, options: Sequence[str]
    ) -> ServedConversation:
        """Choose options by their ids; none: skip the question back."""
        body = {"options": list(options)}
        return await self._send(calls.reply(conversation_id, body))

    async def explain(self, conversation_id: str) -> ServedConversation:
        """The whole story of the question that is talked about."""
        return await self._send(calls.reply(conversation_id, {"explain": True}))

    async def conversation(self, conversation_id: str) -> ServedConversation:
        """Resume a conversation."""
        return await self._send(calls.conversation(conversation_id))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _send(self, call: ApiRequest[Result]) -> Result:
        with reaching(self._http.base_url):
            response = await self._http.request(call.method, call.path, json=call.body)
        return read_response(call, response)

    async def _events(self, call: ApiRequest[Any]) -> AsyncIterator[StreamEvent]:
        http = require("httpx2", "client")
        events, case_id = EventLines(), ""
        for attempt in range(REJOINS + 1):
            try:
                async with self._http.stream(
                    call.method, call.path, json=call.body, headers=dict(call.headers)
                ) as response:
                    if not response.is_success:
                        await response.aread()
                    check_response(response)
                    case_id = response.headers["Location"].rpartition("/")[2]
                    async for line in response.aiter_lines():
                        if event := events.feed(line):
                            yield event
            except http.TransportError:
                if not case_id or attempt == REJOINS:
                    with reaching(self._http.base_url):
                        raise
            if events.ended:
                return
            call = calls.follow(case_id, events.last_id)
