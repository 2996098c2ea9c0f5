"""/v1/cases: rejoin a running answer, replay one that has ended, judge it, delete it, list what was asked."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import Response

from whichsense.serve.access import Caller
from whichsense.serve.events import Event, EventStream, dump, replayed
from whichsense.serve.problems import Refused, busy, not_found
from whichsense.serve.routes.ask import Asks, as_json, service_of, wants_events
from whichsense.serve.schemas.description import STREAM, problems
from whichsense.serve.schemas.requests import FeedbackRequest
from whichsense.serve.schemas.responses import CaseList, CaseState, FeedbackList
from whichsense.serve.service import Service
from whichsense.serve.state.traces import Feedback, Kind
from whichsense.types import Case, ServedCase

router = APIRouter(prefix="/v1/cases", tags=["cases"])
CaseId = Annotated[str, Path(max_length=100)]
_FIX = "Take the id from an answer of this service. One that was deleted, or not answered before a stop, is gone."


@router.get("", response_model=CaseList, responses=problems(422))
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
) -> Response:
    """What was asked, newest first: a key sees its own cases, one with the scope `write` all of them."""
    service = service_of(request)

    def work() -> str:
        rows = service.traces.summaries(
            limit, before, caller.sees, kind=kind, containing=containing
        )
        return dump({"cases": [dataclasses.asdict(row) for row in rows]})

    return as_json(await service.briefly(work))


@router.get(
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
            return EventStream(live, case_id)
        if finished is not None:
            return EventStream(_replay(finished, after), case_id)
    elif finished is not None:
        return as_json(dump(finished.to_json() | {"state": "finished"}))
    elif live is not None:
        table = {
            "id": case_id,
            "state": "running",
            "system": "",
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
        if caller.sees in (None, running.owner):
            return running.follow(after, service.settings.heartbeat)
        return None
    if service.settings.workers == 1:
        return None
    owner = await service.briefly(lambda: service.shared.owner(case_id))
    if owner is None or caller.sees not in (None, owner):
        return None
    return service.answers.follow_elsewhere(case_id, after)


async def _finished(
    service: Service, case_id: str, caller: Caller
) -> ServedCase | None:
    """A case that is kept; one whose trace was lost as long as its stream can be rejoined."""
    kept = await service.briefly(
        lambda: service.traces.find_served(case_id, caller.sees)
    )
    running = service.answers.find(case_id)
    if kept is not None or running is None or not running.ended:
        return kept
    if running.last_event.name != "done" or caller.sees not in (None, running.owner):
        return None
    value = json.loads(running.last_event.data)
    case = Case.from_json(value.get("case") or value["conversation"]["case"])
    return ServedCase(case_id, case, value.get("system", ""))


async def _replay(served: ServedCase, after: int) -> AsyncIterator[Event | None]:
    for event in replayed(dump(served.to_json()), served.case):
        if event.number > after or event.last:
            yield event


@router.delete("/{case_id}", status_code=204, responses=problems(404, 422))
async def delete(case_id: CaseId, request: Request, caller: Asks) -> Response:
    """Cancel an answer that runs; delete one that has ended, with its feedback."""
    service = service_of(request)
    running = service.answers.find(case_id)
    if running and not running.ended and caller.sees in (None, running.owner):
        service.answers.cancel(running)
        return Response(status_code=204)

    def work() -> bool:
        owner = service.shared.owner(case_id)
        if owner is not None and caller.sees in (None, owner):
            service.shared.cancel(case_id)
            service.traces.delete(case_id)
            return True
        if service.traces.find(case_id, caller.sees) is None:
            return False
        return service.traces.delete(case_id)

    if not await service.briefly(work):
        raise not_found("case", _FIX)
    return Response(status_code=204)


@router.post(
    "/{case_id}/feedback", response_model=FeedbackList, responses=problems(404, 422)
)
async def feedback(
    case_id: CaseId, body: FeedbackRequest, request: Request, caller: Asks
) -> Response:
    """Say what you think of an answer. All that was said of it comes back."""
    service = service_of(request)
    said = Feedback(body.verdict, body.about, body.correction)

    def work() -> str | None:
        if service.traces.find(case_id, caller.sees) is None:
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


@router.get(
    "/{case_id}/feedback", response_model=FeedbackList, responses=problems(404, 422)
)
async def said(case_id: CaseId, request: Request, caller: Asks) -> Response:
    """What was said of an answer, oldest first."""
    service = service_of(request)

    def work() -> str | None:
        if service.traces.find(case_id, caller.sees) is None:
            return None
        return _feedback(service, case_id)

    answer = await service.briefly(work)
    if answer is None:
        raise not_found("case", _FIX)
    return as_json(answer)


def _feedback(service: Service, case_id: str) -> str:
    rows = service.traces.feedback(case_id)
    return dump({"feedback": [dataclasses.asdict(row) for row in rows]})
