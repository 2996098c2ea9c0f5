"""The OpenAI-compatible face: chat completions, responses and models, from a request to its answer."""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Path, Request
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import BeforeValidator, ConfigDict, Field
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from whichsense import conversation as talk
from whichsense import types
from whichsense.conversation import AskingPolicy, Conversation, ServedConversation
from whichsense.errors import BadInput
from whichsense.index.search import check_question
from whichsense.jobs.limits import current_limits
from whichsense.pipeline import Pipeline
from whichsense.serve.answering import Running, Served, check_cancelled, new_id
from whichsense.serve.events import EventStream, describe_stage, dump, stage_counts
from whichsense.serve.openai_turns import (
    ASSISTANT,
    REPLAYED,
    USER,
    Found,
    Message,
    Page,
    Said,
    Written,
    answer_task,
    count_tokens,
    described,
    events_of,
    find_conversation,
    is_open_webui,
    next_digest,
    question_in,
    status_event,
    write_turn,
)
from whichsense.serve.problems import INTERNAL, Problem, Refused
from whichsense.serve.schemas import LONGEST_QUESTION, IndexName, Model, Threshold, example, whole
from whichsense.serve.service import Asks, Caller, Service, Serving
from whichsense.serve.state import View
from whichsense.types import Case

# The models that clients choose among, and GET /v1/models: three manners of answering, over each index.

models_router = APIRouter(prefix="/v1/models", tags=["OpenAI-compatible"])


@dataclass(frozen=True, slots=True)
class Manner:
    """A model's name, and how it answers."""

    id: str
    description: str
    asks: bool = False
    """Whether an ambiguous question is answered with a question back."""
    explains: bool = False
    """Whether a question is answered with one long, cited text."""


MANNERS = (
    Manner("whichsense", "Asks back which reading is meant.", asks=True),
    Manner("whichsense-readings", "Lists every reading; never asks back."),
    Manner(
        "whichsense-explain",
        "Tells the whole story, with a citation on every sentence.",
        explains=True,
    ),
)


_AT = "@"  # before the name of an index, in the name of a model


@dataclass(frozen=True, slots=True)
class Offer:
    """A manner of answering over an index, under the name by which clients choose it."""

    name: str
    manner: Manner
    served: Served

    def to_json(self) -> dict[str, Any]:
        built = datetime.datetime.fromisoformat(self.served.index.manifest.created)
        return {
            "id": self.name,
            "object": "model",
            "created": int(built.timestamp()),
            "owned_by": "whichsense",
            "description": self.manner.description,
        }


def offers(service: Service, caller: Caller) -> list[Offer]:
    """What the caller may choose: the models that a pipeline has the stages for, over the first index by their own
    names, over each further one as `whichsense@NAME`."""
    found = []
    for number, engine in enumerate(service.engines.usable(caller.indexes)):
        served = engine.served
        for manner in MANNERS:
            if not manner.explains or served.pipeline.summarizer is not None:
                name = f"{manner.id}{_AT}{engine.name}" if number else manner.id
                found.append(Offer(name, manner, served))
    return found


def find_offer(name: str, index: str, service: Service, caller: Caller) -> Offer:
    """The model of this name, over an index if one is named; refused where there is none."""
    first = service.engine(caller).name
    model, _, place = name.partition(_AT)
    place = service.engine(caller, index).name if index else place or first
    listed = offers(service, caller)
    for offer in listed:
        if (offer.manner.id, offer.served.name) == (model, place):
            return offer
    names = ", ".join(offer.name for offer in listed)
    title = f"There is no model '{name[:100]}' here."
    errors = [{"where": "body.model", "problem": "not one of the models"}]
    problem = Problem(404, "model-not-found", title, f"Use one of: {names}.", errors)
    raise Refused(problem)


@models_router.get("", **described("models/list"))
async def list_models(service: Serving, caller: Asks) -> Response:
    """The models: manners in which an index is asked."""
    listed = [offer.to_json() for offer in offers(service, caller)]
    return JSONResponse({"object": "list", "data": listed})


