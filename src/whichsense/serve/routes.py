"""Paths of the service: questions, cases, conversations, searches, its state."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, Response

from whichsense import __version__, types
from whichsense.conversation import ServedConversation
from whichsense.errors import BadInput
from whichsense.index import Index
from whichsense.sample import corpus_name
from whichsense.serve.answering import Engine
from whichsense.serve.events import Event, as_json, dump, replayed, wants_events
from whichsense.serve.problems import Problem, Refused, busy, not_found
from whichsense.serve.schemas import (
    STREAM,
    AnswerModel,
    AskRequest,
    BeginRequest,
    CaseList,
    CaseState,
    ConversationModel,
    FeedbackList,
    FeedbackRequest,
    IndexEntry,
    IndexList,
    IndexQuery,
    Info,
    ReplyRequest,
    SearchAnswer,
    SearchRequest,
    SystemModel,
    problems,
)
from whichsense.serve.service import Asks, Caller, Service, Serving
from whichsense.serve.settings import is_embedded
from whichsense.serve.state import Feedback, Kind
from whichsense.types import PassageInContext, ServedCase


async def brief(service: Service, work: Callable[[], object]) -> Response:
    """Do short work in a thread; what it returns as JSON."""
    return as_json(await service.briefly(lambda: dump(types.encode(work()))))


def _streamed(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a path that can stream answers with, for the OpenAPI description."""
    return {200: {"content": STREAM}, **problems(*statuses)}


def _how(body: BeginRequest | ReplyRequest, request: Request) -> dict[str, Any]:
    """Whether an answer is streamed, and the trace that it is part of."""
    streamed = body.stream or wants_events(request)
    return {"streamed": streamed, "parent": request.headers}


# POST /v1/ask.

ask_router = APIRouter(prefix="/v1", tags=["ask"])


@ask_router.post("/ask", response_model=AnswerModel, responses=_streamed(409, 410, 422))
async def ask(body: AskRequest, request: Request, service: Serving, caller: Asks) -> Response:
    """Answer a question in every sense it has.

    Streamed, each stage is an event `stage` as it ends, and the last event is `done` with the whole answer, or
    `problem`. A stream that breaks off is rejoined at `/v1/cases/{id}`, which the header `Location` names.
    """
    running = service.ask(body, caller, **_how(body, request))
    return await service.respond(running, request)


# /v1/cases: rejoin a running answer, replay one that has ended, judge it, delete it, list what was
# asked.

cases_router = APIRouter(prefix="/v1/cases", tags=["cases"])
_NUMBER = re.compile("[0-9]{1,6}")
CaseId = Annotated[str, Path(max_length=100)]
_FIX = "Take the id from an answer of this service. One that was deleted, or not answered before a stop, is gone."


@cases_router.get("", response_model=CaseList, responses=problems(422))
async def cases(
    service: Serving,
    caller: Asks,
    *,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[float | None, Query(allow_inf_nan=False)] = None,
    kind: Annotated[
        Kind, Query(description="Only those judged, found wrong, unanswered, stopped.")
    ] = "",
    containing: Annotated[
        str, Query(max_length=200, description="Only questions with these words.")
    ] = "",
    index: IndexQuery = "",
) -> Response:
    """What was asked, newest first: a key sees its own cases, one with the scope `write` all of its indexes."""
    view = caller.view
    if index:
        view = replace(view, indexes=(service.engine(caller, index).name,))
    find = partial(service.traces.summaries, kind=kind, containing=containing)
    return await brief(service, lambda: {"cases": find(limit, before, view)})


@cases_router.get("/{case_id}", response_model=CaseState, responses=_streamed(404, 422))
async def case(
    case_id: CaseId,
    request: Request,
    service: Serving,
    caller: Asks,
    last_event_id: Annotated[str, Header(max_length=100)] = "",
) -> Response:
    """A case by its id. With Accept: text/event-stream, its events, after the one that Last-Event-ID names."""
    after = int(last_event_id) if _NUMBER.fullmatch(last_event_id) else 0
    live = await _live_events(service, case_id, caller, after)
    streams = wants_events(request)
    finished = None
    if live is None or not streams:
        finished = await _finished(service, case_id, caller)
    if streams and live is not None:
        return service.event_stream(live, case_id)
    if finished is None:
        if live is None:
            raise not_found("case", _FIX)
        state = {"state": "running", "system": "", "index": "", "tentative": False}
        return as_json(dump({"id": case_id, **state, "case": None}))
    if streams:
        return service.event_stream(_replay(finished, after), case_id)
    return as_json(dump(finished.to_json() | {"state": "finished"}))


async def _live_events(
    service: Service, case_id: str, caller: Caller, after: int
) -> AsyncIterator[Event | None] | None:
    """The events of an answer that runs, or has just ended, in this worker or in another."""
    running = service.answers.find(case_id) or service.writing.find(case_id)
    if running is not None:
        if running.is_seen(caller.view):
            return running.follow(after, service.settings.heartbeat)
        return None
    if service.settings.workers == 1:
        return None
    view = caller.view
    if not await service.briefly(lambda: service.shared.is_seen(case_id, view)):
        return None
    return service.answers.follow_elsewhere(case_id, after)


