"""The client for ordinary code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
        return self._send(calls.ask(question, options))

    def stream(self, question: str, **options: Any) -> Iterator[StreamEvent]:
        """The stages of an answer as they end, then the answer. A stream that breaks off is rejoined."""
        return self._events(calls.ask(question, {**options, "stream": True}))

    def follow(self, case_id: str, after: str = "") -> Iterator[StreamEvent]:
        """The events of an answer that runs or has ended."""
        return self._events(calls.follow(case_id, after))

    def search(
        self, question: str, k: int = 10, method: Method | None = None
    ) -> list[Hit]:
        return self._send(calls.search(question, k, method))

    def passage(self, passage_id: str) -> PassageInContext:
        return self._send(calls.passage(passage_id))

    def case(self, case_id: str) -> Case | None:
        """A case by its id; None while it runs."""
        return self._send(calls.case(case_id))

    def delete(self, case_id: str) -> None:
        """Cancel an answer that runs, delete one that has ended."""
        self._send(calls.delete(case_id))

    def feedback(
        self, case_id: str, verdict: str, about: str = "", correction: str = ""
    ) -> None:
        """Say what you think of an answer: "up" or "down", what is wrong, and what is right."""
        self._send(calls.feedback(case_id, verdict, about, correction))

    def begin(self, question: str, *, system: str = "") -> ServedConversation:
        """Begin a conversation. Its last turn says what to show: an answer, or a question back."""
        return self._send(calls.begin(question, system))

    def reply(self, conversation_id: str, text: str) -> ServedConversation:
        """Reply in words: a choice among the options, or a new question."""
        return self._send(calls.reply(conversation_id, {"text": text}))

    def choose(
        self, conversation_id: str, options: Sequence[str]
    ) -> ServedConversation:
        """Choose options by their ids; none: skip the question back."""
        body = {"options": list(options)}
        return self._send(calls.reply(conversation_id, body))

    def explain(self, conversation_id: str) -> ServedConversation:
        """The whole story of the question that is talked about."""
        return self._send(calls.reply(conversation_id, {"explain": True}))

    def conversation(self, conversation_id: str) -> ServedConversation:
        """Resume a conversation."""
        return self._send(calls.conversation(conversation_id))

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
            call = calls.follow(case_id, events.last_id)