@models_router.get("/{model_id}", **described("models/object", 404))
async def read_model(
    model_id: Annotated[str, Path(max_length=200)], service: Serving, caller: Asks
) -> Response:
    """One model."""
    return JSONResponse(find_offer(model_id, "", service, caller).to_json())


# Bodies of requests. A field that means nothing here is ignored; one that would change the form is
# refused.

_TEXT = ("text", "input_text", "output_text")
_MOST_MESSAGES = 2_000


class _Body(Model):
    """Fields that are not named are ignored."""

    model_config = ConfigDict(strict=True)


class Part(_Body):
    """A part of a message."""

    type: str
    text: str | None = None


Content = str | list[Part] | None


class ChatMessage(_Body):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = None


class InputItem(_Body):
    """An item of a response's input; items other than messages are ignored."""

    type: str | None = None
    role: str | None = None
    content: Content = None


class Format(_Body):
    type: str


class TextSettings(_Body):
    format: Format | None = None


class StreamOptions(_Body):
    include_usage: bool | None = None


class _Asking(_Body):
    """What both paths read."""

    model: str
    stream: bool | None = None
    threshold: Threshold = None
    index: IndexName = ""
    tool_choice: Any = None


class ChatRequest(_Asking):
    """The body of a chat completion."""

    model_config = example(
        model="whichsense", messages=[{"role": "user", "content": "Who played the Joker?"}]
    )

    said_in: ClassVar[str] = "messages"
    messages: list[ChatMessage] = Field(min_length=1, max_length=_MOST_MESSAGES)
    stream_options: StreamOptions | None = None
    store: bool | None = None
    """false: the conversation is not kept, but held again."""
    n: Annotated[int | None, BeforeValidator(whole)] = None
    """Only 1: every choice would be the same."""
    response_format: Format | None = None
    modalities: list[str] | None = None

    def said(self) -> Said:
        """The newest message of the person, and what was said before."""
        _refuse_unless("n", self.n in (None, 1), _ONE)
        _refuse_unless("response_format", _is_text(self.response_format), _JSON)
        _check_tools(self.tool_choice)
        written = self.modalities is None or "text" in self.modalities
        _refuse_unless("modalities", written, "Answers are text. Ask for text.")
        return _said(self.messages, self.said_in)


class ResponsesRequest(_Asking):
    """The body of a response."""

    model_config = example(model="whichsense", input="Who played the Joker?")

    said_in: ClassVar[str] = "input"
    input: str | Annotated[list[InputItem], Field(max_length=_MOST_MESSAGES)]
    instructions: Any = None
    """Accepted, and not followed."""
    previous_response_id: str | None = Field(None, max_length=100)
    store: bool | None = None
    """false: nothing can follow it by id."""
    text: TextSettings | None = None
    metadata: dict[str, str] | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None

    def said(self) -> Said:
        """The newest message of the person, and what was said before."""
        form = self.text.format if self.text else None
        _refuse_unless("text.format", _is_text(form), _JSON)
        _check_tools(self.tool_choice)
        _refuse_unless("background", not self.background, _FOREGROUND)
        _refuse_unless("conversation", self.conversation is None, _CONVERSATION)
        _refuse_unless("prompt", self.prompt is None, "Send the question as input.")
        if isinstance(self.input, str):
            return _said([ChatMessage(role="user", content=self.input)], self.said_in)
        return _said([item for item in self.input if item.role], self.said_in)


_ONE = "Answers are the same each time. Ask for one."
_JSON = "Answers are Markdown. Leave it out; POST /v1/ask answers with JSON."
_TOOLS = "No tool is ever called. Leave it out."
_FOREGROUND = "Answers are not made in the background. Stream instead."
_CONVERSATION = "Conversations are continued by previous_response_id. Send that."


def _is_text(form: Format | None) -> bool:
    return form is None or form.type == "text"


def _check_tools(choice: Any) -> None:
    _refuse_unless("tool_choice", choice in (None, "auto", "none"), _TOOLS)


def _refuse_unless(param: str, fits: bool, fix: str) -> None:
    if not fits:
        raise refusal(param, "has a value that cannot be honoured", fix)


