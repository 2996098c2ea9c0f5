"""The studio over HTTP: a whole item, sessions, roles, and what is refused."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
from typing import Any

import pytest
from specimens import ROWS

from conftest import Make, client, httpx, served
from whichsense.studio import Studio
from whichsense.studio.checks import present
from whichsense.studio.history import read_events


@pytest.fixture
def studio(make: Make) -> Studio:
    return make("generate", overlap=2)


def everything(studio: Studio) -> list[Any]:
    with studio.database.reading() as connection:
        return read_events(connection)


def test_an_item_from_taking_to_submitting(studio: Studio) -> None:
    token = studio.members.invite("ann")
    with served(studio) as address, client(address, token) as ann:
        form = ann.get("/v1/project").json()
        assert form["kind"] == "generate" and form["fields"][0]["name"] == "outcome"
        view = ann.post("/v1/take", json={}).json()["view"]
        number, question = view["item"], view["body"]["question"]
        pairs = [{"question": question, "answers": ["Ann Lee"]}]
        checked = ann.post(
            f"/v1/items/{number}/check", json={"value": {"outcome": "several", "pairs": pairs}}
        )
        assert [one["rule"] for one in checked.json()["findings"]] == ["too-few", "unchanged"]
        hits = ann.post(f"/v1/items/{number}/search", json={"query": "cup"}).json()["hits"]
        page = ann.post(f"/v1/items/{number}/view", json={"passage": hits[0]["id"]}).json()
        assert "Ann Lee" in page["passages"][0]["text"]
        pairs = [
            {"question": "Who won the cup number 1 in 1990?", "answers": ["Ann Lee"]},
            {"question": "Who won the cup number 1 in 1991?", "answers": ["Bo Ray", "Ray"]},
        ]
        changed = {"outcome": "several", "pairs": pairs}
        saved = ann.post(f"/v1/items/{number}/save", json={"version": 0, "set": changed}).json()
        added = [piece["text"] for piece in saved["edits"][0] if piece["change"] == "added"]
        assert added == [" in 1990"]
        late = ann.post(f"/v1/items/{number}/save", json={"version": 0, "set": {"remark": "x"}})
        assert late.status_code == 409
        assert late.json()["theirs"]["value"] == changed and late.json()["yours"] == {"remark": "x"}
        assert ann.post(f"/v1/items/{number}/submit", json={"version": 1}).json()["draft"][
            "is_submitted"
        ]
        again = ann.post("/v1/take", json={}).json()["view"]
        assert again["item"] != number
        assert (
            ann.post(f"/v1/items/{again['item']}/leave", json={"skip": "unclear"}).status_code
            == 204
        )
        states = {row["item"]: row["state"] for row in ann.get("/v1/work").json()["items"]}
        assert states == {number: "submitted", again["item"]: "skipped"}


def test_a_browser_has_a_session(studio: Studio) -> None:
    token = studio.members.invite("ann")
    with served(studio) as address, httpx.Client(base_url=address) as browser:
        assert browser.get("/v1/session").status_code == 401
        begun = browser.post("/v1/session", json={"invitation": token})
        assert begun.json()["member"]["name"] == "ann"
        assert "httponly" in begun.headers["set-cookie"].lower()
        assert "samesite=strict" in begun.headers["set-cookie"].lower()
        csrf = browser.get("/v1/session").json()["csrf"]
        forged = browser.post("/v1/take", json={})
        assert (forged.status_code, forged.json()["type"]) == (403, "urn:whichsense:problem:csrf")
        headers = {"X-CSRF-Token": csrf}
        assert browser.post("/v1/take", json={}, headers=headers).json()["view"]["item"] == 1
        assert browser.delete("/v1/session", headers=headers).status_code == 204
        assert browser.get("/v1/session").status_code == 401


def test_roles(studio: Studio) -> None:
    ann, owner = studio.members.invite("ann"), studio.members.invite("olga", "owner")
    with served(studio) as address, client(address, ann) as a, client(address, owner) as o:
        for path in ("/v1/status", "/v1/events", "/v1/members"):
            assert a.get(path).status_code == 403
            assert o.get(path).status_code == 200
        invited = o.post("/v1/members", json={"name": "ben", "role": "annotator"})
        link = invited.json()["link"]
        assert link.startswith(f"{address}/#invitation=ws_")
        assert o.post("/v1/members", json={"name": "ben"}).status_code == 422
        ids = {one["name"]: one["id"] for one in o.get("/v1/members").json()["members"]}
        assert (
            o.post(f"/v1/members/{ids['ann']}/pause", json={"reason": "see me"}).status_code == 204
        )
        paused = a.post("/v1/take", json={})
        assert paused.status_code == 403 and "see me" in paused.json()["title"]
        assert o.post(f"/v1/members/{ids['ann']}/resume", json={}).status_code == 204
        assert a.post("/v1/take", json={}).status_code == 200
        assert o.request("DELETE", f"/v1/members/{ids['ann']}").status_code == 204
        assert a.post("/v1/take", json={}).status_code == 401
        assert o.request("DELETE", f"/v1/members/{ids['olga']}").status_code == 422


def test_hostile_requests_change_nothing(studio: Studio, caplog: pytest.LogCaptureFixture) -> None:
    ann, ben = studio.members.invite("ann"), studio.members.invite("ben")
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(served(studio))
        a, b = (stack.enter_context(client(address, token)) for token in (ann, ben))
        plain = stack.enter_context(httpx.Client(base_url=address))
        a.post("/v1/take", json={"item": 1})
        a.post("/v1/items/1/save", json={"version": 0, "set": {"remark": "mine"}})
        before = everything(studio)
        forged = ann[:-1] + ("A" if ann[-1] != "A" else "B")
        caplog.set_level(logging.WARNING, "whichsense.studio")
        caplog.clear()
        answers = [
            b.post("/v1/items/1/save", json={"version": 1, "set": {"remark": "taken over"}}),
            b.post("/v1/items/1/submit", json={"version": 1}),
            b.post("/v1/items/1/undo", json={"version": 1, "to": 0}),
            b.post("/v1/items/1/leave", json={}),
            a.post("/v1/items/1/save", json={"version": 0, "set": {"remark": "stale"}}),
            a.post("/v1/items/1/save", json={"version": 1, "set": {"gold": "x"}}),
            a.post("/v1/items/1/save", json={"version": "1", "set": {}}),
            a.post("/v1/items/99/save", json={"version": 0, "set": {}}),
            a.post("/v1/members", json={"name": "eve", "role": "owner"}),
            plain.post(
                "/v1/items/1/save",
                json={"version": 1, "set": {}},
                headers={"Authorization": f"Bearer {forged}"},
            ),
            plain.post("/v1/session", json={"invitation": "ws_00000000_forged"}),
            plain.post("/v1/take", json={}),
            a.post(
                "/v1/items/1/save",
                json={"version": 1, "set": {}},
                headers={"Origin": "http://evil.example"},
            ),
            a.post("/v1/items/1/save", content=b"{}", headers={"Content-Type": "text/plain"}),
            a.get("/v1/project", headers={"Host": "evil.example"}),
        ]
        statuses = [answer.status_code for answer in answers]
        assert statuses == [
            409,
            409,
            409,
            409,
            409,
            422,
            422,
            422,
            403,
            401,
            401,
            401,
            403,
            415,
            421,
        ]
        assert all(answer.json()["fix"] for answer in answers)
        assert everything(studio) == before
        refused = [record.getMessage() for record in caplog.records]
        assert sum("refused" in line for line in refused) >= 11


@pytest.mark.parametrize("kind", ROWS)
def test_whatever_is_written_is_answered(make: Make, kind: str) -> None:
    """Fields that are null or empty, and halves of a surrogate pair: kept as they are, or refused with a reason."""
    studio = make(kind, [ROWS[kind]])
    ann, owner = studio.members.invite("ann"), studio.members.invite("olga", "owner")
    fields = studio.kind.fields
    chosen = {field.name: next(iter(field.choices)) for field in fields if field.choices}
    odd: list[Any] = [
        None,
        [],
        [{}],
        [{"question": None, "answers": None}],
        "half \ud800",
        ["\ud800"],
    ]
    with served(studio) as address, client(address, ann) as a, client(address, owner) as o:
        a.post("/v1/take", json={})
        version = 0
        for field, value in itertools.product(fields, odd):
            sent = {"version": version, "set": {**chosen, field.name: value}}
            form = {"Content-Type": "application/json"}
            saved = a.post("/v1/items/1/save", content=json.dumps(sent), headers=form)
            assert saved.status_code in (200, 422), saved.text
            if saved.status_code == 200:
                version = saved.json()["draft"]["version"]
                seen = a.get("/v1/items/1").json()["draft"]["value"]
                assert seen.get(field.name) == (value if value is None else present(value))
        assert version
        assert a.post("/v1/items/1/submit", json={"version": version}).status_code in (200, 422)
        for path in ("/v1/events", "/v1/status", "/v1/agreement", "/v1/pay"):
            assert o.get(path).status_code == 200
