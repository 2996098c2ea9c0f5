"""Paths of the service: questions, cases, conversations, searches, its state."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, Response

from whichsense import __version__, types
from whichsense.errors import BadInput
from whichsense.index import Index
from whichsense.sample import corpus_name
from whichsense.serve.answering import Engine, Reply, Running, Wanted
from whichsense.serve.events import Event, dump, replayed
from whichsense.serve.problems import Problem, Refused, busy, not_found
from whichsense.serve.schemas import (
    STREAM,
    AnswerModel,
    AskRequest,
    BeginRequest,
    CaseList,
    CaseState,
    ChooseRequest,
    ConversationModel,
    FeedbackList,
    FeedbackRequest,
    IndexList,
    IndexQuery,
    Info,
    PassageAnswer,
    ReplyRequest,
    SayRequest,
    SearchAnswer,
    SearchRequest,
    problems,
)
from whichsense.serve.service import Caller, Service, requires
from whichsense.serve.settings import is_embedded
from whichsense.serve.state import Feedback, KeptConversation, Kind
from whichsense.types import Passage, ServedCase

# POST /v1/ask.

ask_router = APIRouter(prefix="/v1", tags=["ask"])
Asks = Annotated[Caller, Depends(requires("ask"))]


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def wants_events(request: Request) -> bool:
    return "text/event-stream" in request.headers.get("accept", "")


def as_json(body: str, status: int = 200) -> Response:
    """JSON that was made in a thread: the event loop only sends it."""
    return Response(body, status, media_type="application/json")


@ask_router.post(
    "/ask",
    response_model=AnswerModel,
    responses={200: {"content": STREAM}, **problems(409, 410, 422)},
)
async def ask(body: AskRequest, request: Request, caller: Asks) -> Response:
    """Answer a question in every sense it has.

    Streamed, each stage is an event `stage` as it ends, and the last event is `done` with the whole answer, or
    `problem`. A stream that breaks off is rejoined at `/v1/cases/{id}`, which the header `Location` names.
    """
    service = service_of(request)
    streamed = body.stream or wants_events(request)
    running = service.ask(
        Wanted(body.question, body.clarify, body.explain, body.system, body.index),
        caller,
        seconds=body.seconds,
        threshold=body.threshold,
        streamed=streamed,
        parent=request.headers,
    )
    if streamed:
        return await service.stream(running)
    return as_json(await service.result(running, request))


# /v1/cases: rejoin a running answer, replay one that has ended, judge it, delete it, list what was
# asked.

cases_router = APIRouter(prefix="/v1/cases", tags=["cases"])
CaseId = Annotated[str, Path(max_length=100)]
_FIX = "Take the id from an answer of this service. One that was deleted, or not answered before a stop, is gone."


@cases_router.get("", response_model=CaseList, responses=problems(422))
async def cases(
    request: Request,
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
    service = service_of(request)
    view = caller.view
    if index:
        view = replace(view, indexes=(service.engine(caller, index).name,))

    def work() -> str:
        rows = service.traces.summaries(
            limit, before, view, kind=kind, containing=containing
        )
        return dump({"cases": [asdict(row) for row in rows]})

    return as_json(await service.briefly(work))


@cases_router.get(
    "/{case_id}",
    response_model=CaseState,
    responses={200: {"content": STREAM}, **problems(404, 422)},
)
async def case(
    case_id: CaseId,
    request: Request,
    caller: Asks,
    last_event_id: Annotated[str, Header(max_length=100)] = "",
) -> Response:
    """A case by its id. With Accept: text/event-stream, its events, after the one that Last-Event-ID names."""
    service = service_of(request)
    after = int(last_event_id) if _is_number(last_event_id) else 0
    live = await _live_events(service, case_id, caller, after)
    finished = None
    if live is None or not wants_events(request):
        finished = await _finished(service, case_id, caller)
    if wants_events(request):
        if live is not None:
            return service.event_stream(live, case_id)
        if finished is not None:
            return service.event_stream(_replay(finished, after), case_id)
    elif finished is not None:
        return as_json(dump(finished.to_json() | {"state": "finished"}))
    elif live is not None:
        table = {
            "id": case_id,
            "state": "running",
            "system": "",
            "index": "",
            "tentative": False,
            "case": None,
        }
        return as_json(dump(table))
    raise not_found("case", _FIX)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 7


async def _live_events(
    service: Service, case_id: str, caller: Caller, after: int
) -> AsyncIterator[Event | None] | None:
    """The events of an answer that runs, or has just ended, in this worker or in another."""
    running = service.answers.find(case_id) or service.writing.find(case_id)
    if running is not None:
        if caller.view.shows(running.owner, running.index):
            return running.follow(after, service.settings.heartbeat)
        return None
    if service.settings.workers == 1:
        return None
    view = caller.view
    if not await service.briefly(lambda: service.shared.is_seen(case_id, view)):
        return None
    return service.answers.follow_elsewhere(case_id, after)


async def _finished(
    service: Service, case_id: str, caller: Caller
) -> ServedCase | None:
    """A case that is kept; one whose trace was lost as long as its stream can be rejoined."""
    view = caller.view
    kept = await service.briefly(lambda: service.traces.find(case_id, view))
    running = service.answers.find(case_id)
    if kept is not None or running is None or not running.ended:
        return kept
    is_seen = view.shows(running.owner, running.index)
    if running.last_event.name != "done" or not is_seen:
        return None
    value = json.loads(running.last_event.data)
    case = value.get("case") or value["conversation"]["case"]
    return ServedCase.from_json({**value, "id": case_id, "case": case})


async def _replay(served: ServedCase, after: int) -> AsyncIterator[Event | None]:
    for event in replayed(dump(served.to_json()), served.case):
        if event.number > after or event.last:
            yield event


@cases_router.delete(
    "/{case_id}", name="delete", status_code=204, responses=problems(404, 422)
)
async def delete_case(case_id: CaseId, request: Request, caller: Asks) -> Response:
    """Cancel an answer that runs; delete one that has ended, with its feedback."""
    service = service_of(request)
    running = service.answers.find(case_id)
    view = caller.view
    if running and not running.ended and view.shows(running.owner, running.index):
        service.answers.cancel(running)
        return Response(status_code=204)

    def work() -> bool:
        if service.shared.is_seen(case_id, view):
            service.shared.cancel(case_id)
            service.traces.delete(case_id)
            return True
        if service.traces.find(case_id, caller.view) is None:
            return False
        return service.traces.delete(case_id)

    if not await service.briefly(work):
        raise not_found("case", _FIX)
    return Response(status_code=204)


@cases_router.post(
    "/{case_id}/feedback", response_model=FeedbackList, responses=problems(404, 422)
)
async def feedback(
    case_id: CaseId, body: FeedbackRequest, request: Request, caller: Asks
) -> Response:
    """Say what you think of an answer. All that was said of it comes back."""
    service = service_of(request)
    said = Feedback(body.verdict, body.about, body.correction)

    def work() -> str | None:
        if service.traces.find(case_id, caller.view) is None:
            return None
        try:
            service.traces.add_feedback(case_id, caller.id, said)
        except (sqlite3.Error, OSError):
            title = "The feedback could not be written."
            raise Refused(busy("traces", title, 30)) from None
        return _feedback(service, case_id)

    answer = await service.briefly(work)
    if answer is None:
        raise not_found("case", _FIX)
    return as_json(answer)


@cases_router.get(
    "/{case_id}/feedback", response_model=FeedbackList, responses=problems(404, 422)
)
async def said(case_id: CaseId, request: Request, caller: Asks) -> Response:
    """What was said of an answer, oldest first."""
    service = service_of(request)

    def work() -> str | None:
        if service.traces.find(case_id, caller.view) is None:
            return None
        return _feedback(service, case_id)

    answer = await service.briefly(work)
    if answer is None:
        raise not_found("case", _FIX)
    return as_json(answer)


def _feedback(service: Service, case_id: str) -> str:
    rows = service.traces.feedback(case_id)
    return dump({"feedback": [asdict(row) for row in rows]})


# /v1/conversations: begin, reply, resume by id.

conversations_router = APIRouter(prefix="/v1/conversations", tags=["conversations"])
ConversationId = Annotated[str, Path(max_length=100)]


@conversations_router.post(
    "",
    response_model=ConversationModel,
    responses={200: {"content": STREAM}, **problems(409, 410, 422)},
)
async def begin(body: BeginRequest, request: Request, caller: Asks) -> Response:
    """Begin a conversation with a question. Its last turn says what to show: an answer, or a question back."""
    service = service_of(request)
    running = service.begin(
        Wanted(body.question, system=body.system, index=body.index),
        caller,
        seconds=body.seconds,
        threshold=body.threshold,
        streamed=body.stream or wants_events(request),
        parent=request.headers,
    )
    return await _respond(service, running, request)


@conversations_router.post(
    "/{conversation_id}/replies",
    response_model=ConversationModel,
    responses={200: {"content": STREAM}, **problems(404, 409, 410, 422)},
)
async def reply(
    conversation_id: ConversationId, body: ReplyRequest, request: Request, caller: Asks
) -> Response:
    """Reply: say something (a choice in words, a new question), choose options by their ids, or ask for the story."""
    service = service_of(request)
    kept = await _find(service, conversation_id, caller)
    running = service.reply(
        kept,
        _said(body),
        caller,
        seconds=body.seconds,
        threshold=body.threshold,
        streamed=body.stream or wants_events(request),
        parent=request.headers,
    )
    return await _respond(service, running, request)


@conversations_router.get(
    "/{conversation_id}", response_model=ConversationModel, responses=problems(404, 422)
)
async def resume(
    conversation_id: ConversationId, request: Request, caller: Asks
) -> Response:
    """A conversation so far."""
    kept = await _find(service_of(request), conversation_id, caller)
    return as_json(dump(kept.to_json()))


@conversations_router.delete(
    "/{conversation_id}", name="delete", status_code=204, responses=problems(404, 422)
)
async def delete_conversation(
    conversation_id: ConversationId, request: Request, caller: Asks
) -> Response:
    """Forget a conversation. The cases that were asked in it stay."""
    service = service_of(request)
    await _find(service, conversation_id, caller)
    await service.briefly(lambda: service.conversations.delete(conversation_id))
    return Response(status_code=204)


def _said(body: ReplyRequest) -> Reply:
    if isinstance(body, SayRequest):
        return Reply(text=body.text)
    if isinstance(body, ChooseRequest):
        return Reply(options=tuple(body.options))
    return Reply(explain=True)


async def _find(
    service: Service, conversation_id: str, caller: Caller
) -> KeptConversation:
    kept = await service.briefly(
        lambda: service.conversations.find(conversation_id, caller.view)
    )
    if kept is None:
        raise not_found("conversation", "Begin one: POST /v1/conversations")
    return kept


async def _respond(service: Service, running: Running, request: Request) -> Response:
    if running.streamed:
        return await service.stream(running)
    return as_json(await service.result(running, request))


# POST /v1/search, GET /v1/passages/{id}.

search_router = APIRouter(prefix="/v1", tags=["search"])
_NO_VECTORS = Problem(
    409,
    "no-vectors",
    "The index that is served has no vectors.",
    'Leave "method" out, or ask for "bm25".',
)
_NEIGHBOURS = 2  # passages on each side


@search_router.post(
    "/search", response_model=SearchAnswer, responses=problems(409, 422)
)
async def search(body: SearchRequest, request: Request, caller: Asks) -> Response:
    """Find the passages that may answer a question, best first."""
    service = service_of(request)
    served = service.served(caller, body.index)
    service.telemetry.record.question = body.question
    index = served.index
    try:
        method = index.method(body.method)
    except BadInput:
        raise Refused(_NO_VECTORS) from None

    def work() -> str:
        hits = index.search(body.question, body.k, method)
        table = {
            "question": body.question,
            "index": served.name,
            "method": method,
            "hits": types.encode(tuple(hits)),
        }
        return dump(table)

    return as_json(await service.briefly(work))


@search_router.get(
    "/passages/{passage_id:path}",
    response_model=PassageAnswer,
    responses=problems(404, 422),
)
async def passage(
    passage_id: Annotated[str, Path(max_length=1000)],
    request: Request,
    caller: Asks,
    name: IndexQuery = "",
) -> Response:
    """A passage by its id, with its neighbours in the document that it is from."""
    service = service_of(request)
    index = service.served(caller, name).index

    def work() -> str | None:
        rows = neighbours(index, passage_id)
        if rows is None:
            return None
        before, passage, after = rows
        table = {
            "passage": types.encode(passage),
            "before": types.encode(before),
            "after": types.encode(after),
        }
        return dump(table)

    body = await service.briefly(work)
    if body is None:
        raise not_found("passage", "Take the id from a hit or an answer's evidence.")
    return as_json(body)


def neighbours(
    index: Index, passage_id: str
) -> tuple[tuple[Passage, ...], Passage, tuple[Passage, ...]] | None:
    """A passage between what stands before and after it in its document; None where there is none of this id."""
    try:
        document = index.document(passage_id)
    except BadInput:
        return None
    place = [one.id for one in document].index(passage_id)
    before = document[max(0, place - _NEIGHBOURS) : place]
    after = document[place + 1 : place + 1 + _NEIGHBOURS]
    return tuple(before), document[place], tuple(after)


# /healthz, /readyz, /metrics, /v1/info.

status_router = APIRouter(tags=["status"])


@status_router.get("/healthz", responses=problems())
async def healthz() -> dict[str, str]:
    """The process is there."""
    return {"status": "ok"}


@status_router.get("/readyz", responses=problems())
async def readyz(request: Request) -> Response:
    """Questions can be answered: models are loaded, every index is open.

    Says so too where traces are lost, and where an index stays at a generation because a newer one cannot be served.
    """
    service = service_of(request)
    gap = service.traces.gap
    traces = "kept" if service.settings.traces else "off"
    table: dict[str, Any] = {
        "status": "ready",
        "passages": 0,
        "traces": f"{gap.lost} lost: {gap.reason}" if gap else traces,
        "faults": {},
    }
    for engine in service.engines.usable():
        table["passages"] += len(engine.served.index)
        if engine.fault:
            table["faults"][engine.name] = engine.fault
    return JSONResponse(table)


@status_router.get("/metrics", response_class=Response, responses=problems())
async def metrics(request: Request, caller: Asks) -> Response:
    """Counters in Prometheus's text format, of all workers."""
    service = service_of(request)
    page = await service.briefly(lambda: service.telemetry.page(service.shared))
    return Response(page, headers={"Content-Type": CONTENT_TYPE_LATEST})