async def _finished(service: Service, case_id: str, caller: Caller) -> ServedCase | None:
    """A case that is kept; one whose trace was lost as long as its stream can be rejoined."""
    view = caller.view
    kept = await service.briefly(lambda: service.traces.find(case_id, view))
    running = service.answers.find(case_id)
    if kept is not None or running is None or not running.ended:
        return kept
    if running.last_event.name != "done" or not running.is_seen(view):
        return None
    value = json.loads(running.last_event.data)
    case = value.get("case") or value["conversation"]["case"]
    return ServedCase.from_json({**value, "id": case_id, "case": case})


async def _replay(served: ServedCase, after: int) -> AsyncIterator[Event | None]:
    for event in replayed(dump(served.to_json()), served.case):
        if event.number > after or event.last:
            yield event


@cases_router.delete("/{case_id}", name="delete", status_code=204, responses=problems(404, 422))
async def delete_case(case_id: CaseId, service: Serving, caller: Asks) -> None:
    """Cancel an answer that runs; delete one that has ended, with its feedback."""
    running = service.answers.find(case_id)
    view = caller.view
    if running and not running.ended and running.is_seen(view):
        service.answers.cancel(running)
        return

    def work() -> bool:
        is_shared = service.shared.is_seen(case_id, view)
        if is_shared:
            service.shared.cancel(case_id)
        elif service.traces.find(case_id, view) is None:
            return False
        return service.traces.delete(case_id) or is_shared

    if not await service.briefly(work):
        raise not_found("case", _FIX)


def _feedback(
    service: Service, case_id: str, caller: Caller, said: Feedback | None = None
) -> dict[str, object]:
    """What was said of a case, with what is said now. In a thread."""
    traces = service.traces
    if traces.find(case_id, caller.view) is None:
        raise not_found("case", _FIX)
    try:
        if said is not None:
            traces.add_feedback(case_id, caller.id, said)
    except (sqlite3.Error, OSError):
        title = "The feedback could not be written."
        raise Refused(busy("traces", title, 30)) from None
    return {"feedback": traces.feedback(case_id)}


@cases_router.post("/{case_id}/feedback", response_model=FeedbackList, responses=problems(404, 422))
async def feedback(
    case_id: CaseId, body: FeedbackRequest, service: Serving, caller: Asks
) -> Response:
    """Say what you think of an answer. All that was said of it comes back."""
    said = Feedback(**body.model_dump())
    return await brief(service, lambda: _feedback(service, case_id, caller, said))


@cases_router.get("/{case_id}/feedback", response_model=FeedbackList, responses=problems(404, 422))
async def said(case_id: CaseId, service: Serving, caller: Asks) -> Response:
    """What was said of an answer, oldest first."""
    return await brief(service, lambda: _feedback(service, case_id, caller))


# /v1/conversations: begin, reply, resume by id.

conversations_router = APIRouter(prefix="/v1/conversations", tags=["conversations"])
ConversationId = Annotated[str, Path(max_length=100)]


@conversations_router.post("", response_model=ConversationModel, responses=_streamed(409, 410, 422))
async def begin(body: BeginRequest, request: Request, service: Serving, caller: Asks) -> Response:
    """Begin a conversation with a question. Its last turn says what to show: an answer, or a question back."""
    running = service.begin(body, caller, **_how(body, request))
    return await service.respond(running, request)


@conversations_router.post(
    "/{conversation_id}/replies",
    response_model=ConversationModel,
    responses=_streamed(404, 409, 410, 422),
)
async def reply(
    conversation_id: ConversationId,
    body: ReplyRequest,
    request: Request,
    service: Serving,
    caller: Asks,
) -> Response:
    """Reply: say something (a choice in words, a new question), choose options by their ids, or ask for the story."""
    kept = await _find(service, conversation_id, caller)
    running = service.reply(kept, body, caller, **_how(body, request))
    return await service.respond(running, request)


@conversations_router.get(
    "/{conversation_id}", response_model=ConversationModel, responses=problems(404, 422)
)
async def resume(conversation_id: ConversationId, service: Serving, caller: Asks) -> Response:
    """A conversation so far."""
    kept = await _find(service, conversation_id, caller)
    return as_json(dump(kept.to_json()))


@conversations_router.delete(
    "/{conversation_id}", name="delete", status_code=204, responses=problems(404, 422)
)
async def delete_conversation(
    conversation_id: ConversationId, service: Serving, caller: Asks
) -> None:
    """Forget a conversation. The cases that were asked in it stay."""
    await _find(service, conversation_id, caller)
    await service.briefly(lambda: service.conversations.delete(conversation_id))


