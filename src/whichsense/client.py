"""Clients of the service: the same records as in Python, over HTTP. Sync and async share every request.

with Client("http://localhost:8000", key="ws_…") as client:
    client.ask("Who played the Joker?").case.readings
    for event in client.stream("Who played the Joker?"):
        ...
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from urllib.parse import quote

from whichsense import types
from whichsense.conversation import Conversation, Turn
from whichsense.errors import WhichsenseError, require
from whichsense.types import Case, Hit, Method, Passage, ServedCase

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "AsyncClient",
    "Client",
    "PassageInContext",
    "ServedConversation",
    "ServiceError",
    "StreamEvent",
]


# What a client raises where the service refuses.


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


# Every request that a client makes, as a value: sync and async send the same ones.

Result = TypeVar("Result")
LOCAL = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class PassageInContext:
    """A passage with its neighbours in its document."""

    passage: Passage
    before: tuple[Passage, ...] = ()
    after: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class ServedConversation:
    """A conversation as a service gives it, and the id of the case that it is about."""

    conversation: Conversation
    case_id: str
    system: str = ""
    """The system that answers."""

    @property
    def id(self) -> str:
        return self.conversation.id

    @property
    def last(self) -> Turn:
        """The turn that says what to show."""
        return self.conversation.last

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ServedConversation:
        conversation = Conversation.from_json(value["conversation"])
        return cls(conversation, str(value["case_id"]), str(value.get("system", "")))


@dataclass(frozen=True, slots=True)
class ApiRequest(Generic[Result]):
    """A request, and what its answer is read as."""

    method: str
    path: str
    read: Callable[[Any], Result]
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def ask(question: str, options: Mapping[str, Any]) -> ApiRequest[ServedCase]:
    body = {"question": question, **options}
    return ApiRequest("POST", "/v1/ask", ServedCase.from_json, body)


def search(question: str, k: int, method: Method | None) -> ApiRequest[list[Hit]]:
    body = {"question": question, "k": k, "method": method}

    def read(value: Any) -> list[Hit]:
        return [types.decode(Hit, hit) for hit in value["hits"]]

    return ApiRequest("POST", "/v1/search", read, body)


def passage(passage_id: str) -> ApiRequest[PassageInContext]:
    def read(value: Any) -> PassageInContext:
        return types.decode(PassageInContext, value)

    return ApiRequest("GET", f"/v1/passages/{quote(passage_id)}", read)


def case(case_id: str) -> ApiRequest[Case | None]:
    def read(value: Any) -> Case | None:
        return None if value["case"] is None else Case.from_json(value["case"])

    return ApiRequest("GET", _path(case_id), read)


def delete(case_id: str) -> ApiRequest[None]:
    return ApiRequest("DELETE", _path(case_id), lambda value: None)


def feedback(
    case_id: str, verdict: str, about: str, correction: str
) -> ApiRequest[None]:
    body = {"verdict": verdict, "about": about, "correction": correction}
    return ApiRequest("POST", f"{_path(case_id)}/feedback", lambda value: None, body)


def begin(question: str, system: str) -> ApiRequest[ServedConversation]:
    body = {"question": question, "system": system}
    read = ServedConversation.from_json
    return ApiRequest("POST", "/v1/conversations", read, body)


def reply(
    conversation_id: str, body: Mapping[str, Any]
) -> ApiRequest[ServedConversation]:
    path = f"/v1/conversations/{quote(conversation_id, safe='')}/replies"
    return ApiRequest("POST", path, ServedConversation.from_json, body)


def conversation(conversation_id: str) -> ApiRequest[ServedConversation]:
    path = f"/v1/conversations/{quote(conversation_id, safe='')}"
    return ApiRequest("GET", path, ServedConversation.from_json)


def follow(case_id: str, after: str) -> ApiRequest[None]:
    headers = {"Accept": "text/event-stream"}
    if after:
        headers["Last-Event-ID"] = after
    return ApiRequest("GET", _path(case_id), lambda value: None, None, headers)


def _path(case_id: str) -> str:
    return f"/v1/cases/{quote(case_id, safe='')}"


def authorization(key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def read_response(call: ApiRequest[Result], response: httpx2.Response) -> Result:
    check_response(response)
    return call.read(response.json() if response.content else None)


def check_response(response: httpx2.Response) -> None:
    if response.is_success:
        return
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    wait = response.headers.get("Retry-After", "")
    raise ServiceError(response.status_code, problem, wait)


# Server-sent events, from lines to events.

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


# The client for ordinary code.


class Client:
    """Asks a service. Use it in a `with` block, or close it."""

    def __init__(
        self, url: str = LOCAL, key: str | None = None, *, timeout: float = 120.0
    ) -> None:
        http = require("httpx2", "client")
        self._http = http.Client(
            base_url=url, headers=authorization(key), timeout=timeout
        )

    def ask(self, question: str, **options: Any) -> ServedCase:
        """Every reading of a question; options: `clarify`, `explain`, `seconds`."""
        return self._send(ask(question, options))

    def stream(self, question: str, **options: Any) -> Iterator[StreamEvent]:
        """The stages of an answer as they end, then the answer. A stream that breaks off is rejoined."""
        return self._events(ask(question, {**options, "stream": True}))

    def follow(self, case_id: str, after: str = "") -> Iterator[StreamEvent]:
        """The events of an answer that runs or has ended."""
        return self._events(follow(case_id, after))

    def search(
        self, question: str, k: int = 10, method: Method | None = None
    ) -> list[Hit]:
        return self._send(search(question, k, method))

    def passage(self, passage_id: str) -> PassageInContext:
        return self._send(passage(passage_id))

    def case(self, case_id: str) -> Case | None:
        """A case by its id; None while it runs."""
        return self._send(case(case_id))

    def delete(self, case_id: str) -> None:
        """Cancel an answer that runs, delete one that has ended."""
        self._send(delete(case_id))

    def feedback(
        self, case_id: str, verdict: str, about: str = "", correction: str = ""
    ) -> None:
        """Say what you think of an answer: "up" or "down", what is wrong, and what is right."""
        self._send(feedback(case_id, verdict, about, correction))

    def begin(self, question: str, *, system: str = "") -> ServedConversation:
        """Begin a conversation. Its last turn says what to show: an answer, or a question back."""
        return self._send(begin(question, system))

    def reply(self, conversation_id: str, text: str) -> ServedConversation:
        """Reply in words: a choice among the options, or a new question."""
        return self._send(reply(conversation_id, {"text": text}))

    def choose(
        self, conversation_id: str, options: Sequence[str]
    ) -> ServedConversation:
        """Choose options by their ids; none: skip the question back."""
        body = {"options": list(options)}
        return self._send(reply(conversation_id, body))

    def explain(self, conversation_id: str) -> ServedConversation:
        """The whole story of the question that is talked about."""
        return self._send(reply(conversation_id, {"explain": True}))

    def conversation(self, conversation_id: str) -> ServedConversation:
        """Resume a conversation."""
        return self._send(conversation(conversation_id))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _send(self, call: ApiRequest[Result]) -> Result:
        with reaching(self._http.base_url):
            response = self._http.request(call.method, call.path, json=call.body)
        return read_response(call, response)

    def _events(self, call: ApiRequest[Any]) -> Iterator[StreamEvent]:
        http = require("httpx2", "client")
        events, case_id = EventLines(), ""
        for attempt in range(REJOINS + 1):
            try:
                with self._http.stream(
                    call.method, call.path, json=call.body, headers=dict(call.headers)
                ) as response:
                    if not response.is_success:
                        response.read()
                    check_response(response)
                    case_id = response.headers["Location"].rpartition("/")[2]
                    for line in response.iter_lines():
                        if event := events.feed(line):
                            yield event
            except http.TransportError:
                if not case_id or attempt == REJOINS:
                    with reaching(self._http.base_url):
                        raise
            if events.ended:
                return
            call = follow(case_id, events.last_id)


# The client for asyncio: the same calls, awaited.


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
        return await self._send(ask(question, options))

    def stream(self, question: str, **options: Any) -> AsyncIterator[StreamEvent]:
        return self._events(ask(question, {**options, "stream": True}))

    def follow(self, case_id: str, after: str = "") -> AsyncIterator[StreamEvent]:
        return self._events(follow(case_id, after))

    async def search(
        self, question: str, k: int = 10, method: Method | None = None
    ) -> list[Hit]:
        return await self._send(search(question, k, method))

    async def passage(self, passage_id: str) -> PassageInContext:
        return await self._send(passage(passage_id))

    async def case(self, case_id: str) -> Case | None:
        return await self._send(case(case_id))

    async def delete(self, case_id: str) -> None:
        await self._send(delete(case_id))

    async def feedback(
        self, case_id: str, verdict: str, about: str = "", correction: str = ""
    ) -> None:
        await self._send(feedback(case_id, verdict, about, correction))

    async def begin(self, question: str, *, system: str = "") -> ServedConversation:
        """Begin a conversation. Its last turn says what to show: an answer, or a question back."""
        return await self._send(begin(question, system))

    async def reply(self, conversation_id: str, text: str) -> ServedConversation:
        """Reply in words: a choice among the options, or a new question."""
        return await self._send(reply(conversation_id, {"text": text}))

    async def choose(
        self, conversation_id: str, options: Sequence[str]
    ) -> ServedConversation:
        """Choose options by their ids; none: skip the question back."""
        body = {"options": list(options)}
        return await self._send(reply(conversation_id, body))

    async def explain(self, conversation_id: str) -> ServedConversation:
        """The whole story of the question that is talked about."""
        return await self._send(reply(conversation_id, {"explain": True}))

    async def conversation(self, conversation_id: str) -> ServedConversation:
        """Resume a conversation."""
        return await self._send(conversation(conversation_id))

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
            call = follow(case_id, events.last_id)
