"""Several workers, real signals: kill -9 under load, SIGTERM, an index that changes, half-open clients."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fake_service import HELD, PLAIN, QUESTION, RECORDS, make_index
from test_cases import follow
from test_serve_ask import ask, events, stream

from patience import LONGEST, wait_for
from whichsense import index as indexes
from whichsense.serve.state import Traces

SCRIPT = Path(__file__).with_name("fake_service.py")


@contextlib.contextmanager
def service(folder: Path, **settings: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service in processes of its own; its process and its address."""
    given = {"index": make_index(folder), "state": str(folder), "grace": 0.5}
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), json.dumps(given | settings)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[2]
        wait_for(lambda: is_ready(address))
        yield process, address
    finally:
        process.terminate()
        process.wait(LONGEST)
        process.stdout.close()


def is_ready(address: str) -> bool:
    """Whether the workers have loaded. Each request is a new connection, which may go to any of them."""
    with contextlib.suppress(httpx2.TransportError):
        asked = (httpx2.get(f"{address}/readyz", timeout=60, verify=PLAIN) for _ in range(10))
        return all(response.status_code == 200 for response in asked)
    return False


def children(process: int) -> list[int]:
    """The worker processes of a service."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = status.read_text().rpartition(")")[2].split()
            command = status.with_name("cmdline").read_bytes()
            if int(fields[1]) == process and b"spawn_main" in command:
                found.append(int(status.parent.name))
    return found


def has_opened(process: int, name: str) -> bool:
    """Whether a process has a file of this name open."""
    for link in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            if link.readlink().name == name:
                return True
    return False


class Load:
    """Clients that ask without pause, until the block ends."""

    def __init__(self, address: str, clients: int = 6) -> None:
        self.address = address
        self.ids: list[str] = []
        self.statuses: list[int] = []
        self.broken = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def _ask(self) -> None:
        while not self._stop.is_set():
            try:  # a new connection each time: any worker may get it
                body = {"question": f"{QUESTION} 0.02"}
                address = f"{self.address}/v1/ask"
                response = httpx2.post(address, json=body, timeout=LONGEST, verify=PLAIN)
            except httpx2.TransportError:
                self.broken += 1
                continue
            self.statuses.append(response.status_code)
            if response.status_code == 200:
                self.ids.append(response.json()["id"])

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds workers in /proc")
def test_workers_share_streams_and_survive_a_kill(tmp_path: Path) -> None:
    with service(tmp_path, workers=2) as (process, address):
        with httpx2.Client(base_url=address, timeout=LONGEST, verify=PLAIN) as client:
            with stream(client, f"{QUESTION} 1") as response:
                case_id = response.headers["location"].rpartition("/")[2]
                next(events(response.iter_lines()))
            for _ in range(6):  # new connections: some go to the other worker
                with httpx2.Client(base_url=address, timeout=LONGEST, verify=PLAIN) as other:
                    names = [name for name, _ in follow(other, case_id)]
                    assert names == ["stage"] * 5 + ["done"]
        first = children(process.pid)
        assert len(first) == 2
        with Load(address) as load:
            wait_for(lambda: len(load.ids) > 20)
            os.kill(first[0], signal.SIGKILL)
            before, since = len(load.ids), len(load.statuses)
            wait_for(lambda: len(load.ids) > before + 20)
            wait_for(lambda: len(set(children(process.pid)) - set(first)) == 1)
            (new,) = set(children(process.pid)) - set(first)
            wait_for(lambda: has_opened(new, "traces.sqlite"))
            after = len(load.ids)
            wait_for(lambda: len(load.ids) > after + 60)
        # The new worker takes connections once it has loaded its models.
        assert set(load.statuses[since:]) <= {200, 429}
        assert load.broken <= 12, "only what the killed worker held"
        assert "whichsense_answers_active" in httpx2.get(f"{address}/metrics").text
    traces = Traces(tmp_path / "traces.sqlite")
    kept = {row["id"] for row in traces.export()}
    traces.close()
    assert set(load.ids) <= kept, "every answered question has its trace, whole"


def test_an_index_that_changes_under_load_fails_no_request(tmp_path: Path) -> None:
    with service(tmp_path) as (_, address), Load(address, 3) as load:
        folder = tmp_path / "index"
        more = tmp_path / "more.jsonl"
        record = {"title": "Lynx", "text": "The lynx has tufted ears."}
        more.write_text(json.dumps(record) + "\n", encoding="utf-8")
        indexes.add([str(more)], folder)
        wait_for(lambda: passages(address) == len(RECORDS) + 1)
        indexes.delete(folder, [], ["more"])
        wait_for(lambda: passages(address) == len(RECORDS))
        indexes.Index.build([*RECORDS, record, record | {"title": "Ounce"}], folder, encoder=None)
        wait_for(lambda: passages(address) == len(RECORDS) + 2)
    assert set(load.statuses) == {200} and not load.broken


def passages(address: str) -> int:
    return int(httpx2.get(f"{address}/v1/info", timeout=LONGEST, verify=PLAIN).json()["passages"])


def test_a_stop_ends_streams_with_an_event(tmp_path: Path) -> None:
    with service(tmp_path) as (process, address):
        client = httpx2.Client(base_url=address, timeout=LONGEST, verify=PLAIN)
        with stream(client, HELD) as response:  # whose answer never comes
            lines = events(response.iter_lines())
            next(lines)
            process.send_signal(signal.SIGTERM)
            name, problem = list(lines)[-1]
        assert name == "problem" and problem["type"].endswith("stopping")
        assert process.wait(LONGEST) == 0
        client.close()


def test_files_that_several_workers_take_are_added_one_after_the_other(tmp_path: Path) -> None:
    def send(number: int) -> httpx2.Response:
        body = f"# Note {number}\n\n" + f"The word of note {number}. " * 500
        path = f"{address}/v1/corpus/sources/note-{number}.md"
        return httpx2.put(path, content=body.encode(), timeout=LONGEST, verify=PLAIN)

    with service(tmp_path, workers=3) as (_, address):
        with ThreadPoolExecutor(6) as threads:
            answers = list(threads.map(send, range(6)))
        assert [answer.status_code for answer in answers] == [200] * 6
    index = indexes.Index.open(tmp_path / "index")
    assert all(index.of_source(f"note-{number}.md") for number in range(6))
    index.close()


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds workers in /proc")
def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    with service(tmp_path, workers=2) as (process, address):
        workers = children(process.pid)
        assert len(workers) == 2
        process.kill()
        wait_for(lambda: not any(map(is_running, workers)))
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"{address}/healthz")


def is_running(process: int) -> bool:
    """Whether a process has not ended, nor waits to be collected."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        return status.rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize("workers", [1, 2])
