"""The OpenAI-compatible face: chat completions, responses and models, from a request to its answer."""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Path, Request
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from whichsense import conversation as talk
from whichsense import types
from whichsense.conversation import AskingPolicy, Conversation
from whichsense.errors import BadInput
from whichsense.index.search import check_question
from whichsense.jobs.limits import current_limits
from whichsense.pipeline import Pipeline
from whichsense.serve.answering import Running, Served, check_cancelled, new_id
from whichsense.serve.events import describe_stage, dump, stage_counts
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
from whichsense.serve.routes import Asks, service_of
from whichsense.serve.schemas import LONGEST_QUESTION, IndexName, Threshold, whole
from whichsense.serve.service import Caller, Service
from whichsense.serve.state import KeptConversation, View
from whichsense.types import Case

# The models that clients choose among, and GET /v1/models: three manners of answering, over each index.

models_router = APIRouter(prefix="/v1/models", tags=["OpenAI-compatible"])


@dataclass(frozen=True, slots=True)
class Model:
    """A name, and how it answers."""

    id: str
    description: str
    asks: bool = False
    """Whether an ambiguous question is answered with a question back."""
    explains: bool = False
    """Whether a question is answered with one long, cited text."""

    @property
    def policy(self) -> AskingPolicy:
        return AskingPolicy(enabled=self.asks)


MODELS = (
    Model("whichsense", "Asks back which reading is meant.", asks=True),
    Model("whichsense-readings", "Lists every reading; never asks back."),
    Model(
        "whichsense-explain",
        "Tells the whole story, with a citation on every sentence.",
        explains=True,
    ),
)


_AT = "@"  # before the name of an index, in the name of a model


@dataclass(frozen=True, slots=True)
class Offer:
    """A model over an index, under the name by which clients choose it."""

    name: str
    model: Model
    served: Served

    def to_json(self) -> dict[str, Any]:
        built = datetime.datetime.fromisoformat(self.served.index.manifest.created)
        return {
            "id": self.name,
            "object": "model",
            "created": int(built.timestamp()),
            "owned_by": "whichsense",
            "description": self.model.description,
        }


def offers(service: Service, caller: Caller) -> list[Offer]:
    """What the caller may choose: the models that a pipeline has the stages for, over the first index by their own
    names, over each further one as `whichsense@NAME`."""
    found = []
    for number, engine in enumerate(service.engines.usable(caller.indexes)):
        served = engine.served
        for model in MODELS:
            if not model.explains or served.pipeline.summarizer is not None:
                name = f"{model.id}{_AT}{engine.name}" if number else model.id
                found.append(Offer(name, model, served))
    return found


def find_offer(name: str, index: str, service: Service, caller: Caller) -> Offer:
    """The model of this name, over an index if one is named; refused where there is none."""
    first = service.engine(caller).name
    model, _, place = name.partition(_AT)
    place = service.engine(caller, index).name if index else place or first
    listed = offers(service, caller)
    for offer in listed:
        if (offer.model.id, offer.served.name) == (model, place):
            return offer
    names = ", ".join(offer.name for offer in listed)
    title = f"There is no model '{name[:100]}' here."
    errors = [{"where": "body.model", "problem": "not one of the models"}]
    problem = Problem(404, "model-not-found", title, f"Use one of: {names}.", errors)
    raise Refused(problem)


@models_router.get("", **described("models/list"))
async def list_models(request: Request, caller: Asks) -> Response:
    """The models: manners in which an index is asked."""
    listed = [offer.to_json() for offer in offers(service_of(request), caller)]
    return JSONResponse({"object": "list", "data": listed})


@models_router.get("/{model_id}", **described("models/object", 404))
async def read_model(
    model_id: Annotated[str, Path(max_length=200)], request: Request, caller: Asks
) -> Response:
    """One model."""
    found = find_offer(model_id, "", service_of(request), caller)
    return JSONResponse(found.to_json())


# Bodies of requests. A field that means nothing here is ignored; one that would change the form is
# refused.

_TEXT = ("text", "input_text", "output_text")
_MOST_MESSAGES = 2_000
_Strict = ConfigDict(strict=True)


class Part(BaseModel):
    """A part of a message."""

    model_config = _Strict

    type: str
    text: str | None = None


Content = str | list[Part] | None


class ChatMessage(BaseModel):
    model_config = _Strict

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = None


class InputItem(BaseModel):
    """An item of a response's input; items other than messages are ignored."""

    model_config = _Strict

    type: str | None = None
    role: str | None = None
    content: Content = None


