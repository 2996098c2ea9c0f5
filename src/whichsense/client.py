"""Clients of the service: the same records as in Python, over HTTP. Sync and async share every request.

with Client("http://localhost:8000", key="ws_…") as client:
    client.ask("Who played the Joker?").case.readings
    for event in client.stream("Who played the Joker?"):
        ...
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, overload
from urllib.parse import quote

from whichsense import types
from whichsense.conversation import ServedConversation
from whichsense.errors import WhichsenseError, require
from whichsense.types import Case, Hit, Method, PassageInContext, ServedCase

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
Parameters = ParamSpec("Parameters")
LOCAL = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class ApiRequest(Generic[Result]):
    """A request, and what its answer is read as."""

    method: str
    path: str
    read: Callable[[Any], Result]
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The request as both of httpx's clients take it."""
        given: dict[str, Any] = {"headers": dict(self.headers), "params": self.query}
        if self.content is not None:
            return given | {"content": self.content}
        return given | ({} if self.body is None else {"json": self.body})


def ask(question: str, **options: Any) -> ApiRequest[ServedCase]:
    """Every reading of a question; options: `clarify`, `explain`, `seconds`, `threshold`, `system`, `index`."""
    body = {"question": question, **options}
    return ApiRequest("POST", "/v1/ask", ServedCase.from_json, body)


def search(
    question: str, k: int = 10, method: Method | None = None, *, index: str = ""
) -> ApiRequest[list[Hit]]:
    """The passages that may answer a question, best first."""
    body = {"question": question, "k": k, "method": method, "index": index}

    def read(value: Any) -> list[Hit]:
        return [types.decode(Hit, hit) for hit in value["hits"]]

    return ApiRequest("POST", "/v1/search", read, body)


def passage(passage_id: str, *, index: str = "") -> ApiRequest[PassageInContext]:
    """A passage with its neighbours."""

    path = f"/v1/passages/{quote(passage_id)}"
    read = functools.partial(types.decode, PassageInContext)
    return ApiRequest("GET", path, read, query=_of(index))


def info() -> ApiRequest[dict[str, Any]]:
    """What is served, and what it can do."""
    return ApiRequest("GET", "/v1/info", dict)


def indexes() -> ApiRequest[list[dict[str, Any]]]:
    """The indexes that may be asked, the default first."""
    return ApiRequest("GET", "/v1/indexes", lambda value: list(value["indexes"]))


def case(case_id: str) -> ApiRequest[Case | None]:
    """A case by its id; None while it runs."""

    def read(value: Any) -> Case | None:
        return None if value["case"] is None else Case.from_json(value["case"])

    return ApiRequest("GET", _path(case_id), read)


def cases(**filters: Any) -> ApiRequest[list[dict[str, Any]]]:
    """What was asked, newest first; filters: `limit`, `before`, `kind`, `containing`, `index`."""
    return ApiRequest("GET", "/v1/cases", lambda value: list(value["cases"]), query=filters)


def delete(case_id: str) -> ApiRequest[None]:
    """Cancel an answer that runs, delete one that has ended."""
    return ApiRequest("DELETE", _path(case_id), _nothing)


def feedback(case_id: str, verdict: str, about: str = "", correction: str = "") -> ApiRequest[None]:
    """Say what you think of an answer: "up" or "down", what is wrong, and what is right."""
    body = {"verdict": verdict, "about": about, "correction": correction}
    return ApiRequest("POST", f"{_path(case_id)}/feedback", _nothing, body)


def begin(question: str, **options: Any) -> ApiRequest[ServedConversation]:
    """Begin a conversation; options: `seconds`, `threshold`, `system`, `index`. Its last turn says what to show: an
    answer, or a question back."""
    body = {"question": question, **options}
    read = ServedConversation.from_json
    return ApiRequest("POST", "/v1/conversations", read, body)


def reply(conversation_id: str, text: str) -> ApiRequest[ServedConversation]:
    """Reply in words: a choice among the options, or a new question."""
    return _reply(conversation_id, {"text": text})


