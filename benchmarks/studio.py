"""The studio under fire: killed at random moments, and 50 annotators at once.

    python benchmarks/studio.py kill [--kills 100] [--database sqlite|postgresql] [--out results.json]
    python benchmarks/studio.py load [--annotators 50] [--seconds 600] [--database sqlite|postgresql]

kill    Annotators save and submit over HTTP while the service is killed with SIGKILL again and again, and with
        PostgreSQL all of the database's processes too. At the end every edit that was answered with 200 must be among
        the events, once, and every event whole; versions have no gap.
load    Annotators take items, save and submit, each thinking a moment between two saves. The time of a save is told
        beside the same writes done directly, by as many threads at the same pace.

PostgreSQL's programs are taken from /usr/lib/postgresql; its cluster lies in a temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import multiprocessing
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx
import uvicorn

from serve import percentile
from whichsense.lab.provenance import provenance
from whichsense.studio import Project, Settings, Studio, create_project, leases
from whichsense.studio.api import create_app
from whichsense.studio.database import VERSIONED
from whichsense.studio.history import change_draft, read_events
from whichsense.studio.members import Member

VALUE = {"outcome": "single", "answers": ["Ann Lee"]}
_FORK = multiprocessing.get_context("fork")


class Postgres:
    """A server of PostgreSQL in a folder of its own, reached by a socket there."""

    def __init__(self) -> None:
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
        self.programs = Path(programs[-1]).parent
        self.folder = Path(tempfile.mkdtemp(prefix="studio-pg-"))
        self.user = pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:  # it refuses to run as root
            self.user = "postgres"
            shutil.chown(self.folder, self.user)
        data = ["-D", str(self.folder / "data")]
        self._run("initdb", *data, "--auth=trust", f"--username={self.user}")
        self.start()
        self._run("createdb", "-h", str(self.folder), "-U", self.user, "studio")

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{self.user}@/studio?host={self.folder}"

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        if os.getuid() == 0:
            command = ["runuser", "-u", self.user, "--", *command]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def start(self) -> None:
        options = f"-c listen_addresses='' -k {self.folder} -c max_connections=200"
        data = ["-D", str(self.folder / "data"), "-l", str(self.folder / "log")]
        command = ("pg_ctl", *data, "-o", options, "-w", "-t", "300", "start")
        for _ in range(20):
            with contextlib.suppress(subprocess.CalledProcessError):
                self._run(*command)
                return
            time.sleep(0.5)  # the memory of killed processes is still being given back
        self._run(*command)

    def kill(self) -> None:
        """SIGKILL for the postmaster and every process that it has started, and only for these."""
        lock = (self.folder / "data" / "postmaster.pid").read_text()
        postmaster = int(lock.split(maxsplit=1)[0])
        own = [postmaster]
        with contextlib.suppress(ProcessLookupError):
            os.kill(postmaster, signal.SIGSTOP)  # it starts no others meanwhile
        for stat in glob.glob("/proc/[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = Path(stat).read_text().rpartition(")")[2].split()
                if int(fields[1]) == postmaster:
                    own.append(int(stat.split("/")[2]))
        for process in own:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for process in own:
            while Path(f"/proc/{process}").exists() and not _is_zombie(process):
                time.sleep(0.01)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_zombie(process: int) -> bool:
    with contextlib.suppress(OSError):
        return ") Z" in Path(f"/proc/{process}/stat").read_text()
    return True


def _serve(folder: Path, listening: socket.socket) -> None:
    """The service in a process of its own, which is forked so that it is there at once."""
    studio = Studio(Project.open(folder))
    config = uvicorn.Config(create_app(studio), log_level="critical", access_log=False)
    uvicorn.Server(config).run([listening])


class Service:
    """The studio's service, which is killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()
        while True:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"{self.address}/v1/session", timeout=60)
                break
            time.sleep(0.05)

    def start(self) -> None:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        self.process = _FORK.Process(target=_serve, args=(self.folder, listening))
        self.process.start()
        listening.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


