"""POST /v1/responses."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from whichsense.serve.openai.entry import RESPONSE, Entry
from whichsense.serve.openai.history import count_tokens
from whichsense.serve.openai.requests import ResponsesRequest
from whichsense.serve.openai.shapes import STREAM, ResponseObject, errors
from whichsense.serve.openai.streams import PING, AnswerStream, as_event
from whichsense.serve.openai.writing import Written
from whichsense.serve.problems import Problem
from whichsense.serve.routes.ask import Asks, service_of

router = APIRouter(prefix="/v1", tags=["OpenAI-compatible"])
_PLACE = {"output_index": 0, "content_index": 0}


@router.post(
    "/responses",
    response_model=ResponseObject,
    responses={200: {"content": STREAM}, **errors(404, 410)},
)
async def respond(body: ResponsesRequest, request: Request, caller: Asks) -> Response:
    """Answer the last message of the input.

    An ambiguous question is answered with a question back, whose options are numbered. The next request chooses: with
    `previous_response_id`, or with the whole conversation as its input. Passages are cited as `url_citation`.
    """
    service = service_of(request)
    entry = await Entry.of(service, request, body, caller)
    response = _Response(entry, body)
    if body.stream:
        return AnswerStream(response.stream(), service, entry.running)
    return JSONResponse(response.completed(await entry.result()))


class _Response:
    """One response: its events, numbered from 0."""

    def __init__(self, entry: Entry, body: ResponsesRequest) -> None:
        self._entry = entry
        self._body = body
        self._number = 0
        self._id = f"{RESPONSE}{entry.id}"
        self._message_id = f"msg_{entry.id}"
        self._created = int(time.time())

    def completed(self, written: Written) -> dict[str, Any]:
        tokens = self._entry.said.tokens, count_tokens(written.text)
        usage = {
            "input_tokens": tokens[0],
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": tokens[1],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(tokens),
        }
        output = [self._message("completed", [self._part(written)])]
        return self._body_of("completed", output=output, usage=usage)

    async def stream(self) -> AsyncIterator[bytes]:
        yield self._event("created", response=self._body_of("in_progress"))
        yield self._event("in_progress", response=self._body_of("in_progress"))
        async for item in self._entry.progress():
            if item is None:
                yield PING
            elif isinstance(item, Problem):
                yield self._event("failed", response=self._failed(item))
            elif isinstance(item, Written):
                for event in self._events(item):
                    yield event

    def _events(self, written: Written) -> Iterator[bytes]:
        """One message with one part: the text line by line, then its citations."""
        item = self._message("in_progress", [])
        yield self._event("output_item.added", output_index=0, item=item)
        empty = self._part(Written(""))
        yield self._text_event("content_part.added", part=empty)
        for line in written.text.splitlines(keepends=True):
            yield self._text_event("output_text.delta", delta=line, logprobs=[])
        for number, citation in enumerate(citations_of(written)):
            yield self._text_event(
                "output_text.annotation.added",
                annotation_index=number,
                annotation=citation,
            )
        yield self._text_event("output_text.done", text=written.text, logprobs=[])
        part = self._part(written)
        yield self._text_event("content_part.done", part=part)
        item = self._message("completed", [part])
        yield self._event("output_item.done", output_index=0, item=item)
        yield self._event("completed", response=self.completed(written))

    def _text_event(self, name: str, **fields: Any) -> bytes:
        return self._event(name, item_id=self._message_id, **_PLACE, **fields)

    def _event(self, name: str, **fields: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        name = f"response.{name}"
        event = {"type": name, "sequence_number": number, **fields}
        return as_event(event, name)

    def _body_of(self, status: str, **fields: Any) -> dict[str, Any]:
        table = {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": self._body.model,
            "output": [],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": self._body.metadata or {},
            "parallel_tool_calls": False,
            "previous_response_id": self._body.previous_response_id,
            "store": self._body.store is not False,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
            "usage": None,
        }
        return table | fields

    def _failed(self, problem: Problem) -> dict[str, Any]:
        code = "rate_limit_exceeded" if problem.status == 429 else "server_error"
        message = problem.openai_body()["error"]["message"]
        return self._body_of("failed", error={"code": code, "message": message})

    def _message(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self._message_id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    @staticmethod
    def _part(written: Written) -> dict[str, Any]:
        return {
            "type": "output_text",
            "text": written.text,
            "annotations": citations_of(written),
            "logprobs": [],
        }


def citations_of(written: Written) -> list[dict[str, Any]]:
    """Each number in brackets as a citation; indexes count characters of the text."""
    cited = []
    for citation in written.citations:
        cited.append(
            {
                "type": "url_citation",
                "start_index": citation.start,
                "end_index": citation.end,
                "title": citation.title,
                "url": citation.url,
            }
        )
    return cited