def refusal(param: str, problem: str, fix: str) -> Refused:
    """400 for one parameter."""
    errors = [{"where": f"body.{param}", "problem": problem}]
    title = "The request cannot be answered."
    return Refused(Problem(400, "unsupported-value", title, fix, errors))


def _said(messages: Iterable[ChatMessage | InputItem], param: str) -> Said:
    """The last message of the person is the newest; whatever follows it is dropped."""
    told: list[Message] = []
    tokens = 0
    newest: Content = None
    asked = -1  # the place of the last message of the person
    for message in messages:
        text = _text(message.content)
        tokens += count_tokens(text)
        if message.role == USER:
            newest, asked = message.content, len(told)
        if message.role in (USER, ASSISTANT):
            told.append(Message(str(message.role), text))
    if asked < 0:
        fix = "Send the question as the last message, with the role 'user'."
        raise refusal(param, "has no message of the role 'user'", fix)
    _check_parts(newest, param)
    return Said(told[asked].text, tuple(told[:asked]), tokens)


def _text(content: Content) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text or "" for part in content if part.type in _TEXT)


def _check_parts(content: Content, param: str) -> None:
    """Refuse images and files in the newest message; older ones are passed over."""
    parts: Sequence[Part] = content if isinstance(content, list) else ()
    for part in parts:
        if part.type not in _TEXT:
            problem = f"has a part of the type '{part.type[:40]}'"
            fix = "Only text is read: ask in words, without images, sound or files."
            raise refusal(param, problem, fix)


def check_text(text: str, param: str) -> str:
    """The question or reply on one line; refused where it is empty or too long."""
    text = " ".join(text.split())
    if not text:
        raise refusal(param, "has an empty last message", "Ask something.")
    if len(text) > LONGEST_QUESTION:
        raise refusal(
            param,
            f"has a last message of {len(text):,} characters",
            f"Ask in at most {LONGEST_QUESTION:,}. Texts to search in belong in the index: whichsense index add",
        )
    try:
        check_question(text)
    except BadInput as error:
        raise refusal(param, "cannot be read", str(error)) from None
    return text


# From a request to its answer: the model, the message, the conversation, a place in the queue, the work
# there, and what the client gets of it. The work stops when the client goes.

RESPONSE = "resp_"
"""Before the id of a response."""
_STATUS = "status"  # the event of a stage that has ended: what was done, in a few words


