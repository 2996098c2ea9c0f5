"""What fails under the service: its process is killed while people write; its database is gone for a while."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from conftest import Make, Postgres, client, httpx, served
from patience import wait_for
from whichsense.studio import Studio
from whichsense.studio.database import VERSIONED
from whichsense.studio.history import read_events

KILLS = 3
ROWS = [{"question": f"Who won cup {n}?"} for n in range(200)]
Edit = tuple[int, int, dict[str, Any]]


class Service:
    """`whichsense studio serve` in a process of its own, always at the same port."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.command = [sys.executable, "-m", "whichsense", "studio", "serve"]
        self.command += [str(folder), "--port", str(self.port)]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.address in self.process.stdout.readline()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class Writer:
    """An annotator who saves and submits, whatever happens to the service; it keeps what was answered with 200."""

    def __init__(self, address: str, key: str) -> None:
        self.accepted: list[Edit] = []
        self.is_over = threading.Event()
        self._client = client(address, key)
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def end(self) -> None:
        self.is_over.set()
        self._thread.join()
        self._client.close()

    def _work(self) -> None:
        while not self.is_over.is_set():
            with contextlib.suppress(httpx.HTTPError):  # killed under its hands
                self._annotate(self._post("/v1/take", {})["view"])
            self.is_over.wait(0.01)

    def _annotate(self, view: dict[str, Any]) -> None:
        number, version = view["item"], view["draft"]["version"]
        for count in range(3):
            changed = {"outcome": "nothing", "remark": f"{count} " + "x" * 300}
            self._change(number, version + count, "save", set=changed)
        self._change(number, version + 3, "submit")

    def _change(self, number: int, version: int, kind: str, **sent: Any) -> None:
        answer = self._post(f"/v1/items/{number}/{kind}", {"version": version, **sent})
        assert answer["draft"]["version"] == version + 1
        self.accepted.append((number, version + 1, sent))

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._client.post(path, json=body).raise_for_status().json()


def test_nothing_accepted_is_lost_when_the_service_is_killed(make: Make) -> None:
    studio = make("generate", ROWS, overlap=2)
    keys = [studio.members.invite(name) for name in ("ann", "ben", "cem")]
    service = Service(studio.project.folder)
    writers = [Writer(service.address, key) for key in keys]
    moments = random.Random(39)

    def works(before: int) -> bool:
        return sum(len(one.accepted) for one in writers) >= before + 5

    try:
        for _ in range(KILLS):
            before = sum(len(one.accepted) for one in writers)
            wait_for(lambda before=before: works(before))  # type: ignore[misc]
            writers[0].is_over.wait(moments.random() * 0.2)
            service.kill()
            service.start()
        before = sum(len(one.accepted) for one in writers)
        wait_for(lambda: works(before))
    finally:
        for writer in writers:
            writer.end()
        service.kill()
    again = Studio(studio.project)
    with again.database.reading() as connection:
        history = read_events(connection, kinds=VERSIONED)  # each whole: it is parsed
        checked = connection.exec_driver_sql("PRAGMA integrity_check").scalar()
    ids = [member.id for member in again.members.all()]
    again.close()
    assert checked == "ok"
    for member_id, writer in zip(ids, writers, strict=True):
        own = [one for one in history if one.annotator == member_id]
        there: dict[int, list[Any]] = {}
        for one in own:
            there.setdefault(one.item, []).append((one.version, dict(one.payload)))
        for versions in there.values():  # none twice, none left out
            assert [version for version, _ in versions] == [*range(1, len(versions) + 1)]
        assert writer.accepted
        for number, version, payload in writer.accepted:
            assert there[number][version - 1] == (version, payload)


def test_a_database_that_is_gone_is_said_and_comes_back(make: Make, postgres: Postgres) -> None:
    studio = make("generate", overlap=2, database=postgres.make_database())
    key = studio.members.invite("ann")
    with served(studio) as address, client(address, key) as ann:
        ann.post("/v1/take", json={"item": 1})
        change = {"version": 0, "set": {"outcome": "nothing"}}
        postgres.stop("immediate")
        try:
            for answer in (
                ann.get("/v1/items/1"),
                ann.get("/v1/session"),
                ann.post("/v1/take", json={}),
                ann.post("/v1/items/1/save", json=change),
                ann.post("/v1/items/1/submit", json={"version": 0}),
                ann.post("/v1/session", json={"invitation": key}),
            ):
                assert answer.status_code == 503
                assert answer.json()["type"] == "urn:whichsense:problem:database"
                assert int(answer.headers["retry-after"]) > 0
            assert ann.get("/").status_code == 200  # the page, which tells it
        finally:
            postgres.start()
        saved = ann.post("/v1/items/1/save", json=change)
        assert saved.status_code == 200 and saved.json()["draft"]["version"] == 1
