"""POST /v1/ask."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from whichsense.serve.access import Caller, requires
from whichsense.serve.answering.dialogue import Wanted
from whichsense.serve.schemas.description import STREAM, problems
from whichsense.serve.schemas.requests import AskRequest
from whichsense.serve.schemas.responses import AnswerModel
from whichsense.serve.service import Service

router = APIRouter(prefix="/v1", tags=["ask"])
Asks = Annotated[Caller, Depends(requires("ask"))]


def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def wants_events(request: Request) -> bool:
    return "text/event-stream" in request.headers.get("accept", "")


def as_json(body: str, status: int = 200) -> Response:
    """JSON that was made in a thread: the event loop only sends it."""
    return Response(body, status, media_type="application/json")


@router.post(
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
        Wanted(body.question, body.clarify, body.explain, body.system),
        caller.id,
        seconds=body.seconds,
        threshold=body.threshold,
        streamed=streamed,
        parent=request.headers,
    )
    if streamed:
        return await service.stream(running)
    return as_json(await service.result(running, request))