class AnswerStream(EventStream):
    """A response that cancels its answer, if it has not ended, however it ends itself."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.stream())
        self._entry = entry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            running = self._entry.running
            if running is not None and not running.ended:
                self._entry.service.answers.cancel(running)


class Entry:
    """One request: refused as it is made, or with an answer on its way, or with one that needs no work.

    Each of the two paths has the form of its own answers: whole, and as the parts of a stream.
    """

    def __init__(
        self, service: Service, request: Request, body: ChatRequest | ResponsesRequest
    ) -> None:
        self.service = service
        self.running: Running | None = None
        self._request = request
        self._body = body
        self._said = body.said()
        self._is_open_webui = is_open_webui(request.headers)
        self._ready: Written | None = None
        self._id = new_id()  # of what was ready at once: nothing can follow it
        self._created = int(time.time())

    async def respond(self, caller: Caller) -> Response:
        """Take the request in, or refuse it; answer it."""
        await self._begin(caller)
        if self._body.stream:
            return AnswerStream(self)
        written = self._ready
        if self.running is not None:
            body = await self.service.result(self.running, self._request)
            written = types.decode(Written, json.loads(body))
        assert written is not None
        return JSONResponse(self.whole(written))

    async def _begin(self, caller: Caller) -> None:
        service, body = self.service, self._body
        offer = find_offer(body.model, body.index, service, caller)
        task = answer_task(self._said.text)
        if task is not None:
            self._ready = Written(task)
            return
        text = check_text(question_in(self._said.text), body.said_in)
        found = await self._find(offer, caller)
        self.running = service.submit(
            partial(self._answer, text, found, offer),
            caller,
            offer.served,
            threshold=body.threshold,
            parent=self._request.headers,
        )
        self._id = self.running.id

    async def _find(self, offer: Offer, caller: Caller) -> Found:
        """The conversation, by the id of its last response or by the messages before."""
        view = View(caller.id, (offer.served.name,))
        find, history = self.service.conversations.find, self._said.history
        previous = getattr(self._body, "previous_response_id", None)
        if previous is None:
            return await self.service.briefly(lambda: find_conversation(find, view, history))
        identifier = previous.removeprefix(RESPONSE)
        kept = await self.service.briefly(lambda: find(identifier, view))
        if kept is None:
            raise Refused(_no_previous(previous))
        replayed = [message.text for message in history if message.role == USER]
        return Found("", kept, tuple(replayed[-REPLAYED:]))

    def _answer(
        self, text: str, found: Found, offer: Offer, pipeline: Pipeline, running: Running
    ) -> str:
        """The JSON of a `Written`: a message in its conversation, answered and written down. In a thread."""
        service = self.service
        tells = self._is_open_webui and bool(self._body.stream)
        pipeline = self._telling(pipeline, running) if tells else pipeline
        kept, manner = found.kept, offer.manner
        conversation = kept.conversation if kept else None
        for said in found.replayed:
            # One that is too long, or empty, was not answered then.
            with contextlib.suppress(BadInput):
                conversation = _turn(pipeline, conversation, said, manner)
        before = None
        if conversation is not None:
            before = ServedConversation(conversation, kept.case_id if kept else "")
        conversation = _turn(pipeline, conversation, text, manner)
        has_others = len(service.engines.by_name) > 1
        index = offer.served.name if has_others else ""
        page = Page(str(self._request.base_url).rstrip("/"), index, tells)
        written = write_turn(conversation, page)
        after = service.trace(running, conversation, before)
        for identifier in self._identifiers(text, found, written):
            named = replace(conversation, id=identifier)
            service.conversations.save(replace(after, conversation=named), None)
        return dump(types.encode(written))

    def _identifiers(self, text: str, found: Found, written: Written) -> Iterator[str]:
        """Under which the conversation is kept: its messages' digest, the id of the response."""
        if self._body.store is False:
            return
        if found.digest:
            digest = next_digest(found.digest, Message(USER, text))
            yield next_digest(digest, Message(ASSISTANT, written.text))
        if isinstance(self._body, ResponsesRequest):
            yield self._id

    def _telling(self, pipeline: Pipeline, running: Running) -> Pipeline:
        """The pipeline; followers of the answer are told of every stage in words."""

        def listen(stage: str, cases: Sequence[Case]) -> None:
            pipeline.on_stage(stage, cases)
            for case in cases:
                description = describe_stage(stage, stage_counts(case))
                if description:
                    self.service.answers.publish(running, _STATUS, dump(description))

        return replace(pipeline, on_stage=listen)

    async def stream(self) -> AsyncIterator[bytes]:
        """Server-sent events of the answer as it comes."""
        async for parts in self._parts():
            for part in parts:
                yield part

    async def _parts(self) -> AsyncIterator[Iterable[bytes]]:
        yield self.begun()
        if self._ready is not None:
            yield self.parts(self._ready)
        if self.running is None:
            return
        heartbeat = self.service.settings.heartbeat
        async for event in self.running.follow(heartbeat=heartbeat):
            if event is None:
                yield (KEEPALIVE_COMMENT,)
            elif event.name == _STATUS:
                yield self.status(json.loads(event.data))
            elif event.name == "done":
                yield self.parts(types.decode(Written, json.loads(event.data)))
            elif event.name == "problem":
                yield self.failed(self.running.problem or INTERNAL)

    def _usage(self, written: Written, before: str, after: str) -> dict[str, Any]:
        """How many tokens were read and written, under the names of a path."""
        tokens = self._said.tokens, count_tokens(written.text)
        return {before: tokens[0], after: tokens[1], "total_tokens": sum(tokens)}

    def whole(self, written: Written) -> dict[str, Any]:
        """The answer at once."""
        raise NotImplementedError

    def begun(self) -> Iterable[bytes]:
        """What is sent first."""
        raise NotImplementedError

    def status(self, description: str) -> Iterable[bytes]:
        """What a stage has done."""
        return ()

    def parts(self, written: Written) -> Iterable[bytes]:
        """The answer, part by part."""
        raise NotImplementedError

    def failed(self, problem: Problem) -> Iterable[bytes]:
        """Why there is none."""
        raise NotImplementedError


