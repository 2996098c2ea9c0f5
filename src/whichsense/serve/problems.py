"""Errors as problem+json, each with its fix."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette._utils import get_route_path
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Mount

from whichsense.errors import BadInput, ClusterFault, IndexFault, MissingStage, WhichsenseError

MEDIA_TYPE = "application/problem+json"
OPENAI_PATHS = ("/v1/models", "/v1/chat/completions", "/v1/responses")
"""Clients of these expect OpenAI's errors."""
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_OPENAI_CODES = {"key": "invalid_api_key"}  # where clients know another name
_log = logging.getLogger("whichsense.serve")


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong, as the client is told it."""

    status: int
    kind: str
    """The last part of the problem's type: "queue-full"."""
    title: str
    fix: str
    errors: Sequence[Mapping[str, str]] = ()
    instance: str = ""
    """What the service's log calls this failure."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        table: dict[str, Any] = {
            "type": f"urn:whichsense:problem:{self.kind}",
            "title": self.title,
            "status": self.status,
            "fix": self.fix,
        }
        if self.instance:
            table["instance"] = f"urn:whichsense:case:{self.instance}"
        if self.errors:
            table["errors"] = [dict(error) for error in self.errors]
        return table

    def openai_body(self) -> dict[str, Any]:
        """The problem as OpenAI's clients read it. The message ends with the fix."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        wrong = [(error["where"].removeprefix("body."), error["problem"]) for error in self.errors]
        words = [self.title, *(f"{where}: {what}." for where, what in wrong), self.fix]
        code = _OPENAI_CODES.get(self.kind, self.kind.replace("-", "_"))
        return {
            "error": {
                "message": " ".join(words),
                "type": _OPENAI_TYPES.get(self.status, kind),
                "param": wrong[0][0] if wrong else None,
                "code": code,
            }
        }

    def response(self, path: str = "") -> Response:
        """The response to a request at a path."""
        body, status, kind = self.body(), self.status, MEDIA_TYPE
        if path.startswith(OPENAI_PATHS):
            # Their clients know 400 as the status of a body that cannot be used.
            status = 400 if status == 422 else status
            body, kind = self.openai_body(), "application/json"
        return Response(json.dumps(body), status, dict(self.headers), media_type=kind)


class Refused(HTTPException):
    """Ends a request with a problem. FastAPI passes its own kind of exception on, wherever it is raised."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.status, problem.title)
        self.problem = problem


def not_found(what: str, fix: str) -> Refused:
    return Refused(Problem(404, "not-found", f"There is no such {what}.", fix))


def busy(kind: str, title: str, seconds: float) -> Problem:
    """429: try again after so many seconds."""
    wait = max(1, round(seconds))
    fix = f"Ask again in {wait} s."
    return Problem(429, kind, title, fix, headers={"Retry-After": str(wait)})


STOPPING = Problem(
    503,
    "stopping",
    "The service is being stopped.",
    "Ask again in a moment.",
    headers={"Retry-After": "5"},
)
_ANEW = "Ask the question again."
_ENDED = "The process that worked on this answer has ended."
DIED = Problem(503, "worker-ended", _ENDED, _ANEW)
CANCELLED = Problem(410, "cancelled", "This answer was cancelled.", _ANEW)
INTERNAL = Problem(
    500,
    "internal",
    "The service failed at this request.",
    "Ask again; if it fails again, report its 'instance', or the X-Request-Id of this response.",
)
# What HTTP itself refuses, by status: kind, title, fix.
_UNREADABLE = ("request", "The request cannot be read.", "Send valid JSON; see /openapi.json.")
_PLAIN = {
    404: ("not-found", "There is nothing at this path.", "See /openapi.json."),
    405: ("method", "This path has no such method.", "Use one that the Allow header names."),
}
# The first kind that an error is of counts: its status, kind, title and fix.
_OURS: dict[type[WhichsenseError], tuple[int, str, str, str]] = {
    MissingStage: (
        409,
        "missing-stage",
        "The system that is served has no stage for this.",
        'Ask without "clarify" and "explain", or serve a system that has a clarifier and a summarizer.',
    ),
    BadInput: (
        422,
        "not-usable",
        "This cannot be asked of the index that is served.",
        "Check the question, the method and the ids.",
    ),
    IndexFault: (
        503,
        "index",
        "The index cannot be read.",
        "Tell the operator: whichsense index check DIR says what is wrong.",
    ),
    ClusterFault: (
        503,
        "shard",
        "A part of the index does not answer.",
        "Ask again in a moment: it is being started again.",
    ),
    WhichsenseError: (
        503,
        "not-configured",
        "The service is not set up for this.",
        "Tell the operator: the service's log has the reason.",
    ),
}


def problem_of(error: Exception, case_id: str = "") -> Problem:
    """How a client is told of an error. Messages of our own errors may name files: they go to the log alone."""
    if isinstance(error, Refused):
        return error.problem
    if not isinstance(error, MissingStage | BadInput):
        _log.error("a request failed: %s", case_id, exc_info=error)
    for kind, told in _OURS.items():
        if isinstance(error, kind):
            return Problem(*told)
    return replace(INTERNAL, instance=case_id)


def install(app: FastAPI) -> None:
    """Answer every exception of a route with a problem."""
    for kind in (WhichsenseError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _respond)


async def _respond(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        problem = _invalid(error.errors())
    elif isinstance(error, HTTPException) and not isinstance(error, Refused):
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(_allowed(request))
        told = _PLAIN.get(error.status_code, _UNREADABLE)
        problem = Problem(error.status_code, *told, headers=headers)
    else:
        problem = problem_of(error)
    return problem.response(get_route_path(request.scope))


def _allowed(request: Request) -> list[str]:
    """The methods that this path has, by trying them: starlette names those of the first route alone."""
    allowed = []
    for method in ("DELETE", "GET", "PATCH", "POST", "PUT"):
        scope = dict(request.scope) | {"method": method}
        for route in request.app.routes:
            is_page = isinstance(route, Mount)
            if not is_page and route.matches(scope)[0] is Match.FULL:
                allowed += ["GET", "HEAD"] if method == "GET" else [method]
                break
    return allowed or ["GET", "HEAD"]  # a file of the page


def _invalid(errors: Sequence[Any]) -> Problem:
    """Which fields are wrong, without what was sent."""
    if any(error["type"] == "json_invalid" for error in errors):
        fix = "Send one JSON object in UTF-8; see /openapi.json."
        return Problem(400, "json", "The body is not valid JSON.", fix)
    shown = []
    for error in errors[:20]:
        where = ".".join(str(part)[:40] for part in error["loc"])
        message = str(error["msg"]).removeprefix("Value error, ")
        shown.append({"where": where, "problem": message[:200]})
    names = list(dict.fromkeys(error["where"] for error in shown))
    return Problem(
        422,
        "fields",
        "Some fields are missing or have a wrong value.",
        f"Correct {', '.join(names[:5])}; see 'errors' and /openapi.json.",
        shown,
    )