def choose(conversation_id: str, options: Sequence[str]) -> ApiRequest[ServedConversation]:
    """Choose options by their ids; none: skip the question back."""
    return _reply(conversation_id, {"options": list(options)})


def explain(conversation_id: str) -> ApiRequest[ServedConversation]:
    """The whole story of the question that is talked about."""
    return _reply(conversation_id, {"explain": True})


def _reply(conversation_id: str, body: Mapping[str, Any]) -> ApiRequest[ServedConversation]:
    path = f"/v1/conversations/{quote(conversation_id, safe='')}/replies"
    return ApiRequest("POST", path, ServedConversation.from_json, body)


def conversation(conversation_id: str) -> ApiRequest[ServedConversation]:
    """Resume a conversation."""
    path = f"/v1/conversations/{quote(conversation_id, safe='')}"
    return ApiRequest("GET", path, ServedConversation.from_json)


def upload(file: str | Path, name: str = "", *, index: str = "") -> ApiRequest[dict[str, Any]]:
    """Add a file to an index, in the place of an earlier one of its name: what became of it."""
    path = _source(name or Path(file).name)
    content = Path(file).read_bytes()
    return ApiRequest("PUT", path, dict, query=_of(index), content=content)


def sources(*, index: str = "") -> ApiRequest[list[dict[str, Any]]]:
    """What is indexed, source by source, the latest first."""
    path = "/v1/corpus/sources"
    return ApiRequest("GET", path, lambda value: list(value["sources"]), query=_of(index))


def delete_source(name: str, *, index: str = "") -> ApiRequest[dict[str, Any]]:
    """Delete the passages of a source."""
    return ApiRequest("DELETE", _source(name), dict, query=_of(index))


def _events_of(case_id: str, after: str = "") -> ApiRequest[None]:
    headers = {"Accept": "text/event-stream"}
    if after:
        headers["Last-Event-ID"] = after
    return ApiRequest("GET", _path(case_id), _nothing, headers=headers)


def _streamed(question: str, options: Mapping[str, Any]) -> ApiRequest[Any]:
    return ask(question, **options, stream=True)


def _nothing(value: Any) -> None:
    """The answer of a request that has none."""


def _of(index: str) -> dict[str, str]:
    return {"index": index} if index else {}


def _path(case_id: str) -> str:
    return f"/v1/cases/{quote(case_id, safe='')}"


def _source(name: str) -> str:
    return f"/v1/corpus/sources/{quote(name)}"


def _read_response(call: ApiRequest[Result], response: httpx2.Response) -> Result:
    _check_response(response)
    return call.read(response.json() if response.content else None)


def _check_response(response: httpx2.Response) -> None:
    if response.is_success:
        return
    try:
        problem = response.json()
    except ValueError:
        problem = {}
    wait = response.headers.get("Retry-After", "")
    raise ServiceError(response.status_code, problem, wait)


# The same calls are methods of both clients: one sends and returns, the other sends and awaits.