def test_a_service_that_stops_says_so_and_ends_what_runs(tmp_path: Path, workers: int) -> None:
    with service(tmp_path, workers=workers, grace=300, deadline=300) as (process, address):
        client = httpx2.Client(base_url=address, timeout=LONGEST, verify=PLAIN)
        with stream(client, f"{QUESTION} 200") as long, stream(client, f"{QUESTION} 3") as short:
            ending = events(short.iter_lines())
            next(ending)
            process.send_signal(signal.SIGTERM)
            wait_for(lambda: is_stopping(address))
            for path in ("/", "/readyz", "/v1/info", "/v1/models"):
                refused = httpx2.get(f"{address}{path}", timeout=LONGEST, verify=PLAIN)
                assert refused.status_code == 503 and refused.headers["retry-after"]
                assert refused.headers["connection"] == "close"
            assert httpx2.get(f"{address}/healthz").status_code == 200
            assert list(ending)[-1][0] == "done"
            assert httpx2.delete(address + long.headers["location"]).is_success
            assert list(events(long.iter_lines()))[-1][0] == "problem"
        assert process.wait(LONGEST) == 0
        client.close()


def is_stopping(address: str) -> bool:
    return httpx2.get(f"{address}/readyz", timeout=LONGEST, verify=PLAIN).status_code == 503


def test_slow_and_half_open_clients_leave_others_alone(tmp_path: Path) -> None:
    with service(tmp_path, body_seconds=0.5) as (_, address):
        host, port = address.removeprefix("http://").split(":")
        head = f"POST /v1/ask HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        slow = []
        for begin in (b"", b"POST /v1", f"{head}Content-Length: 40\r\n\r\n{{".encode()):
            for _ in range(10):
                half = socket.create_connection((host, int(port)))
                half.sendall(begin)
                slow.append(half)
        with httpx2.Client(base_url=address, timeout=LONGEST, verify=PLAIN) as client:
            # On a busy machine this body, too, may take longer than it may.
            wait_for(lambda: ask(client).status_code == 200)
        answer = slow[-1].recv(1000)
        assert b" 408 " in answer and b"problem+json" in answer
        for half in slow:
            half.close()
