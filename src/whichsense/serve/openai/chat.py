"""POST /v1/chat/completions."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from whichsense.serve.openai.entry import Entry
from whichsense.serve.openai.history import count_tokens
from whichsense.serve.openai.open_webui import events_of, status_event
from whichsense.serve.openai.requests import ChatRequest
from whichsense.serve.openai.shapes import STREAM, ChatCompletion, errors
from whichsense.serve.openai.streams import DONE, PING, AnswerStream, as_event
from whichsense.serve.openai.writing import Written
from whichsense.serve.problems import Problem
from whichsense.serve.routes.ask import Asks, service_of

router = APIRouter(prefix="/v1", tags=["OpenAI-compatible"])


@router.post(
    "/chat/completions",
    response_model=ChatCompletion,
    responses={200: {"content": STREAM}, **errors(404, 410)},
)
async def complete(body: ChatRequest, request: Request, caller: Asks) -> Response:
    """Answer the last message of a chat.

    An ambiguous question is answered with a question back, whose options are numbered; the next message chooses. The
    messages before the last one tell which conversation it is. Passages are cited as `url_citation`.
    """
    service = service_of(request)
    entry = await Entry.of(service, request, body, caller)
    chat = _Chat(entry, body)
    if body.stream:
        return AnswerStream(chat.stream(), service, entry.running)
    return JSONResponse(chat.completion(await entry.result()))


class _Chat:
    """One completion: what all of its chunks have in common."""

    def __init__(self, entry: Entry, body: ChatRequest) -> None:
        self._entry = entry
        self._body = body
        self._counts = bool(body.stream_options and body.stream_options.include_usage)
        self._head = {
            "id": f"chatcmpl-{entry.id}",
            "created": int(time.time()),
            "model": body.model,
        }

    def completion(self, written: Written) -> dict[str, Any]:
        message = {
            "role": "assistant",
            "content": written.text,
            "refusal": None,
            "annotations": citations_of(written),
        }
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": "stop",
        }
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._usage(written),
        }

    async def stream(self) -> AsyncIterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})
        async for item in self._entry.progress():
            if item is None:
                yield PING
            elif isinstance(item, str):
                yield self._event(status_event(item))
            elif isinstance(item, Problem):
                yield as_event(item.openai_body())
            else:
                for chunk in self._chunks(item):
                    yield chunk
                yield DONE

    def _chunks(self, written: Written) -> Iterator[bytes]:
        """The text line by line, its citations, why it ends."""
        if self._entry.is_open_webui:
            # Sources come before the text that names their numbers. Annotations would double them.
            for event in events_of(written):
                yield self._event(event)
        for line in written.text.splitlines(keepends=True):
            yield self._chunk({"content": line})
        if written.citations and not self._entry.is_open_webui:
            yield self._chunk({"annotations": citations_of(written)})
        yield self._chunk({}, "stop")
        if self._counts:
            yield self._part(choices=[], usage=self._usage(written))

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": None,
            "finish_reason": finish_reason,
        }
        usage = {"usage": None} if self._counts else {}
        return self._part(choices=[choice], **usage)

    def _event(self, event: dict[str, Any]) -> bytes:
        return self._part(choices=[], event=event)

    def _part(self, **fields: Any) -> bytes:
        return as_event({**self._head, "object": "chat.completion.chunk", **fields})

    def _usage(self, written: Written) -> dict[str, int]:
        prompt, completion = self._entry.said.tokens, count_tokens(written.text)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }


def citations_of(written: Written) -> list[dict[str, Any]]:
    """Each number in brackets as a citation; indexes count characters of the content."""
    cited = []
    for citation in written.citations:
        place = {
            "start_index": citation.start,
            "end_index": citation.end,
            "title": citation.title,
            "url": citation.url,
        }
        cited.append({"type": "url_citation", "url_citation": place})
    return cited
