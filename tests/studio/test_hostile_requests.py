"""Hostile requests, twelve for each route: refused, logged, nothing changed."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import pytest

from conftest import PEOPLE, Make, annotate, client, httpx, served
from whichsense.studio import Studio
from whichsense.studio.access import cookie_name
from whichsense.studio.history import read_events

# Route → a body with which its own annotator, adjudicator or owner would be heard.
ROUTES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/take"): {},
    ("POST", "/v1/items/1/save"): {"version": 1, "set": {"remark": "x"}},
    ("POST", "/v1/items/1/undo"): {"version": 1},
    ("POST", "/v1/items/1/submit"): {"version": 1},
    ("POST", "/v1/items/1/reopen"): {"version": 1},
    ("POST", "/v1/items/1/check"): {"value": {}},
    ("POST", "/v1/items/1/renew"): {"active": True},
    ("POST", "/v1/items/1/leave"): {},
    ("POST", "/v1/items/1/search"): {"query": "cup"},
    ("POST", "/v1/items/1/view"): {"passage": "1"},
    ("POST", "/v1/items/1/note"): {"text": "x"},
    ("POST", "/v1/adjudication/2"): {"version": 0, "accept": "ann"},
    ("POST", "/v1/members"): {"name": "eve", "role": "owner"},
    ("POST", "/v1/members/ann/pause"): {"reason": "x"},
    ("POST", "/v1/members/ann/resume"): {},
    ("DELETE", "/v1/members/ann"): None,
    ("DELETE", "/v1/session"): None,
    ("GET", "/v1/session"): None,
    ("GET", "/v1/project"): None,
    ("GET", "/v1/work"): None,
    ("GET", "/v1/items/1"): None,
    ("GET", "/v1/status"): None,
    ("GET", "/v1/events"): None,
    ("GET", "/v1/members"): None,
    ("GET", "/v1/adjudication"): None,
    ("GET", "/v1/adjudication/2"): None,
    ("GET", "/v1/agreement"): None,
    ("GET", "/v1/pay"): None,
    ("GET", "/v1/export/jsonl"): None,
}
HELD = ("save", "undo", "submit", "reopen", "renew", "leave", "search", "view", "note")
LEADING = ("/adjudication", "/members", "/status", "/events", "/agreement", "/pay", "/export")


@pytest.fixture
def studio(make: Make) -> Studio:
    studio = make("generate", overlap=2)
    for who in PEOPLE[:2]:
        annotate(studio, who, 2, {"outcome": "single", "answers": ["Ann Lee"]})
    return studio


def test_every_route_is_listed(studio: Studio) -> None:
    with served(studio) as address:
        assert address
    from whichsense.studio import api, leading

    there = {
        (method, route.path)
        for one in (api.router, leading.router)
        for route in one.routes
        for method in route.methods
    }
    assert len(there) == len(ROUTES) + 1  # and beginning a session, below


def hostile(
    method: str, path: str, forged: str, revoked: str, csrf: dict[str, str]
) -> list[tuple[dict[str, Any], set[int]]]:
    """Requests that come from nobody, from elsewhere, or in no form: what is sent, and what may be answered."""
    body = ROUTES[method, path]
    sent: dict[str, Any] = {} if body is None else {"json": body}
    nobody = {401}
    many = [
        ({**sent}, nobody),
        ({**sent, "headers": {"Authorization": "Bearer ws_00000000_x"}}, nobody),
        ({**sent, "headers": {"Authorization": f"Bearer {forged}"}}, nobody),
        ({**sent, "headers": {"Authorization": f"Bearer {forged}\u00e9".encode()}}, nobody),
        ({**sent, "headers": {"Authorization": f"Bearer {revoked}"}}, nobody),
        ({**sent, "headers": {"Authorization": "Basic YTpi"}}, nobody),
        ({**sent, "headers": {"Cookie": "studio-000000000000=x"}}, nobody),
        (
            {**sent, "headers": {**csrf, "X-CSRF-Token": "x"}},
            {403} if method != "GET" else {200, 403, 422},
        ),
        ({**sent, "headers": {"Authorization": f"Bearer {forged}", "X-CSRF-Token": "x"}}, nobody),
        ({**sent, "headers": {"Origin": "http://evil.example"}}, {403}),
        ({**sent, "headers": {"Sec-Fetch-Site": "cross-site", "Origin": "null"}}, {403}),
        ({**sent, "headers": {"Host": "evil.example"}}, {421}),
    ]
    if method == "POST":
        text = {"content": b"{}", "headers": {"Content-Type": "text/plain"}}
        many.append((text, {415, 401}))
        many.append(
            (
                {"content": b'{"version": "x"', "headers": {"Content-Type": "application/json"}},
                {400, 401, 422},
            )
        )
    else:
        many.append(({"headers": {"Authorization": "Bearer " + "x" * 5000}}, {401}))
    return many


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_hostile_requests_are_refused_and_logged(
    route: tuple[str, str], studio: Studio, caplog: pytest.LogCaptureFixture
) -> None:
    method, path = route
    ann, ben = studio.members.invite("own"), studio.members.invite("other")
    forged = ann[:-1] + ("A" if ann[-1] != "A" else "B")
    revoked = studio.members.invite("revoked")
    studio.members.revoke(studio.members.all()[-1].id, by="")
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(served(studio))
        own, other = (stack.enter_context(client(address, key)) for key in (ann, ben))
        plain = stack.enter_context(httpx.Client(base_url=address, timeout=600))
        own.post("/v1/take", json={"item": 1})
        own.post("/v1/items/1/save", json={"version": 0, "set": {"remark": "mine"}})
        session = studio.members.begin_session(ben)
        assert session is not None
        csrf = {"Cookie": f"{cookie_name(studio)}={session.cookie}"}
        before = everything(studio)
        caplog.set_level(logging.WARNING, "whichsense.studio")
        caplog.clear()
        refused = 0
        for request, expected in hostile(method, path, forged, revoked, csrf):
            answer = plain.request(method, path, **request)
            plain.cookies.clear()
            assert answer.status_code in expected, (request, answer.text)
            refused += answer.status_code >= 400
        body = ROUTES[route]
        sent = {} if body is None else {"json": body}
        if path.startswith(tuple(f"/v1{name}" for name in LEADING)):  # a role they do not have
            answer = other.request(method, path, **sent)
            assert answer.status_code == 403
            refused += 1
        elif path.endswith(HELD):  # another's lease
            answer = other.request(method, path, **sent)
            assert answer.status_code in (409, 422), answer.text
            refused += 1
        if path.endswith(("save", "submit")):  # a stale version
            stale = own.post(path, json={**body, "version": 0})
            assert stale.status_code == 409
            refused += 1
        assert everything(studio) == before
        lines = [record.getMessage() for record in caplog.records]
        assert sum("refused" in line for line in lines) == refused >= 12


def test_forged_invitations_begin_no_session(studio: Studio) -> None:
    with served(studio) as address, httpx.Client(base_url=address) as plain:
        before = everything(studio)
        for invitation in (
            "", "ws_", "ws_00000000_x", "x" * 201, 1, None, [], {}, True,
            "ws_\u00e9_x", "\x00", "ws_00000000_" + "A" * 43,
        ):  # fmt: skip
            answer = plain.post("/v1/session", json={"invitation": invitation})
            assert answer.status_code in (401, 422) and "set-cookie" not in answer.headers
        assert everything(studio) == before


def everything(studio: Studio) -> list[Any]:
    with studio.database.reading() as connection:
        return read_events(connection)
