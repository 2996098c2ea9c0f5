"""Who asks, what they may do, and how what went wrong is told: for all routes of the studio."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from fastapi import Depends, Path, Request
from pydantic import BaseModel, ConfigDict
from sqlalchemy.exc import InterfaceError, OperationalError, TimeoutError

from whichsense.serve import problems
from whichsense.serve.problems import Problem, Refused
from whichsense.studio.adjudication import OwnAnnotation
from whichsense.studio.history import NotHeld, Stale
from whichsense.studio.members import Member, Paused, Revoked, Session
from whichsense.studio.workbench import NotComplete, Studio

NOBODY = Problem(
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
NOT_HELD = Problem(
    409,
    "lease",
    "You do not hold this item, or no longer.",
    "Take it again; what you wrote is kept. If somebody else has it by now, take the next one.",
)
_OWN = Problem(
    403,
    "own",
    "You annotated this item yourself.",
    "Leave the decision to another adjudicator. An owner invites one under “People”.",
)
_NO_DATABASE = Problem(
    503,
    "database",
    "The project's database does not answer.",
    "Try again in a few seconds; the service goes on by itself once the database is back. If it lasts, tell an owner.",
    headers={"Retry-After": "5"},
)


async def studio_of(request: Request) -> Studio:
    """The studio that is served. Not a plain function: that would wait for a thread of its own."""
    studio: Studio = request.app.state.studio
    return studio


def cookie_name(studio: Studio) -> str:
    """Browsers send a host's cookies to all of its ports: each project has its own."""
    folder = str(studio.project.folder.resolve())
    return f"studio-{hashlib.sha256(folder.encode()).hexdigest()[:12]}"


def session_of(request: Request) -> Session:
    """The session of a browser, or of a key; Refused where there is none."""
    studio: Studio = request.app.state.studio
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        member = studio.members.of_key(key.strip())
        if member is None:
            raise Refused(NOBODY)
        return Session(member, "")
    session = studio.members.session(request.cookies.get(cookie_name(studio), ""))
    if session is None:
        raise Refused(NOBODY)
    sent = request.headers.get("x-csrf-token", "")
    if request.method not in ("GET", "HEAD") and sent != session.token:
        raise Refused(_FORGED)
    return session


def requires(role: str) -> Callable[..., Member]:
    """A dependency: the member who asks, with the rights of a role."""

    def member(request: Request) -> Member:
        found = session_of(request).member
        if not found.may(role):
            raise Refused(
                Problem(
                    403,
                    "role",
                    f"This is for {role}s.",
                    f"Ask an owner of the project for an invitation as {role}.",
                )
            )
        return found

    return member


Annotator = Annotated[Member, Depends(requires("annotator"))]
Adjudicator = Annotated[Member, Depends(requires("adjudicator"))]
Owner = Annotated[Member, Depends(requires("owner"))]
Desk = Annotated[Studio, Depends(studio_of)]
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


Json = dict[str, Any]
"""An object, as it is sent and answered."""


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


# What went wrong.


@dataclass(frozen=True, slots=True)
class _Detailed(Problem):
    """A problem with more to show."""

    details: Mapping[str, Any] = field(default_factory=dict)

    def body(self) -> Json:
        return {**Problem.body(self), **self.details}


_STALE = _Detailed(
    409,
    "stale",
    "This was changed in another window.",
    "Compare the two texts, and save again with the version that is here.",
)
_INCOMPLETE = _Detailed(
    422, "incomplete", "Something is missing or wrong in the form.", "See 'findings'."
)


PROBLEMS: dict[type[Exception], Callable[[Any], Problem]] = {
    Revoked: lambda _: NOBODY,
    Paused: lambda reason: Problem(
        403, "paused", f"You are paused: {reason}", "Ask an owner of the project."
    ),
    NotHeld: lambda _: NOT_HELD,
    OwnAnnotation: lambda _: _OWN,
    Stale: lambda error: replace(
        _STALE, details={"yours": error.yours, "theirs": dataclasses.asdict(error.draft)}
    ),
    NotComplete: lambda error: replace(
        _INCOMPLETE, details={"findings": list(map(dataclasses.asdict, error.findings))}
    ),
    OperationalError: lambda _: _NO_DATABASE,
    InterfaceError: lambda _: _NO_DATABASE,
    TimeoutError: lambda _: _NO_DATABASE,
}
"""What an exception is answered with."""


def problem_of(error: Exception) -> Problem:
    """The problem that an exception is."""
    for kind, make in PROBLEMS.items():
        if isinstance(error, kind):
            return make(error)
    return problems.problem_of(error)