@status_router.get("/v1/info", response_model=Info, responses=problems())
async def info(request: Request) -> Response:
    """What is served: corpus, system, and what it can do."""
    service = service_of(request)
    engine = service.engines.choose()
    served = engine.served
    table = {
        "version": __version__,
        "system": served.system,
        "systems": [
            {"name": name, "about": service.engines.about.get(name, "")}
            for name in served.systems
        ],
        "corpus": corpus_name(engine.place),
        "passages": len(served.index),
        "generation": served.index.manifest.generation,
        "method": served.index.method(service.settings.method),
        "clarifies": served.pipeline.clarifier is not None,
        "explains": served.pipeline.summarizer is not None,
        "needs_key": service.access.needs_key(),
        "traces": service.settings.traces,
    }
    return JSONResponse(table)


@status_router.get("/v1/indexes", response_model=IndexList, responses=problems())
async def indexes(request: Request, caller: Asks) -> Response:
    """The indexes that this caller may ask, the default first."""
    service = service_of(request)

    def entry(engine: Engine, is_default: bool) -> dict[str, Any]:
        index = engine.served.index
        return {
            "name": engine.name,
            "default": is_default,
            "corpus": corpus_name(engine.place),
            "passages": len(index),
            "generation": index.manifest.generation,
            "created": index.manifest.created,
            "method": index.method(service.settings.method),
            "writable": not is_embedded(engine.place) and "write" in caller.scopes,
        }

    engines = service.engines.usable(caller.indexes)
    return JSONResponse(
        {"indexes": [entry(engine, engine is engines[0]) for engine in engines]}
    )