class Format(BaseModel):
    model_config = _Strict

    type: str


class TextSettings(BaseModel):
    model_config = _Strict

    format: Format | None = None


class StreamOptions(BaseModel):
    model_config = _Strict

    include_usage: bool | None = None


class ChatRequest(BaseModel):
    """The body of a chat completion."""

    model_config = ConfigDict(
        strict=True,
        json_schema_extra={
            "examples": [
                {
                    "model": "whichsense",
                    "messages": [{"role": "user", "content": "Who played the Joker?"}],
                }
            ]
        },
    )

    said_in: ClassVar[str] = "messages"
    model: str
    messages: list[ChatMessage] = Field(min_length=1, max_length=_MOST_MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    threshold: Threshold = None
    index: IndexName = ""
    store: bool | None = Field(
        None, description="false: the conversation is not kept, but held again."
    )
    n: Annotated[int | None, BeforeValidator(whole)] = Field(
        None, description="Only 1: every choice would be the same."
    )
    response_format: Format | None = None
    tool_choice: Any = None
    modalities: list[str] | None = None

    def said(self) -> Said:
        """The newest message of the person, and what was said before."""
        _refuse_unless("n", self.n in (None, 1), _ONE)
        _refuse_unless("response_format", _is_text(self.response_format), _JSON)
        _check_tools(self.tool_choice)
        written = self.modalities is None or "text" in self.modalities
        _refuse_unless("modalities", written, "Answers are text. Ask for text.")
        return _said(self.messages, self.said_in)


class ResponsesRequest(BaseModel):
    """The body of a response."""

    model_config = ConfigDict(
        strict=True,
        json_schema_extra={
            "examples": [{"model": "whichsense", "input": "Who played the Joker?"}]
        },
    )

    said_in: ClassVar[str] = "input"
    model: str
    input: str | Annotated[list[InputItem], Field(max_length=_MOST_MESSAGES)]
    instructions: Any = Field(None, description="Accepted, and not followed.")
    previous_response_id: str | None = Field(None, max_length=100)
    store: bool | None = Field(None, description="false: nothing can follow it by id.")
    stream: bool | None = None
    threshold: Threshold = None
    index: IndexName = ""
    text: TextSettings | None = None
    metadata: dict[str, str] | None = None
    tool_choice: Any = None
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


# The work for the queue: a message in its conversation, answered and written down.

STATUS = "status"
"""The event of a stage that has ended: what was done, in a few words."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A message to be answered."""

    text: str
    found: Found
    offer: Offer
    page: Page
    """What the answer is written on."""
    kept: bool = True
    """Whether the conversation may be kept."""
    has_id: bool = False
    """Whether what follows may name the answer by its id."""
    tells_stages: bool = False
    """Whether the client is told of each stage as it ends."""


def make_answer(
    service: Service, asked: Asked, pipeline: Pipeline, running: Running
) -> str:
    """The JSON of a `Written`. In a thread."""
    pipeline = _telling(pipeline, running) if asked.tells_stages else pipeline
    kept, model = asked.found.kept, asked.offer.model
    conversation = kept.conversation if kept else None
    for text in asked.found.replayed:
        # One that is too long, or empty, was not answered then.
        with contextlib.suppress(BadInput):
            conversation = _turn(pipeline, conversation, text, model)
    before = None
    if conversation is not None:
        case_id = kept.case_id if kept else ""
        before = KeptConversation(conversation, case_id, running.owner)
    conversation = _turn(pipeline, conversation, asked.text, model)
    written = write_turn(conversation, asked.page)
    after = service.trace(running, conversation, before, asked.offer.served.system)
    for identifier in _identifiers(asked, running, written):
        named = replace(conversation, id=identifier)
        service.conversations.save(replace(after, conversation=named), None)
    return dump(types.encode(written))


def _identifiers(asked: Asked, running: Running, written: Written) -> Iterator[str]:
    """Under which the conversation is kept: its messages' digest, the id of the response."""
    if not asked.kept:
        return
    if asked.found.digest:
        digest = next_digest(asked.found.digest, Message(USER, asked.text))
        yield next_digest(digest, Message(ASSISTANT, written.text))
    if asked.has_id:
        yield running.id


def _turn(
    pipeline: Pipeline, before: Conversation | None, text: str, model: Model
) -> Conversation:
    """The conversation with what a message leads to; with the model that explains, a question leads to its story."""
    options: Any = {"policy": model.policy, "limits": current_limits()}
    if before is None:
        after = talk.begin(pipeline, text, **options)
    else:
        after = talk.reply(pipeline, before, text, **options)
    case = after.case
    if case is None:
        return after
    check_cancelled(case)
    is_new = before is None or case != before.case
    if model.explains and is_new and case.readings and not case.stopped:
        return talk.explain(pipeline, after)
    return after


def _telling(pipeline: Pipeline, running: Running) -> Pipeline:
    """The pipeline; followers of the answer are told of every stage in words."""

    def listen(stage: str, cases: Sequence[Case]) -> None:
        pipeline.on_stage(stage, cases)
        for case in cases:
            description = describe_stage(stage, stage_counts(case))
            if description:
                running.publish(STATUS, dump(description))

    return replace(pipeline, on_stage=listen)


# Server-sent events of an answer as it comes. The work stops when the client goes.

DONE = b"data: [DONE]\n\n"
PING = KEEPALIVE_COMMENT


class AnswerStream(StreamingResponse):
    """A response that cancels its answer, if it has not ended, however it ends itself."""

    media_type = "text/event-stream"

    def __init__(
        self, body: AsyncIterator[bytes], service: Service, running: Running | None
    ) -> None:
        # nginx would hold events back.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(body, headers=headers)
        self._service = service
        self._running = running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._running is not None and not self._running.ended:
                self._service.answers.cancel(self._running)


async def progress(
    running: Running, heartbeat: float
) -> AsyncIterator[str | Written | Problem | None]:
    """What each stage has done, then the answer or a problem; None after so many seconds of silence."""
    async for event in running.follow(heartbeat=heartbeat):
        if event is None:
            yield None
        elif event.name == STATUS:
            yield str(json.loads(event.data))
        elif event.name == "done":
            yield types.decode(Written, json.loads(event.data))
        elif event.name == "problem":
            yield running.problem or INTERNAL


def as_event(value: dict[str, Any], name: str | None = None) -> bytes:
    """An event. Its JSON has no line breaks."""
    data = json.dumps(value, separators=(",", ":"))
    return format_sse_event(data_str=data, event=name)


# From a request to its answer on the way: the model, the message, the conversation, a place in the
# queue.

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
        service = self.service
        offer = find_offer(body.model, body.index, service, caller)
        task = answer_task(self.said.text)
        if task is not None:
            self._ready = Written(task)
            return
        base = str(self.request.base_url).rstrip("/")
        has_others = len(service.engines.by_name) > 1
        index = offer.served.name if has_others else ""
        tells = self.is_open_webui and bool(body.stream)
        asked = Asked(
            text=check_text(question_in(self.said.text), body.said_in),
            found=await self._find(body, offer, caller),
            offer=offer,
            page=Page(base, index, tells),
            kept=body.store is not False,
            has_id=isinstance(body, ResponsesRequest),
            tells_stages=tells,
        )
        self.running = service.submit(
            lambda pipeline, running: make_answer(service, asked, pipeline, running),
            caller,
            offer.served,
            threshold=body.threshold,
            parent=self.request.headers,
        )

    async def _find(self, body: Body, offer: Offer, caller: Caller) -> Found:
        """The conversation, by the id of its last response or by the messages before."""
        store = self.service.conversations
        view = View(caller.id, (offer.served.name,))
        history = self.said.history
        previous = getattr(body, "previous_response_id", None)
        if previous is None:
            return await self.service.briefly(
                lambda: find_conversation(store, view, history)
            )
        identifier = previous.removeprefix(RESPONSE)
        kept = await self.service.briefly(lambda: store.find(identifier, view))
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
        return types.decode(Written, json.loads(body))

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


# POST /v1/chat/completions.

chat_router = APIRouter(prefix="/v1", tags=["OpenAI-compatible"])


@chat_router.post(
    "/chat/completions", **described("chat/object", 404, 410, streams=True)
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
            "annotations": chat_citations(written),
            "readings": types.encode(written.readings),
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
            yield self._chunk({"annotations": chat_citations(written)})
        end = {"readings": types.encode(written.readings)} if written.readings else {}
        yield self._chunk(end, "stop")
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


def chat_citations(written: Written) -> list[dict[str, Any]]:
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


# POST /v1/responses.

responses_router = APIRouter(prefix="/v1", tags=["OpenAI-compatible"])
_PLACE = {"output_index": 0, "content_index": 0}


@responses_router.post(
    "/responses", **described("responses/object", 404, 410, streams=True)
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
        for number, citation in enumerate(response_citations(written)):
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
            "annotations": response_citations(written),
            "readings": types.encode(written.readings),
            "logprobs": [],
        }


def response_citations(written: Written) -> list[dict[str, Any]]:
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
