"""Who may ask: keys, scopes, rates, hosts, origins; and what hostile requests get."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from fake_service import QUESTION
from test_serve_ask import ask

from patience import LONGEST, wait_for
from whichsense.cli import command
from whichsense.errors import BadConfig
from whichsense.serve import events
from whichsense.serve.app import check_address
from whichsense.serve.events import Shared
from whichsense.serve.settings import KeyFile, ServiceSettings

Start = Callable[..., Any]


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_a_key_opens_the_service_until_it_is_revoked(start: Start, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    own, other, admin = (
        keys.add("own", ["ask"]),
        keys.add("other", ["ask"]),
        keys.add("admin", ["ask", "write"]),
    )
    client = start(failures=1000)  # else wrong keys are slowed: see test_operators
    assert client.get("/healthz").status_code == 200, "no key for a probe"
    for wrong in ("", "Basic x", "Bearer", f"Bearer {own}x", "Bearer ws_00_x", "ÿ"):
        headers = {"Authorization": wrong.encode("latin-1")} if wrong else {}
        response = client.get("/v1/cases", headers=headers)
        assert response.status_code == 401, wrong
        assert response.headers["www-authenticate"].startswith("Bearer")
    answer = client.post("/v1/ask", json={"question": QUESTION}, headers=bearer(own))
    assert answer.status_code == 200
    path = f"/v1/cases/{answer.json()['id']}"
    assert client.get(path, headers=bearer(own)).status_code == 200
    assert client.get(path, headers=bearer(other)).status_code == 404
    assert client.get(path, headers=bearer(admin)).status_code == 200
    assert not client.get("/v1/cases", headers=bearer(other)).json()["cases"]
    for name in ("own", "other", "admin"):
        keys.revoke(name)
        assert client.get(path, headers=bearer(own)).status_code == 401
    assert client.get("/v1/cases").status_code == 401, "no key left opens nothing"
    (tmp_path / "keys.json").write_text("{")
    assert client.get("/v1/cases").status_code == 503


def test_keys_are_kept_as_hashes(tmp_path: Path) -> None:
    runner = CliRunner()
    state = ["--state", str(tmp_path)]
    key = runner.invoke(command, ["keys", "add", "page", *state]).output.strip()
    secret = key.split("_", 2)[2]
    assert secret not in (tmp_path / "keys.json").read_text()
    assert os.stat(tmp_path / "keys.json").st_mode & 0o077 == 0
    rows = json.loads(runner.invoke(command, ["keys", "list", "--json", *state]).output)
    assert rows[0]["name"] == "page" and rows[0]["revoked"] is None
    done = runner.invoke(command, ["keys", "revoke", "page", *state])
    assert done.exit_code == 0
    assert "revoked" in runner.invoke(command, ["keys", "list", *state]).output
    assert runner.invoke(command, ["keys", "revoke", "page", *state]).exit_code


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what workers share no time passes."""
    now = time.time()
    monkeypatch.setattr(events, "time", SimpleNamespace(time=lambda: now))


@pytest.mark.usefixtures("stopped_clock")
def test_a_key_has_a_rate(start: Start, tmp_path: Path) -> None:
    key = KeyFile(tmp_path).add("slow", ["ask"], rate=8)
    client = start()
    statuses = []
    for _ in range(4):
        statuses.append(client.get("/v1/cases", headers=bearer(key)).status_code)
    assert statuses == [200, 200, 429, 429]
    last = client.get("/v1/cases", headers=bearer(key))
    assert int(last.headers["retry-after"]) >= 1


@pytest.mark.usefixtures("stopped_clock")
def test_the_rate_is_shared_by_processes(tmp_path: Path) -> None:
    one, two = Shared(tmp_path / "x"), Shared(tmp_path / "x")
    waits = [store.admit("key", 60, 3) for store in (one, two, one, two)]
    assert waits[:3] == [0, 0, 0] and 0 < waits[3] <= 1
    assert one.admit("another", 60, 3) == 0
    one.close()
    two.close()


