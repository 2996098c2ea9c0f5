"""What operators rely on: the log of requests, wrong keys, worker deaths, settings, proxies, quotas."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from fake_service import QUESTION, make_index
from test_access import bearer
from test_serve_ask import ask, events, stream
from test_serve_workers import SCRIPT, children, is_ready

from patience import LONGEST, wait_for
from whichsense.cli import command
from whichsense.serve import settings as keys_of
from whichsense.serve import state
from whichsense.serve.settings import KeyFile, ServiceSettings

Start = Callable[..., Any]


def logged(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_request_leaves_a_line(start: Start, tmp_path: Path) -> None:
    keys, log = KeyFile(tmp_path), tmp_path / "access.log"
    key = keys.add("page", ["ask"])
    client = start(access_log=str(log))
    answer = client.post("/v1/ask", json={"question": QUESTION}, headers=bearer(key))
    assert client.get("/v1/cases").status_code == 401
    client.get("/v1/cases/secret-id", headers=bearer(key))
    client.get("/%00nothing")
    wait_for(lambda: len(logged(log)) >= 4 and logged(log)[-1]["route"] == "other")
    asked, refused, missing, _ = logged(log)[-4:]
    assert (asked["method"], asked["route"], asked["status"]) == ("POST", "/v1/ask", 200)
    assert asked["key"] == next(iter(keys.keys())) and asked["index"] == "index"
    assert asked["request"] == answer.headers["x-request-id"]
    assert {"retrieve", "read"} <= set(asked["stages"])
    assert sum(asked["stages"].values()) <= asked["seconds"]
    assert (refused["status"], refused["key"]) == (401, "")
    assert missing["route"] == "/v1/cases/{case_id}"
    text = log.read_text()
    assert QUESTION not in text and "secret-id" not in text and key not in text


def test_questions_are_logged_where_that_is_wanted(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    client = start(access_log=str(log), log_questions=True)
    with stream(client) as response:
        list(events(response.iter_lines()))
    client.post("/v1/conversations", json={"question": QUESTION})
    client.post("/v1/search", json={"question": "puma"})
    wait_for(lambda: sum(bool(line["question"]) for line in logged(log)) == 3)
    streamed = next(line for line in logged(log) if line["route"] == "/v1/ask")
    assert streamed["stages"] and streamed["question"] == QUESTION


def test_wrong_keys_are_counted_told_and_slowed(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = KeyFile(tmp_path)
    key, late = keys.add("page", ["ask"]), keys.add("late", ["ask"])
    client = start(failures=8)
    assert client.get("/v1/cases", headers=bearer(key)).status_code == 200
    with caplog.at_level(logging.WARNING, "whichsense.serve"):
        wrong = [
            client.get("/v1/cases", headers=bearer(f"ws_{number:08x}_{'x' * 43}"))
            for number in range(12)
        ]
    statuses = [response.status_code for response in wrong]
    assert statuses[0] == 401 and 429 in statuses
    slowed = wrong[statuses.index(429)]
    assert int(slowed.headers["retry-after"]) >= 1
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == statuses.count(401)
    assert all("(unknown), from 127.0.0.1" in line for line in told)
    # Who was known goes on; who comes new from this address has to wait, too.
    assert client.get("/v1/cases", headers=bearer(key)).status_code == 200
    metrics = client.get("/metrics", headers=bearer(key)).text
    refused = f'whichsense_keys_refused_total{{reason="unknown"}} {len(told)}.0'
    assert refused in metrics
    wait_for(lambda: client.get("/v1/cases", headers=bearer(late)).status_code == 200)


def test_ids_of_keys_are_not_told_apart_by_time(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every wrong key costs one scrypt, whether its id is there or not."""
    keys = KeyFile(tmp_path)
    real = keys.add("page", ["ask"])
    gone = keys.add("gone", ["ask"])
    keys.revoke("gone")
    client = start(failures=1000)
    scrypt, costs = keys_of.hashlib.scrypt, []

    def counted(*arguments: Any, **options: Any) -> bytes:
        costs.append(options["n"])
        return scrypt(*arguments, **options)

    fake = SimpleNamespace(scrypt=counted)
    monkeypatch.setattr(keys_of, "hashlib", fake)
    for wrong in (f"{real[:-1]}!", "ws_00000000_x", "ws_", "x", gone, f"{gone}x"):
        costs.clear()
        assert client.get("/v1/cases", headers=bearer(wrong)).status_code == 401
        assert costs == [2**14], wrong


