"""Who asks, what they may do, and how what went wrong is told: for all routes of the studio."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Path, Request
from pydantic import BaseModel, ConfigDict

from whichsense.serve.problems import Problem, Refused
from whichsense.studio.history import Draft, NotHeld, Stale
from whichsense.studio.members import Member, Session
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


def studio_of(request: Request) -> Studio:
    studio: Studio = request.app.state.studio
    return studio


def cookie_name(studio: Studio) -> str:
    """Browsers send a host's cookies to all of its ports: each project has its own."""
    folder = str(studio.project.folder.resolve())
    return f"studio-{hashlib.sha256(folder.encode()).hexdigest()[:12]}"


def session_of(request: Request) -> Session:
    """The session of a browser, or of a key; Refused where there is none."""
    members = studio_of(request).members
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        member = members.of_key(key.strip())
        if member is None:
            raise Refused(NOBODY)
        return Session(member, "")
    session = members.session(request.cookies.get(cookie_name(studio_of(request)), ""))
    if session is None:
        raise Refused(NOBODY)
    sent = request.headers.get("x-csrf-token", "")
    if request.method not in ("GET", "HEAD") and sent != session.token:
        raise Refused(_FORGED)
    return session


def requires(role: str) -> Callable[..., Member]:
    """A dependency: the member who asks, with the rights of a role."""

    def member(session: Annotated[Session, Depends(session_of)]) -> Member:
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
Desk = Annotated[Studio, Depends(studio_of)]
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


# What went wrong.


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


@contextlib.contextmanager
def told(yours: Any = None) -> Any:
    """Turn what went wrong into problems."""
    try:
        yield
    except Stale as stale:
        raise Refused(_stale(stale.draft, yours)) from None
    except NotHeld:
        raise Refused(NOT_HELD) from None
    except NotComplete as error:
        raise Refused(_incomplete(error)) from None


def invitation_link(base: str, token: str) -> str:
    """The link of an invitation. What is behind # is sent to no server by itself, and stands in no log."""
    return f"{base.rstrip('/')}/#invitation={token}"
