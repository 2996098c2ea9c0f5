"""The studio over HTTP: routes, who may use them, and how it runs. Pages are added by `create_app(…, pages)`."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from whichsense import __version__
from whichsense.errors import BadInput, WhichsenseError
from whichsense.serve import problems
from whichsense.serve.guard import Guard, json_only
from whichsense.serve.problems import Problem, Refused
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.telemetry import Telemetry
from whichsense.studio import leading, pages
from whichsense.studio.access import (
    NOBODY,
    NOT_HELD,
    PROBLEMS,
    Annotator,
    Body,
    Desk,
    Json,
    Number,
    cookie_name,
    problem_of,
    session_of,
)
from whichsense.studio.database import encode
from whichsense.studio.members import Session
from whichsense.studio.workbench import Studio

PORT = 8010
BODY_BYTES = 4 * 2**20
_MONTH = 30 * 86_400
_log = logging.getLogger("whichsense.studio")


class Invitation(Body):
    invitation: str = Field(max_length=200)


class TakeBody(Body):
    item: int | None = Field(None, ge=1, le=2**31 - 1)


class VersionBody(Body):
    version: int = Field(ge=0, le=2**31 - 1)


class SaveBody(VersionBody):
    set: Json


class UndoBody(VersionBody):
    to: int | None = Field(None, ge=0, le=2**31 - 1)


class CheckBody(Body):
    value: Json


class RenewBody(Body):
    active: bool = False


class LeaveBody(Body):
    skip: str = Field("", max_length=1000)


class SearchBody(Body):
    query: str = Field(min_length=1, max_length=1000)
    k: int = Field(20, ge=1, le=100)


class ViewBody(Body):
    passage: str = Field(min_length=1, max_length=1000)


class NoteBody(Body):
    text: str = Field(min_length=1, max_length=10_000)


# Sessions and the project.

router = APIRouter(prefix="/v1", dependencies=[Depends(json_only)])


@router.post("/session")
def begin_session(body: Invitation, request: Request, studio: Desk) -> Response:
    """Accept an invitation."""
    session = studio.members.begin_session(body.invitation)
    if session is None:
        raise Refused(NOBODY)
    response = JSONResponse(_about_session(studio, session))
    response.set_cookie(
        cookie_name(studio),
        session.cookie,
        max_age=_MONTH,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@router.get("/session")
def session(studio: Desk, own: Annotated[Session, Depends(session_of)]) -> Json:
    """Who I am, and the token for changes."""
    return _about_session(studio, own)


@router.delete("/session")
def end_session(request: Request, studio: Desk, member: Annotator) -> Response:
    """Sign out of this browser."""
    studio.members.end_session(request.cookies.get(cookie_name(studio), ""))
    response = Response(status_code=204)
    response.delete_cookie(cookie_name(studio))
    return response


def _about_session(studio: Studio, own: Session) -> Json:
    return {"member": dataclasses.asdict(own.member), "csrf": own.token}


@router.get("/project")
def project(studio: Desk, member: Annotator) -> Json:
    """What is asked, and how the form looks."""
    kind = studio.kind
    return {
        "name": studio.project.name,
        "kind": kind.name,
        "title": kind.title,
        "guidelines": studio.settings.guidelines,
        "fields": [dataclasses.asdict(one) for one in kind.fields],
        "searches": kind.searches,
        "suggestions": studio.settings.suggestions,
        "require_search": studio.settings.require_search,
        "lease": studio.settings.lease,
    }


@router.get("/work")
def work(studio: Desk, member: Annotator) -> Json:
    """What I have done, newest first."""
    return {"items": studio.own_work(member)}


# An item, from taking it to submitting it.


@router.post("/take")
def take(body: TakeBody, studio: Desk, member: Annotator) -> Json:
    """Take the next item, or a given one."""
    view = studio.take(member, body.item)
    if view is None and body.item is not None:
        raise Refused(NOT_HELD)
    return {"view": view}


@router.get("/items/{number}")
def view(number: Number, studio: Desk, member: Annotator) -> Json:
    """An item as I see it: with my draft, and nothing of others."""
    return studio.view(member, number)


@router.post("/items/{number}/save")
def save(number: Number, body: SaveBody, studio: Desk, member: Annotator) -> Json:
    """Keep changed fields of my draft."""
    return studio.save(member, number, body.version, body.set)


@router.post("/items/{number}/undo")
def undo(number: Number, body: UndoBody, studio: Desk, member: Annotator) -> Json:
    """Go back to what was there before, or to a given version."""
    return studio.undo(member, number, body.version, body.to)


@router.post("/items/{number}/submit")
def submit(number: Number, body: VersionBody, studio: Desk, member: Annotator) -> Json:
    """Submit my draft."""
    return studio.submit(member, number, body.version)


@router.post("/items/{number}/reopen")
def reopen(number: Number, body: VersionBody, studio: Desk, member: Annotator) -> Json:
    """Take back what I submitted, until it is adjudicated."""
    return studio.reopen(member, number, body.version)


@router.post("/items/{number}/check")
def check(number: Number, body: CheckBody, studio: Desk, member: Annotator) -> Json:
    """What is wrong with a value that is being typed. Nothing is kept."""
    return studio.check(number, body.value, member)


@router.post("/items/{number}/renew")
def renew(number: Number, body: RenewBody, studio: Desk, member: Annotator) -> Json:
    """Hold an item for longer."""
    return {"until": studio.renew(member, number, body.active).until}


@router.post("/items/{number}/leave", status_code=204)
def leave(number: Number, body: LeaveBody, studio: Desk, member: Annotator) -> None:
    """Put an item back."""
    studio.leave(member, number, body.skip)


@router.post("/items/{number}/search")
def search(number: Number, body: SearchBody, studio: Desk, member: Annotator) -> Json:
    """Search beside the form."""
    return {"hits": studio.search(member, number, body.query, body.k)}


@router.post("/items/{number}/view")
def read_page(number: Number, body: ViewBody, studio: Desk, member: Annotator) -> Json:
    """Read the page that a passage is from."""
    return studio.read_page(member, number, body.passage)


@router.post("/items/{number}/note", status_code=204)
def note(number: Number, body: NoteBody, studio: Desk, member: Annotator) -> None:
    """Tell the owner something about an item."""
    studio.note(member, number, body.text)


# The application.


def create_app(
    studio: Studio, settings: ServiceSettings | None = None, pages: APIRouter | None = None
) -> FastAPI:
    """The application over a studio, which the caller closes. `pages` are served beside the routes."""
    settings = settings or service_settings(studio)
    app = FastAPI(
        title="whichsense studio",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        default_response_class=_AsciiResponse,
    )
    app.state.studio = studio
    problems.install(app)
    for told in (Refused, WhichsenseError, *PROBLEMS):
        app.add_exception_handler(told, _refused)
    app.include_router(router)
    app.include_router(leading.router)
    if pages is not None:
        app.include_router(pages)
    app.add_middleware(Guard, settings=settings, telemetry=Telemetry())
    app.add_middleware(_RefusalLog)
    return app


class _AsciiResponse(JSONResponse):
    """JSON that can hold whatever people write, half of a surrogate pair too, for which UTF-8 has no bytes."""

    def render(self, content: Any) -> bytes:
        return encode(content).encode()


class _RefusalLog:
    """Writes down what was refused to whom, by the routes or by the guard before them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            status = message.get("status", 0)
            if message["type"] == "http.response.start" and status >= 400:
                who = (scope.get("client") or ("",))[0]
                sent = scope["method"], scope["path"]
                _log.warning("refused %s %r from %s: %s", *sent, who, status)
            await send(message)

        await self._app(scope, receive, watched)