def _no_previous(previous: str) -> Problem:
    title = f"There is no response '{previous[:80]}' that can be followed."
    fix = "Send the whole conversation as input instead; a response with store=false cannot be followed by its id."
    errors = [{"where": "body.previous_response_id", "problem": "not found"}]
    return Problem(400, "previous-response-not-found", title, fix, errors)


def _turn(
    pipeline: Pipeline, before: Conversation | None, text: str, manner: Manner
) -> Conversation:
    """The conversation with what a message leads to; with the model that explains, a question leads to its story."""
    policy = AskingPolicy(enabled=manner.asks)
    options: Any = {"policy": policy, "limits": current_limits()}
    if before is None:
        after = talk.begin(pipeline, text, **options)
    else:
        after = talk.reply(pipeline, before, text, **options)
    case = after.case
    if case is None:
        return after
    check_cancelled(case)
    is_new = before is None or case != before.case
    if manner.explains and is_new and case.readings and not case.stopped:
        return talk.explain(pipeline, after)
    return after


def _event(value: dict[str, Any], name: str | None = None) -> bytes:
    """An event. Its JSON has no line breaks."""
    return format_sse_event(data_str=dump(value), event=name)


def _citations(written: Written) -> list[dict[str, Any]]:
    """Each number in brackets as a citation; indexes count characters of the text."""
    cited = []
    for citation in written.citations:
        place = {"start_index": citation.start, "end_index": citation.end}
        cited.append(place | {"title": citation.title, "url": citation.url})
    return cited


# POST /v1/chat/completions.

chat_router = APIRouter(prefix="/v1", tags=["OpenAI-compatible"])


@chat_router.post("/chat/completions", **described("chat/object", 404, 410, streams=True))
async def complete(body: ChatRequest, request: Request, service: Serving, caller: Asks) -> Response:
    """Answer the last message of a chat.

    An ambiguous question is answered with a question back, whose options are numbered; the next message chooses. The
    messages before the last one tell which conversation it is. Passages are cited as `url_citation`.
    """
    return await _Chat(service, request, body).respond(caller)


class _Chat(Entry):
    """A completion, and its chunks."""

    def whole(self, written: Written) -> dict[str, Any]:
        message = {
            "role": "assistant",
            "content": written.text,
            "refusal": None,
            "annotations": self._annotations(written),
            "readings": types.encode(written.readings),
        }
        choice = {"index": 0, "message": message, "logprobs": None}
        choices = [choice | {"finish_reason": "stop"}]
        usage = self._tokens(written)
        return self._object("chat.completion", choices=choices, usage=usage)

    def begun(self) -> Iterable[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def status(self, description: str) -> Iterable[bytes]:
        yield self._part(choices=[], event=status_event(description))

    def failed(self, problem: Problem) -> Iterable[bytes]:
        yield _event(problem.openai_body())

    def parts(self, written: Written) -> Iterable[bytes]:
        """The text line by line, its citations, why it ends."""
        if self._is_open_webui:
            # Sources come before the text that names their numbers. Annotations would double them.
            for event in events_of(written):
                yield self._part(choices=[], event=event)
        for line in written.text.splitlines(keepends=True):
            yield self._chunk({"content": line})
        if written.citations and not self._is_open_webui:
            yield self._chunk({"annotations": self._annotations(written)})
        end = {"readings": types.encode(written.readings)} if written.readings else {}
        yield self._chunk(end, "stop")
        if self._counts:
            yield self._part(choices=[], usage=self._tokens(written))
        yield b"data: [DONE]\n\n"

    @property
    def _counts(self) -> bool:
        options = getattr(self._body, "stream_options", None)
        return bool(options and options.include_usage)

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None}
        usage = {"usage": None} if self._counts else {}
        choices = [choice | {"finish_reason": finish_reason}]
        return self._part(choices=choices, **usage)

    def _part(self, **fields: Any) -> bytes:
        return _event(self._object("chat.completion.chunk", **fields))

    def _object(self, kind: str, **fields: Any) -> dict[str, Any]:
        head = {"id": f"chatcmpl-{self._id}", "created": self._created}
        return {**head, "model": self._body.model, "object": kind, **fields}

    def _tokens(self, written: Written) -> dict[str, Any]:
        return self._usage(written, "prompt_tokens", "completion_tokens")

    @staticmethod
    def _annotations(written: Written) -> list[dict[str, Any]]:
        kind = "url_citation"
        return [{"type": kind, kind: place} for place in _citations(written)]