class _Method(Generic[Parameters, Result]):
    """A request as a method that sends it."""

    def __init__(self, make: Callable[Parameters, ApiRequest[Result]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...

    @overload
    def __get__(self, client: Client, owner: type) -> Callable[Parameters, Result]: ...

    @overload
    def __get__(
        self, client: AsyncClient, owner: type
    ) -> Callable[Parameters, Coroutine[Any, Any, Result]]: ...

    def __get__(self, client: Client | AsyncClient | None, owner: type) -> Any:
        if client is None:
            return self

        @functools.wraps(self._make)
        def send(*arguments: Parameters.args, **options: Parameters.kwargs) -> Any:
            return client._send(self._make(*arguments, **options))

        return send


class _Methods:
    """What can be asked of a service."""

    ask = _Method(ask)
    search = _Method(search)
    passage = _Method(passage)
    info = _Method(info)
    indexes = _Method(indexes)
    case = _Method(case)
    cases = _Method(cases)
    delete = _Method(delete)
    feedback = _Method(feedback)
    begin = _Method(begin)
    reply = _Method(reply)
    choose = _Method(choose)
    explain = _Method(explain)
    conversation = _Method(conversation)
    upload = _Method(upload)
    sources = _Method(sources)
    delete_source = _Method(delete_source)


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
        event = StreamEvent(self.last_id, fields.get("event", ""), json.loads(fields["data"]))
        self.ended = event.name in ("done", "problem")
        if event.name == "problem":
            raise ServiceError(int(event.data.get("status", 500)), event.data)
        return event


class _Following:
    """A stream on its way: where it is rejoined, and whether that is worth it."""

    def __init__(self, call: ApiRequest[Any], url: object) -> None:
        self.call = call
        self.lines = EventLines()
        self._url = url
        self._case_id = ""
        self._broken = 0

    def begin(self, response: httpx2.Response) -> None:
        _check_response(response)
        self._case_id = response.headers["Location"].rpartition("/")[2]

    def rejoin(self, error: Exception | None) -> None:
        """Go on after a break; raise it where there is nothing to rejoin, or after too many."""
        self._broken += 1
        if error is not None and (not self._case_id or self._broken > REJOINS):
            with reaching(self._url):
                raise error
        self.call = _events_of(self._case_id, self.lines.last_id)

    @property
    def goes_on(self) -> bool:
        return not self.lines.ended and self._broken <= REJOINS


def _connection(kind: str, url: str, key: str | None, timeout: float) -> Any:
    """One of httpx's clients."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    make = getattr(require("httpx2", "client"), kind)
    return make(base_url=url, headers=headers, timeout=timeout)


class Client(_Methods):
    """Asks a service. Use it in a `with` block, or close it."""

    def __init__(self, url: str = LOCAL, key: str | None = None, *, timeout: float = 120.0) -> None:
        self._http = _connection("Client", url, key, timeout)

    def stream(self, question: str, **options: Any) -> Iterator[StreamEvent]:
        """The stages of an answer as they end, then the answer. A stream that breaks off is rejoined."""
        return self._events(_streamed(question, options))

    def follow(self, case_id: str, after: str = "") -> Iterator[StreamEvent]:
        """The events of an answer that runs or has ended."""
        return self._events(_events_of(case_id, after))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _send(self, call: ApiRequest[Result]) -> Result:
        with reaching(self._http.base_url):
            response = self._http.request(call.method, call.path, **call.options)
        return _read_response(call, response)

    def _events(self, call: ApiRequest[Any]) -> Iterator[StreamEvent]:
        http = require("httpx2", "client")
        following = _Following(call, self._http.base_url)
        while following.goes_on:
            broken, call = None, following.call
            try:
                with self._http.stream(call.method, call.path, **call.options) as response:
                    if not response.is_success:
                        response.read()
                    following.begin(response)
                    for line in response.iter_lines():
                        if event := following.lines.feed(line):
                            yield event
            except http.TransportError as error:
                broken = error
            following.rejoin(broken)


class AsyncClient(_Methods):
    """The same for asyncio: every method is awaited."""

    def __init__(self, url: str = LOCAL, key: str | None = None, *, timeout: float = 120.0) -> None:
        self._http = _connection("AsyncClient", url, key, timeout)

    def stream(self, question: str, **options: Any) -> AsyncIterator[StreamEvent]:
        """The stages of an answer as they end, then the answer. A stream that breaks off is rejoined."""
        return self._events(_streamed(question, options))

    def follow(self, case_id: str, after: str = "") -> AsyncIterator[StreamEvent]:
        """The events of an answer that runs or has ended."""
        return self._events(_events_of(case_id, after))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _send(self, call: ApiRequest[Result]) -> Result:
        with reaching(self._http.base_url):
            response = await self._http.request(call.method, call.path, **call.options)
        return _read_response(call, response)

    async def _events(self, call: ApiRequest[Any]) -> AsyncIterator[StreamEvent]:
        http = require("httpx2", "client")
        following = _Following(call, self._http.base_url)
        while following.goes_on:
            broken, call = None, following.call
            try:
                async with self._http.stream(call.method, call.path, **call.options) as response:
                    if not response.is_success:
                        await response.aread()
                    following.begin(response)
                    async for line in response.aiter_lines():
                        if event := following.lines.feed(line):
                            yield event
            except http.TransportError as error:
                broken = error
            following.rejoin(broken)
