"""The studio over HTTP: routes, who may use them, and how it runs. Pages are added by `create_app(…, pages)`."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from whichsense import __version__
from whichsense.errors import BadInput, WhichsenseError
from whichsense.serve import problems
from whichsense.serve.app import BoundedProtocol
from whichsense.serve.guard import Guard, json_only
from whichsense.serve.problems import Problem, Refused, not_found
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.telemetry import Telemetry
from whichsense.studio import pages
from whichsense.studio.history import Draft, NotHeld, Stale, read_events
from whichsense.studio.members import Member, Session
from whichsense.studio.workbench import NotComplete, Studio

PORT = 8010
BODY_BYTES = 4 * 2**20
_MONTH = 30 * 86_400
_log = logging.getLogger("whichsense.studio")

_NOBODY = Problem(
    401,
    "member",
    "This needs an invitation.",
    "Open the link that you were sent; its owner makes another with whichsense studio invite.",
    headers={"WWW-Authenticate": 'Bearer realm="whichsense studio"'},
)
_FORGED = Problem(
    403,
    "csrf",
    "The request does not carry this session's token.",
    "Load the page again. A program sends the header X-CSRF-Token, or its key as Authorization: Bearer.",
)
_NOT_HELD = Problem(
    409,
    "lease",
    "You do not hold this item, or no longer.",
    "Take it again; what you wrote is kept. If somebody else has it by now, take the next one.",
)


@dataclass(frozen=True, slots=True)
class _Detailed(Problem):
    """A problem with more to show."""

    details: Mapping[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        return {**Problem.body(self), **self.details}


def _stale(draft: Draft, yours: Any) -> Problem:
    return _Detailed(
        409,
        "stale",
        "This was changed in another window.",
        "Compare the two texts, and save again with the version that is here.",
        details={"yours": yours, "theirs": dataclasses.asdict(draft)},
    )


def _incomplete(error: NotComplete) -> Problem:
    findings = [dataclasses.asdict(one) for one in error.findings]
    return _Detailed(
        422,
        "incomplete",
        "Something is missing or wrong in the form.",
        "See 'findings'.",
        details={"findings": findings},
    )


# Who asks.


def _studio(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio


def cookie_name(studio: Studio) -> str:
    """Browsers send a host's cookies to all of its ports: each project has its own."""
    folder = str(studio.project.folder.resolve())
    return f"studio-{hashlib.sha256(folder.encode()).hexdigest()[:12]}"


def _session(request: Request) -> Session:
    """The session of a browser, or of a key; Refused where there is none."""
    members = _studio(request).members
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        member = members.of_key(key.strip())
        if member is None:
            raise Refused(_NOBODY)
        return Session(member, "")
    session = members.session(request.cookies.get(cookie_name(_studio(request)), ""))
    if session is None:
        raise Refused(_NOBODY)
    sent = request.headers.get("x-csrf-token", "")
    if request.method not in ("GET", "HEAD") and sent != session.token:
        raise Refused(_FORGED)
    return session


def requires(role: str) -> Callable[..., Member]:
    """A dependency: the member who asks, with the rights of a role."""

    def member(session: Annotated[Session, Depends(_session)]) -> Member:
        if not session.member.may(role):
            raise Refused(
                Problem(
                    403,
                    "role",
                    f"This is for {role}s.",
                    f"Ask an owner of the project for an invitation as {role}.",
                )
            )
        return session.member

    return member


Annotator = Annotated[Member, Depends(requires("annotator"))]
Adjudicator = Annotated[Member, Depends(requires("adjudicator"))]
Owner = Annotated[Member, Depends(requires("owner"))]
Desk = Annotated[Studio, Depends(_studio)]
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Invitation(_Body):
    invitation: str = Field(max_length=200)


class TakeBody(_Body):
    item: int | None = Field(None, ge=1, le=2**31 - 1)


class VersionBody(_Body):
    version: int = Field(ge=0, le=2**31 - 1)


class SaveBody(VersionBody):
    set: dict[str, Any]


class UndoBody(VersionBody):
    to: int | None = Field(None, ge=0, le=2**31 - 1)


class CheckBody(_Body):
    value: dict[str, Any]


class RenewBody(_Body):
    active: bool = False


class LeaveBody(_Body):
    skip: str = Field("", max_length=1000)


class SearchBody(_Body):
    query: str = Field(min_length=1, max_length=1000)
    k: int = Field(20, ge=1, le=100)


class ViewBody(_Body):
    passage: str = Field(min_length=1, max_length=1000)