# POST /v1/responses.

responses_router = APIRouter(prefix="/v1", tags=["OpenAI-compatible"])
_PLACE = {"output_index": 0, "content_index": 0}
# What every response has; a table that is given says more.
_RESPONSE: dict[str, Any] = {
    "object": "response",
    "output": [],
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "parallel_tool_calls": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "none",
    "tools": [],
    "top_p": None,
    "usage": None,
}


@responses_router.post("/responses", **described("responses/object", 404, 410, streams=True))
async def respond(
    body: ResponsesRequest, request: Request, service: Serving, caller: Asks
) -> Response:
    """Answer the last message of the input.

    An ambiguous question is answered with a question back, whose options are numbered. The next request chooses: with
    `previous_response_id`, or with the whole conversation as its input. Passages are cited as `url_citation`.
    """
    return await _Response(service, request, body).respond(caller)


class _Response(Entry):
    """A response, and its events, numbered from 0."""

    _number = -1

    def whole(self, written: Written) -> dict[str, Any]:
        usage = self._usage(written, "input_tokens", "output_tokens")
        usage["input_tokens_details"] = {"cached_tokens": 0, "cache_write_tokens": 0}
        usage["output_tokens_details"] = {"reasoning_tokens": 0}
        output = [self._message("completed", [self._part(written)])]
        return self._object("completed", output=output, usage=usage)

    def begun(self) -> Iterable[bytes]:
        for name in ("created", "in_progress"):
            yield self._send(name, response=self._object("in_progress"))

    def failed(self, problem: Problem) -> Iterable[bytes]:
        code = "rate_limit_exceeded" if problem.status == 429 else "server_error"
        error = {"code": code, "message": problem.openai_body()["error"]["message"]}
        yield self._send("failed", response=self._object("failed", error=error))

    def parts(self, written: Written) -> Iterable[bytes]:
        """One message with one part: the text line by line, then its citations."""
        text, part = written.text, self._part(written)
        item = self._message("in_progress", [])
        yield self._send("output_item.added", output_index=0, item=item)
        yield self._send_text("content_part.added", part=self._part(Written("")))
        for line in text.splitlines(keepends=True):
            yield self._send_text("output_text.delta", delta=line, logprobs=[])
        for number, citation in enumerate(part["annotations"]):
            yield self._send_text(
                "output_text.annotation.added", annotation_index=number, annotation=citation
            )
        yield self._send_text("output_text.done", text=text, logprobs=[])
        yield self._send_text("content_part.done", part=part)
        item = self._message("completed", [part])
        yield self._send("output_item.done", output_index=0, item=item)
        yield self._send("completed", response=self.whole(written))

    def _send_text(self, name: str, **fields: Any) -> bytes:
        return self._send(name, item_id=f"msg_{self._id}", **_PLACE, **fields)

    def _send(self, name: str, **fields: Any) -> bytes:
        self._number += 1
        name = f"response.{name}"
        return _event({"type": name, "sequence_number": self._number, **fields}, name)

    def _object(self, status: str, **fields: Any) -> dict[str, Any]:
        asked = self._body.model_dump(include={"model", "previous_response_id"})
        return {
            **_RESPONSE,
            **asked,
            "id": f"{RESPONSE}{self._id}",
            "created_at": self._created,
            "status": status,
            "metadata": getattr(self._body, "metadata", None) or {},
            "store": self._body.store is not False,
            **fields,
        }

    def _message(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"msg_{self._id}",
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
            "annotations": [{"type": "url_citation", **place} for place in _citations(written)],
            "readings": types.encode(written.readings),
            "logprobs": [],
        }


routers = (models_router, chat_router, responses_router)