def test_a_quota_bounds_the_files_of_a_day(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = KeyFile(tmp_path).add("team", ["ask", "write"], quota=50, rate=1_000_000)
    client = start(index=make_index(tmp_path))

    def put(client: Any, name: str, body: bytes) -> Any:
        path = f"/v1/corpus/sources/{name}"
        return client.put(path, content=body, headers=bearer(key))

    assert put(client, "a.md", b"The ounce lives in the mountains.").is_success
    refused = put(client, "b.md", b"The serval lives in tall grass.")
    assert refused.status_code == 429 and refused.json()["type"].endswith(":quota")
    assert int(refused.headers["retry-after"]) <= 86_400
    path = "/v1/corpus/uploads/abcdefgh"
    piece = client.patch(path, content=b"x" * 51, headers=bearer(key) | {"Upload-Offset": "0"})
    assert piece.status_code == 429
    again = start(index=make_index(tmp_path / "x"))  # the service begun anew
    assert put(again, "b.md", b"The serval lives in tall grass.").status_code == 429
    tomorrow = state.time.time() + 86_400
    later = SimpleNamespace(time=lambda: tomorrow, sleep=lambda seconds: None)
    monkeypatch.setattr(state, "time", later)
    assert put(again, "b.md", b"The serval lives in tall grass.").is_success


def test_it_lives_below_a_path(start: Start) -> None:
    client = start(root_path="/ws")
    for prefix in ("", "/ws"):  # whether the proxy takes it off or not
        assert client.get(f"{prefix}/v1/info").status_code == 200
        assert client.head(f"{prefix}/healthz").status_code == 200
        body = {"question": QUESTION, "stream": True}
        with client.stream("POST", f"{prefix}/v1/ask", json=body) as response:
            place = response.headers["location"]
            response.read()
        assert place.startswith("/ws/v1/cases/")
        assert client.get(place).json()["state"] == "finished"
        chat = {"model": "none", "messages": [{"role": "user", "content": "Hm?"}]}
        refused = client.post(f"{prefix}/v1/chat/completions", json=chat)
        assert refused.json()["error"]["code"] == "model_not_found"
        assert client.put(f"{prefix}/v1/ask", json={}).headers["allow"] == "POST"
    assert client.get("/openapi.json").json()["servers"] == [{"url": "/ws"}]
    assert client.get("/ws/ws/v1/info").status_code == 404


def serve(folder: Path, **given: Any) -> subprocess.Popen[str]:
    """A service in processes of its own, whose log can be read."""
    told = {"index": make_index(folder), "state": str(folder), "grace": 0.5, **given}
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), json.dumps(told)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("named", [True, False], ids=["named", "not named"])
def test_forwarded_headers_of_named_proxies_alone(tmp_path: Path, named: bool) -> None:
    KeyFile(tmp_path).add("page", ["ask"])
    process = serve(tmp_path, proxies=["127.0.0.1"] if named else [])
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[2]
        wait_for(lambda: is_ready(address))
        forwarded = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
        httpx2.get(f"{address}/v1/cases", headers=bearer("x") | forwarded)
        own = {"Origin": address.replace("http", "https")}
        status = httpx2.get(f"{address}/v1/info", headers=own | forwarded).status_code
        assert status == (200 if named else 403)
    finally:
        process.terminate()
        _, log = process.communicate(timeout=LONGEST)
    assert ("from 203.0.113.7" in log) == named
    assert ("from 127.0.0.1" in log) != named


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds workers in /proc")
def test_deaths_are_told_and_counted(tmp_path: Path) -> None:
    process = serve(tmp_path, workers=2, access_log="-")
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[2]
        wait_for(lambda: is_ready(address))
        first, _ = children(process.pid)
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: first not in children(process.pid) and is_ready(address))
        wait_for(lambda: len(children(process.pid)) == 2)
        counted = "whichsense_worker_restarts_total 1.0"
        assert counted in httpx2.get(f"{address}/metrics", timeout=LONGEST).text
    finally:
        process.terminate()
        _, log = process.communicate(timeout=LONGEST)
    lines = [json.loads(line) for line in log.splitlines()]
    said = [line["message"] for line in lines if "message" in line]
    assert sum(f"worker {first} has ended (-9)" in line for line in said) == 1
    assert sum("stopping" in line for line in said) == 1
    assert any(line.get("route") == "/readyz" for line in lines)


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds workers in /proc")
def test_a_killed_parent_is_told_once_and_holds_no_port(tmp_path: Path) -> None:
    process = serve(tmp_path, workers=2)
    assert process.stdout is not None
    address = process.stdout.readline().split()[2]
    wait_for(lambda: is_ready(address))
    process.kill()
    _, log = process.communicate(timeout=LONGEST)  # until the last worker has ended
    assert log.count("which held the workers, has ended") == 1
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", int(address.rpartition(":")[2])))


def test_every_option_has_three_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line comes before the environment, and that before the file."""
    made: list[ServiceSettings] = []
    monkeypatch.setattr(
        "whichsense.serve.app.serve", lambda settings, **options: made.append(settings)
    )
    file = tmp_path / "whichsense.toml"
    file.write_text(
        'serve.port = 1\nserve.workers = 2\nserve.queue = 3\nserve."host-name" = ["a"]\n'
        'serve.no-traces = true\n[serve.index]\nfilms = "sample"\nhouse = "handbook"\n'
    )
    monkeypatch.setenv("WHICHSENSE_CONFIG", str(file))
    monkeypatch.setenv("WHICHSENSE_SERVE_WORKERS", "4")
    monkeypatch.setenv("WHICHSENSE_SERVE_QUEUE", "5")
    monkeypatch.setenv("WHICHSENSE_SERVE_ALLOW_ORIGIN", "https://a https://b")
    monkeypatch.setenv("WHICHSENSE_API_KEY_SCOPES", "ask write")
    done = CliRunner().invoke(command, ["serve", "--queue", "6"])
    assert done.exit_code == 0, done.output
    (settings,) = made
    assert (settings.port, settings.workers, settings.queue) == (1, 4, 6)
    assert settings.hosts == ("a",) and settings.origins == ("https://a", "https://b")
    assert list(settings.indexes) == ["films", "house"] and not settings.traces
    assert settings.api_key_scopes == ("ask", "write")
    file.write_text("[serve]\nporrt = 1\n")
    wrong = CliRunner().invoke(command, ["serve"])
    assert "unknown key 'serve.porrt'. Did you mean 'port'?" in str(wrong.exception)


def test_the_service_is_still_there(start: Start) -> None:
    assert ask(start()).status_code == 200