class NoteBody(_Body):
    text: str = Field(min_length=1, max_length=10_000)


class InviteBody(_Body):
    name: str = Field(max_length=100)
    role: str = "annotator"


class ReasonBody(_Body):
    reason: str = Field("", max_length=1000)


# Sessions and the project.

router = APIRouter(prefix="/v1", dependencies=[Depends(json_only)])


@router.post("/session")
def begin_session(body: Invitation, request: Request, studio: Desk) -> Response:
    """Accept an invitation."""
    session = studio.members.begin_session(body.invitation)
    if session is None:
        raise Refused(_NOBODY)
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
def session(studio: Desk, own: Annotated[Session, Depends(_session)]) -> dict[str, Any]:
    """Who I am, and the token for changes."""
    return _about_session(studio, own)


@router.delete("/session")
def end_session(request: Request, studio: Desk, member: Annotator) -> Response:
    """Sign out of this browser."""
    studio.members.end_session(request.cookies.get(cookie_name(studio), ""))
    response = Response(status_code=204)
    response.delete_cookie(cookie_name(studio))
    return response


def _about_session(studio: Studio, own: Session) -> dict[str, Any]:
    return {"member": dataclasses.asdict(own.member), "csrf": own.token}


@router.get("/project")
def project(studio: Desk, member: Annotator) -> dict[str, Any]:
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
def work(studio: Desk, member: Annotator) -> dict[str, Any]:
    """What I have done, newest first."""
    return {"items": studio.own_work(member)}


# An item, from taking it to submitting it.


@router.post("/take")
def take(body: TakeBody, studio: Desk, member: Annotator) -> dict[str, Any]:
    """Take the next item, or a given one."""
    if member.paused:
        raise Refused(
            Problem(
                403,
                "paused",
                f"You are paused: {member.paused}",
                "Ask an owner of the project.",
            )
        )
    view = studio.take(member, body.item)
    if view is None and body.item is not None:
        raise Refused(_NOT_HELD)
    return {"view": view}


@router.get("/items/{number}")
def view(number: Number, studio: Desk, member: Annotator) -> dict[str, Any]:
    """An item as I see it: with my draft, and nothing of others."""
    return studio.view(member, number)


@router.post("/items/{number}/save")
def save(
    number: Number, body: SaveBody, studio: Desk, member: Annotator
) -> dict[str, Any]:
    """Keep changed fields of my draft."""
    with _told(body.set):
        return studio.save(member, number, body.version, body.set)


@router.post("/items/{number}/undo")
def undo(
    number: Number, body: UndoBody, studio: Desk, member: Annotator
) -> dict[str, Any]:
    """Go back to what was there before, or to a given version."""
    with _told():
        return studio.undo(member, number, body.version, body.to)


@router.post("/items/{number}/submit")
def submit(
    number: Number, body: VersionBody, studio: Desk, member: Annotator
) -> dict[str, Any]:
    """Submit my draft."""
    with _told():
        return studio.submit(member, number, body.version)


@router.post("/items/{number}/reopen")
def reopen(
    number: Number, body: VersionBody, studio: Desk, member: Annotator
) -> dict[str, Any]:
    """Take back what I submitted, until it is adjudicated."""
    with _told():
        return studio.reopen(member, number, body.version)


@router.post("/items/{number}/check")
def check(
    number: Number, body: CheckBody, studio: Desk, member: Annotator
) -> dict[str, Any]:
    """What is wrong with a value that is being typed. Nothing is kept."""
    return studio.check(number, body.value, member)


@router.post("/items/{number}/renew")
def renew(
    number: Number, body: RenewBody, studio: Desk, member: Annotator
) -> dict[str, Any]:
    """Hold an item for longer."""
    with _told():
        return {"until": studio.renew(member, number, body.active).until}


@router.post("/items/{number}/leave", status_code=204)
def leave(number: Number, body: LeaveBody, studio: Desk, member: Annotator) -> None:
    """Put an item back."""
    with _told():
        studio.leave(member, number, body.skip)


@router.post("/items/{number}/search")
def search(
    number: Number, body: SearchBody, studio: Desk, member: Annotator
) -> dict[str, Any]:
    """Search beside the form."""
    with _told():
        return {"hits": studio.search(member, number, body.query, body.k)}


@router.post("/items/{number}/view")
def read_page(
    number: Number, body: ViewBody, studio: Desk, member: Annotator
) -> dict[str, Any]:
    """Read the page that a passage is from."""
    with _told():
        return studio.read_page(member, number, body.passage)