def test_a_public_address_needs_a_key(tmp_path: Path) -> None:
    public = ServiceSettings(host="0.0.0.0", state=tmp_path)
    with pytest.raises(BadConfig, match="whichsense keys add"):
        check_address(public)
    KeyFile(tmp_path).add("page", ["ask"])
    check_address(public)
    KeyFile(tmp_path).revoke("page")
    with pytest.raises(BadConfig):
        check_address(public)
    check_address(ServiceSettings(host="0.0.0.0", state=tmp_path, api_key="x" * 32))


def test_other_hosts_and_sites_are_refused(client: Any) -> None:
    rebound = client.get("/v1/cases", headers={"Host": "evil.example"})
    assert rebound.status_code == 421
    cross = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    response = client.post("/v1/ask", json={"question": QUESTION}, headers=cross)
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers
    own = {"Origin": str(client.base_url).rstrip("/")}
    response = client.post("/v1/ask", json={"question": QUESTION}, headers=own)
    assert response.status_code == 200


def test_one_host_is_named_in_any_case(client: Any) -> None:
    for name in ("LOCALHOST", "LocalHost:8000"):
        assert client.get("/v1/cases", headers={"Host": name}).status_code == 200
    place = (client.base_url.host, client.base_url.port)
    with socket.create_connection(place, timeout=120) as raw:
        raw.sendall(b"GET /v1/cases HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n")
        assert raw.recv(4000).startswith(b"HTTP/1.1 400 ")


def test_every_get_has_a_head(client: Any) -> None:
    for path in ("/healthz", "/v1/info", "/v1/corpus", "/", "/openapi.json"):
        plain = {"Accept-Encoding": "identity"}
        head, full = client.head(path, headers=plain), client.get(path, headers=plain)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(full.content))
    assert client.head("/v1/ask").status_code == 405
    assert client.head("/none").status_code == 404


def test_a_wrong_field_is_named(client: Any) -> None:
    body = {"question": QUESTION, "k": 0, "other": 1}
    problem = client.post("/v1/search", json=body).json()
    assert "body.k" in problem["fix"] and "body.other" in problem["fix"]


def test_an_origin_can_be_allowed(start: Start) -> None:
    client = start(origins=("https://page.example",))
    origin = {"Origin": "https://page.example", "Sec-Fetch-Site": "cross-site"}
    preflight = origin | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,x-stainless-os",
    }
    response = client.options("/v1/ask", headers=preflight)
    assert response.headers["access-control-allow-origin"] == "https://page.example"
    assert "x-stainless-os" in response.headers["access-control-allow-headers"]
    response = client.post("/v1/ask", json={"question": QUESTION}, headers=origin)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "https://page.example"


def test_a_wrong_method_is_told_the_right_ones(client: Any) -> None:
    for path, methods in (
        ("/v1/ask", "POST"),
        ("/v1/cases/x", "DELETE, GET, HEAD"),
        ("/v1/corpus/sources/x", "DELETE, PUT"),
    ):
        response = client.request("PATCH", path)
        assert response.status_code == 405
        assert response.headers["allow"] == methods


def test_every_response_has_security_headers(client: Any) -> None:
    for response in (client.get("/healthz"), client.get("/none"), ask(client)):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "server" not in response.headers or "uvicorn" in response.headers["server"]


