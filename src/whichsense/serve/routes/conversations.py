"""/v1/conversations: begin, reply, resume by id."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from whichsense.serve.access import Caller
from whichsense.serve.answering.dialogue import Reply
from whichsense.serve.answering.running import Running
from whichsense.serve.events import dump
from whichsense.serve.problems import not_found
from whichsense.serve.routes.ask import Asks, as_json, service_of, wants_events
from whichsense.serve.schemas.description import STREAM, problems
from whichsense.serve.schemas.requests import (
    BeginRequest,
    ChooseRequest,
    ReplyRequest,
    SayRequest,
)
from whichsense.serve.schemas.responses import ConversationModel
from whichsense.serve.service import Service
from whichsense.serve.state.conversations import KeptConversation

router = APIRouter(prefix="/v1/conversations", tags=["conversations"])
ConversationId = Annotated[str, Path(max_length=100)]


@router.post(
    "",
    response_model=ConversationModel,
    responses={200: {"content": STREAM}, **problems(409, 410, 422)},
)
async def begin(body: BeginRequest, request: Request, caller: Asks) -> Response:
    """Begin a conversation with a question. Its last turn says what to show: an answer, or a question back."""
    service = service_of(request)
    running = service.begin(
        body.question,
        caller.id,
        body.system,
        seconds=body.seconds,
        threshold=body.threshold,
        streamed=body.stream or wants_events(request),
        parent=request.headers,
    )
    return await _respond(service, running, request)


@router.post(
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
        seconds=body.seconds,
        threshold=body.threshold,
        streamed=body.stream or wants_events(request),
        parent=request.headers,
    )
    return await _respond(service, running, request)


@router.get(
    "/{conversation_id}", response_model=ConversationModel, responses=problems(404, 422)
)
async def resume(
    conversation_id: ConversationId, request: Request, caller: Asks
) -> Response:
    """A conversation so far."""
    kept = await _find(service_of(request), conversation_id, caller)
    return as_json(dump(kept.to_json()))


@router.delete("/{conversation_id}", status_code=204, responses=problems(404, 422))
async def delete(
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
        lambda: service.conversations.find(conversation_id, caller.sees)
    )
    if kept is None:
        raise not_found("conversation", "Begin one: POST /v1/conversations")
    return kept


async def _respond(service: Service, running: Running, request: Request) -> Response:
    if running.streamed:
        return await service.stream(running)
    return as_json(await service.result(running, request))