@dataclass
class Accepted:
    """What the service said yes to."""

    edits: list[tuple[int, str, int, str, dict[str, Any]]] = field(default_factory=list)
    """Item, annotator, version, kind and what was set."""
    statuses: dict[int, int] = field(default_factory=dict)
    """How often each status was answered; 0: no answer."""
    seconds: list[float] = field(default_factory=list)
    """Of each save that was answered with 200."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, status: int) -> None:
        with self.lock:
            self.statuses[status] = self.statuses.get(status, 0) + 1


@dataclass
class Annotator:
    """Somebody who takes an item, saves it a few times, submits it, and goes on, whatever happens to the service."""

    member: Member
    client: httpx.Client
    accepted: Accepted
    pause: Callable[[], float]
    saves: int = 4

    def work(self, is_over: threading.Event) -> None:
        while not is_over.is_set():
            view = self._post("/v1/take", {})
            if view is None:
                continue
            if view["view"] is None:
                return
            self._annotate(view["view"], is_over)

    def _annotate(self, view: dict[str, Any], is_over: threading.Event) -> None:
        number, version = view["item"], view["draft"]["version"]
        for count in range(self.saves):
            is_over.wait(self.pause())
            changed = {**VALUE, "remark": f"{self.member.id} {number} {count} " + "x" * 300}
            begun = time.perf_counter()
            saved = self._post(f"/v1/items/{number}/save", {"version": version, "set": changed})
            if saved is None or is_over.is_set():
                return  # take it again, with the version that it has by then
            self.accepted.seconds.append(time.perf_counter() - begun)
            version = self._keep(number, saved, "save", {"set": changed})
        submitted = self._post(f"/v1/items/{number}/submit", {"version": version})
        if submitted is not None:
            self._keep(number, submitted, "submit", {})

    def _keep(self, number: int, answer: dict[str, Any], kind: str, payload: dict[str, Any]) -> int:
        version = int(answer["draft"]["version"])
        self.accepted.edits.append((number, self.member.id, version, kind, payload))
        return version

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        try:
            answer = self.client.post(path, json=body)
        except httpx.HTTPError:
            self.accepted.count(0)
            time.sleep(0.02)
            return None
        self.accepted.count(answer.status_code)
        answered: dict[str, Any] = answer.json()
        return answered if answer.status_code == 200 else None


def make(
    folder: Path, url: str, count: int, people: int
) -> tuple[Studio, list[tuple[Member, str]]]:
    """A project with its annotators and their keys."""
    questions = folder / "questions.txt"
    questions.write_text("".join(f"Who won cup number {n}?\n" for n in range(count)))
    settings = Settings(kind="generate", overlap=2, database=url)
    studio = Studio(create_project(folder / "project", settings, questions))
    keys = [studio.members.invite(f"annotator {n}") for n in range(people)]
    return studio, list(zip(studio.members.all(), keys, strict=True))


@contextlib.contextmanager
def at_work(
    address: str, people: list[tuple[Member, str]], accepted: Accepted, pause: Callable[[], float]
) -> Iterator[None]:
    """Everyone annotates until the block ends."""
    is_over = threading.Event()
    threads = []
    with contextlib.ExitStack() as stack:
        for member, key in people:
            own = stack.enter_context(httpx.Client(base_url=address, timeout=60))
            begun = own.post("/v1/session", json={"invitation": key})
            own.headers["X-CSRF-Token"] = begun.json()["csrf"]
            annotator = Annotator(member, own, accepted, pause)
            threads.append(threading.Thread(target=annotator.work, args=(is_over,)))
            threads[-1].start()
        try:
            yield
        finally:
            is_over.set()
            for thread in threads:
                thread.join()


def kill(
    folder: Path, postgres: Postgres | None, kills: int, most_seconds: float
) -> dict[str, Any]:
    """Kill the service, and PostgreSQL, at random moments; then look for every accepted edit."""
    studio, people = make(folder, postgres.url if postgres else "", 20 * kills + 100, 4)
    studio.close()
    accepted = Accepted()
    rng = random.Random(13)
    done = 0
    begun = time.monotonic()
    service = Service(studio.project.folder)
    with at_work(service.address, people, accepted, lambda: 0.005):
        while done < kills and time.monotonic() < begun + most_seconds:
            done += 1
            before = len(accepted.edits)
            while len(accepted.edits) < before + 5:  # it works again
                time.sleep(0.01)
            time.sleep(rng.random() * 0.3)
            if postgres and rng.random() < 0.5:
                postgres.kill()  # the database first, under the service's hands
            service.kill()
            if postgres:
                with contextlib.suppress(FileNotFoundError):
                    postgres.kill()
                postgres.start()
            service.start()
        before = len(accepted.edits)
        while len(accepted.edits) < before + 5:
            time.sleep(0.01)
    service.kill()
    return {"kills": done, **check(studio.project, accepted)}


def check(project: Project, accepted: Accepted) -> dict[str, Any]:
    """Compare what was accepted with what is there."""
    studio = Studio(project)
    with studio.database.reading() as connection:
        events = read_events(connection)  # each is parsed: a torn one would raise
        integrity = "ok"
        if studio.database.engine.dialect.name == "sqlite":
            integrity = str(connection.exec_driver_sql("PRAGMA integrity_check").scalar())
    studio.close()
    changes = [one for one in events if one.kind in VERSIONED]
    there = {
        (one.item, one.annotator, one.version): (one.kind, dict(one.payload)) for one in changes
    }
    lost = [edit for edit in accepted.edits if there.get(edit[:3]) != (edit[3], edit[4])]
    latest: dict[tuple[int, str], int] = {}
    gaps = 0
    for one in changes:
        key = (one.item, one.annotator)
        gaps += one.version != latest.get(key, 0) + 1
        latest[key] = one.version
    return {
        "accepted": len(accepted.edits),
        "events": len(events),
        "lost": len(lost),
        "gaps": gaps,
        "integrity": integrity,
        "statuses": dict(sorted(accepted.statuses.items())),
    }


def load(
    folder: Path, postgres: Postgres | None, annotators: int, seconds: float
) -> dict[str, Any]:
    """Everyone at once, over HTTP and then directly."""
    url = postgres.url if postgres else ""
    studio, people = make(folder, url, int(annotators * seconds), annotators)
    rng = random.Random(13)

    def think() -> float:
        return rng.uniform(0.5, 1.5)

    accepted = Accepted()
    service = Service(studio.project.folder)
    with at_work(service.address, people, accepted, think):
        time.sleep(seconds)
    service.kill()
    direct = write_directly(studio, [member for member, _ in people], seconds / 4, think)
    checked = check(studio.project, accepted)
    studio.close()
    return {
        "annotators": annotators,
        "seconds": seconds,
        "saves": len(accepted.seconds),
        "p50_ms": round(1000 * percentile(sorted(accepted.seconds), 0.5), 1),
        "p95_ms": round(1000 * percentile(sorted(accepted.seconds), 0.95), 1),
        "direct_p50_ms": round(1000 * percentile(sorted(direct), 0.5), 1),
        "direct_p95_ms": round(1000 * percentile(sorted(direct), 0.95), 1),
        **checked,
    }


def write_directly(
    studio: Studio, members: list[Member], seconds: float, think: Callable[[], float]
) -> list[float]:
    """The seconds of saves without HTTP, by as many threads at the same pace."""
    ends = time.monotonic() + seconds
    took: list[float] = []

    def work(member: Member) -> None:
        with studio.database.writing() as connection:
            lease = leases.take(connection, member.id, 3600)
        while lease is not None and time.monotonic() < ends:
            with studio.database.reading() as connection:
                history = read_events(connection, lease.item, member.id, VERSIONED)
            version = history[-1].version if history else 0
            time.sleep(think())
            begun = time.perf_counter()
            payload = {"set": {**VALUE, "remark": f"{version} " + "x" * 300}}
            with studio.database.writing() as connection:
                change_draft(
                    connection,
                    "save",
                    payload,
                    item=lease.item,
                    annotator=member.id,
                    version=version,
                )
            took.append(time.perf_counter() - begun)

    threads = [threading.Thread(target=work, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("kill", "load"))
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--most-seconds", type=float, default=3600, help="of kill")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    postgres = Postgres() if arguments.database == "postgresql" else None
    try:
        with tempfile.TemporaryDirectory(prefix="studio-") as name:
            if arguments.what == "kill":
                result = kill(Path(name), postgres, arguments.kills, arguments.most_seconds)
            else:
                result = load(Path(name), postgres, arguments.annotators, arguments.seconds)
    finally:
        if postgres:
            with contextlib.suppress(FileNotFoundError):
                postgres.remove()
    result = {"what": arguments.what, "database": arguments.database, **result}
    print(json.dumps(result))
    if arguments.out:
        full = {**result, "provenance": provenance([], 13)}
        arguments.out.write_text(json.dumps(full, indent=1))


if __name__ == "__main__":
    main()