def test_a_page_is_served_beside_the_paths(start: Start) -> None:
    client = start()
    response = client.get("/")
    assert "whichsense" in response.text
    assert "script-src 'self'" in response.headers["content-security-policy"]
    for method, path, status in (
        ("GET", "/../traces.sqlite", 404),
        ("GET", "/%2e%2e/traces.sqlite", 404),
        ("PUT", "/v1/none", 404),
        ("POST", "/", 405),
    ):
        response = client.request(method, path, json={})
        assert response.status_code == status, (method, path)
        assert response.json()["fix"]
    assert response.headers["allow"] == "GET, HEAD"
    head = client.head("/")
    assert head.status_code == 200 and not head.content
    assert client.post("/v1/search", json={"question": "puma"}).status_code == 200


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"question":', "application/json", 400),
        (b"[" * 5000, "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"question": "a"}', "text/plain", 415),
        (b'{"question": "a"}', "", 415),
        (b'{"question": 7}', "application/json", 422),
        (b'{"question": "\\ud800"}', "application/json", 422),
        (b'{"question": " "}', "application/json", 422),
        (b'{"question": "a", "seconds": NaN}', "application/json", 422),
        (b'{"question": "a", "unknown": 1}', "application/json", 422),
        (b'{"question": "' + b"a" * 3000 + b'"}', "application/json", 422),
        (b'{"question": "' + b"a" * 70_000 + b'"}', "application/json", 413),
        (b"null", "application/json", 422),
        (b"", "application/json", 422),
    ],
)
def test_bad_bodies_are_problems(client: Any, body: bytes, kind: str, status: int) -> None:
    headers = {"Content-Type": kind} if kind else {}
    response = client.post("/v1/ask", content=body, headers=headers)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["fix"]


def test_a_body_without_a_length_is_bounded(client: Any) -> None:
    def chunks() -> Any:
        for _ in range(100):
            yield b" " * 1000

    headers = {"Content-Type": "application/json"}
    response = client.post("/v1/ask", content=chunks(), headers=headers)
    assert response.status_code == 413


def test_hostile_requests_get_an_answer(client: Any) -> None:
    """Raw bytes on the wire: never a 5xx, and the next request is served."""
    host, port = client.base_url.host, client.base_url.port
    requests = [
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/cases/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /%00%ff%2e%2e/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 200_000,
        b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Type: application/json\r\n\r\nzzz\r\n",
        b"GET /v1/cases/x HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: \xff\xfe\r\n"
        b"Accept: text/event-stream\r\nAuthorization: \xff\r\n\r\n",
    ]
    for request in requests:
        with socket.create_connection((host, port), timeout=LONGEST) as raw:
            raw.sendall(request + b"\r\n\r\n")
            raw.shutdown(socket.SHUT_WR)
            try:
                answer = raw.recv(4000)
            except ConnectionResetError:
                answer = b""
        assert not answer.startswith(b"HTTP/1.1 5"), request[:60]
        assert b"/root" not in answer and b"Traceback" not in answer
    assert ask(client).status_code == 200


@pytest.mark.parametrize("end", [b"\r\n\r\n", b""], ids=["whole", "open"])
def test_a_large_head_is_refused(client: Any, end: bytes) -> None:
    host, port = client.base_url.host, client.base_url.port
    request = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000 + end
    with socket.create_connection((host, port), timeout=120) as raw:
        raw.sendall(request)
        answer = b""
        while received := raw.recv(4000):
            answer += received
    assert answer.startswith(b"HTTP/1.1 431 ") and b"connection: close" in answer
    assert b"urn:whichsense:problem:head" in answer and answer.count(b"HTTP/1.1") == 1
    assert client.get("/healthz").status_code == 200


def test_a_head_that_does_not_end_is_cut_off(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whichsense.serve.app.HEAD_SECONDS", 0.3)
    client = start()
    host, port = client.base_url.host, client.base_url.port
    for begin in (b"", b"GET /healthz HTTP/1.1\r\nX: "):
        with socket.create_connection((host, port), timeout=LONGEST) as raw:
            raw.sendall(begin)
            assert raw.recv(100) == b"", "the server closes it"
    with socket.create_connection((host, port), timeout=LONGEST) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        with pytest.raises(OSError):
            for _ in range(10_000):
                raw.sendall(b"y" * 10_000)
    # On a busy machine its own head may come too late, now and then.
    wait_for(lambda: answers_in_time(client, f"{QUESTION} 0.6"))


def answers_in_time(client: Any, question: str) -> bool:
    with contextlib.suppress(httpx2.TransportError):
        return bool(ask(client, question).status_code == 200)
    return False