@router.post("/items/{number}/note", status_code=204)
def note(number: Number, body: NoteBody, studio: Desk, member: Annotator) -> None:
    """Tell the owner something about an item."""
    with _told():
        studio.note(member, number, body.text)


@contextlib.contextmanager
def _told(yours: Any = None) -> Any:
    """Turn what went wrong into problems."""
    try:
        yield
    except Stale as stale:
        raise Refused(_stale(stale.draft, yours)) from None
    except NotHeld:
        raise Refused(_NOT_HELD) from None
    except NotComplete as error:
        raise Refused(_incomplete(error)) from None


# For owners.


@router.get("/status")
def status(studio: Desk, member: Adjudicator) -> dict[str, Any]:
    """How far the project is, and who did what."""
    return studio.status()


@router.get("/events")
def events(
    studio: Desk,
    member: Owner,
    item: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    annotator: Annotated[str | None, Query(max_length=100)] = None,
) -> dict[str, Any]:
    """Everything that happened, of an item or of a member."""
    with studio.database.reading() as connection:
        history = read_events(connection, item, annotator)
    return {"events": [dataclasses.asdict(one) for one in history]}


@router.get("/members")
def members(studio: Desk, member: Owner) -> dict[str, Any]:
    """Everyone who takes part."""
    return {"members": [dataclasses.asdict(one) for one in studio.members.all()]}


@router.post("/members", status_code=201)
def invite(
    body: InviteBody, request: Request, studio: Desk, member: Owner
) -> dict[str, Any]:
    """Invite somebody; the link is shown once."""
    token = studio.members.invite(body.name, body.role)
    return {"link": invitation_link(str(request.base_url), token)}


@router.delete("/members/{member_id}", status_code=204)
def revoke(member_id: str, studio: Desk, member: Owner) -> None:
    """End a membership; what was written is kept."""
    _existing(studio, member_id)
    studio.members.revoke(member_id, member.id)


@router.post("/members/{member_id}/pause", status_code=204)
def pause(member_id: str, body: ReasonBody, studio: Desk, member: Owner) -> None:
    """Give a member nothing new."""
    _existing(studio, member_id)
    studio.members.pause(member_id, body.reason or "by an owner", member.id)


@router.post("/members/{member_id}/resume", status_code=204)
def resume(member_id: str, studio: Desk, member: Owner) -> None:
    """Let a paused member go on."""
    _existing(studio, member_id)
    studio.members.resume(member_id, member.id)


def _existing(studio: Studio, member_id: str) -> None:
    if studio.members.find(member_id) is None:
        raise not_found("member", "See /v1/members.")


def invitation_link(base: str, token: str) -> str:
    """The link of an invitation. What is behind # is sent to no server by itself, and stands in no log."""
    return f"{base.rstrip('/')}/#invitation={token}"


# The application.


def create_app(
    studio: Studio,
    settings: ServiceSettings | None = None,
    pages: APIRouter | None = None,
) -> FastAPI:
    """The application over a studio, which the caller closes. `pages` are served beside the routes."""
    settings = settings or service_settings(studio)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield

    app = FastAPI(
        title="whichsense studio",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.studio = studio
    problems.install(app)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(WhichsenseError, _refused)
    app.include_router(router)
    if pages is not None:
        app.include_router(pages)
    app.add_middleware(Guard, settings=settings, telemetry=Telemetry())
    return app


async def _refused(request: Request, error: Exception) -> Response:
    """Answer with the problem, and write down what was refused to whom."""
    if isinstance(error, BadInput):  # our own words, which name no file here
        problem = Problem(
            422, "not-usable", str(error), "Correct it, and send it again."
        )
    else:
        problem = problems.problem_of(error)
    who = request.client.host if request.client else ""
    _log.warning(
        "refused %s %s from %s: %s %s",
        request.method,
        request.url.path,
        who,
        problem.status,
        problem.kind,
    )
    return problem.response(request.url.path)


def service_settings(
    studio: Studio,
    host: str = "127.0.0.1",
    port: int = PORT,
    hosts: tuple[str, ...] = (),
) -> ServiceSettings:
    """What guards the studio: the service's own limits, with room for long texts."""
    return ServiceSettings(
        host=host,
        port=port,
        hosts=hosts,
        body_bytes=BODY_BYTES,
        state=studio.project.folder,
    )


def run_studio(
    studio: Studio,
    settings: ServiceSettings,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Serve until a signal ends it. `say` is told the address once the socket is bound."""
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