async def _find(service: Service, conversation_id: str, caller: Caller) -> ServedConversation:
    kept = await service.conversation(conversation_id, caller)
    if kept is None:
        raise not_found("conversation", "Begin one: POST /v1/conversations")
    return kept


# POST /v1/search, GET /v1/passages/{id}.

search_router = APIRouter(prefix="/v1", tags=["search"])
_NO_VECTORS = Problem(
    409,
    "no-vectors",
    "The index that is served has no vectors.",
    'Leave "method" out, or ask for "bm25".',
)
_NEIGHBOURS = 2  # passages on each side


@search_router.post("/search", response_model=SearchAnswer, responses=problems(409, 422))
async def search(body: SearchRequest, service: Serving, caller: Asks) -> Response:
    """Find the passages that may answer a question, best first."""
    served = service.served(caller, body.index)
    service.telemetry.record.question = question = body.question
    index = served.index
    try:
        method = index.method(body.method)
    except BadInput:
        raise Refused(_NO_VECTORS) from None
    table = {"question": question, "index": served.name, "method": method}
    return await brief(service, lambda: table | {"hits": index.search(question, body.k, method)})


@search_router.get(
    "/passages/{passage_id:path}", response_model=PassageInContext, responses=problems(404, 422)
)
async def passage(
    passage_id: Annotated[str, Path(max_length=1000)],
    service: Serving,
    caller: Asks,
    name: IndexQuery = "",
) -> Response:
    """A passage by its id, with its neighbours in the document that it is from."""
    index = service.served(caller, name).index
    return await brief(service, lambda: in_context(index, passage_id))


def in_context(index: Index, passage_id: str) -> PassageInContext:
    """A passage with what stands before and after it in its document; Refused where there is none of this id."""
    try:
        document = index.document(passage_id)
    except BadInput:
        fix = "Take the id from a hit or an answer's evidence."
        raise not_found("passage", fix) from None
    place = [one.id for one in document].index(passage_id)
    before = document[max(0, place - _NEIGHBOURS) : place]
    after = document[place + 1 : place + 1 + _NEIGHBOURS]
    return PassageInContext(document[place], tuple(before), tuple(after))


# /healthz, /readyz, /metrics, /v1/info.

status_router = APIRouter(tags=["status"])


@status_router.get("/healthz", responses=problems())
async def healthz() -> dict[str, str]:
    """The process is there."""
    return {"status": "ok"}


@status_router.get("/readyz", responses=problems())
async def readyz(service: Serving) -> Response:
    """Questions can be answered: models are loaded, every index is open.

    Says so too where traces are lost, and where an index stays at a generation because a newer one cannot be served.
    """
    engines = service.engines.usable()
    gap = service.traces.gap
    traces = "kept" if service.settings.traces else "off"
    return JSONResponse(
        {
            "status": "ready",
            "passages": sum(len(engine.served.index) for engine in engines),
            "traces": f"{gap.lost} lost: {gap.reason}" if gap else traces,
            "faults": {one.name: one.fault for one in engines if one.fault},
        }
    )


@status_router.get("/metrics", response_class=Response, responses=problems())
async def metrics(service: Serving, caller: Asks) -> Response:
    """Counters in Prometheus's text format, of all workers."""
    page = await service.briefly(lambda: service.telemetry.page(service.shared))
    return Response(page, headers={"Content-Type": CONTENT_TYPE_LATEST})


def _indexed(service: Service, engine: Engine) -> dict[str, Any]:
    """What both of the next two say of an index."""
    index = engine.served.index
    return {
        "corpus": corpus_name(engine.place),
        "passages": len(index),
        "generation": index.manifest.generation,
        "method": index.method(service.settings.method),
    }


@status_router.get("/v1/info", responses=problems())
async def info(service: Serving) -> Info:
    """What is served: corpus, system, and what it can do."""
    engine = service.engines.choose()
    served, about = engine.served, service.engines.about
    systems = [SystemModel(name=name, about=about.get(name, "")) for name in served.systems]
    return Info(
        **_indexed(service, engine),
        version=__version__,
        system=served.system,
        systems=systems,
        clarifies=served.pipeline.clarifier is not None,
        explains=served.pipeline.summarizer is not None,
        needs_key=service.access.needs_key(),
        traces=service.settings.traces,
    )


@status_router.get("/v1/indexes", responses=problems())
async def indexes(service: Serving, caller: Asks) -> IndexList:
    """The indexes that this caller may ask, the default first."""
    entries: list[IndexEntry] = []
    for engine in service.engines.usable(caller.indexes):
        entries.append(
            IndexEntry(
                **_indexed(service, engine),
                name=engine.name,
                default=not entries,
                created=engine.served.index.manifest.created,
                writable=not is_embedded(engine.place) and "write" in caller.scopes,
            )
        )
    return IndexList(indexes=entries)


routers = (status_router, ask_router, search_router, conversations_router, cases_router)
