"""Every request that a client makes, as a value: sync and async send the same ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

from whichsense import records
from whichsense.client.errors import ServiceError
from whichsense.conversation import Conversation, Turn
from whichsense.types import Case, Hit, Method, Passage, ServedCase

if TYPE_CHECKING:
    import httpx2

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
        return [records.decode(Hit, hit) for hit in value["hits"]]

    return ApiRequest("POST", "/v1/search", read, body)


def passage(passage_id: str) -> ApiRequest[PassageInContext]:
    def read(value: Any) -> PassageInContext:
        return records.decode(PassageInContext, value)

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