async def _refused(request: Request, error: Exception) -> Response:
    """Answer with the problem."""
    if isinstance(error, BadInput):  # our own words, which name no file here
        problem = Problem(422, "not-usable", str(error), "Correct it, and send it again.")
    else:
        problem = problem_of(error)
    if isinstance(error, SQLAlchemyError):
        cause = getattr(error, "orig", error)  # without people's texts
        _log.error("the database does not answer: %s", cause)
    return problem.response(request.url.path)


def service_settings(
    studio: Studio, host: str = "127.0.0.1", port: int = PORT, hosts: tuple[str, ...] = ()
) -> ServiceSettings:
    """What guards the studio: the service's own limits, with room for long texts."""
    return ServiceSettings(
        host=host, port=port, hosts=hosts, body_bytes=BODY_BYTES, state=studio.project.folder
    )


def run_studio(
    studio: Studio, settings: ServiceSettings, say: Callable[[str], None] = lambda line: None
) -> None:
    """Serve until a signal ends it. `say` is told the address once the socket is bound."""
    from whichsense.serve.app import BoundedProtocol

    config = uvicorn.Config(
        create_app(studio, settings, pages.router),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=BoundedProtocol,
        timeout_graceful_shutdown=int(settings.grace),
    )
    socket = config.bind_socket()
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    say(f"{studio.project.name} at http://{host}:{socket.getsockname()[1]}")
    uvicorn.Server(config).run([socket])
