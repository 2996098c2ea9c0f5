"""Projects on both databases, and a server of them."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy", reason="needs the extra 'studio'")
pytest.importorskip("fastapi", reason="needs the extra 'studio'")
httpx = pytest.importorskip("httpx2", reason="needs the extra 'client'")

import uvicorn

from patience import LONGEST, wait_for
from whichsense.index import Index
from whichsense.studio import Settings, Studio, create_project, pages
from whichsense.studio.api import create_app
from whichsense.studio.members import Member

Make = Callable[..., Studio]
QUESTIONS = [{"id": f"q{n}", "question": f"Who won the cup number {n}?"} for n in range(1, 4)]
PEOPLE = [Member(name, name, "annotator") for name in ("ann", "ben", "cem")]
PAGES = [
    {"title": "Cup", "text": "Ann Lee won the first cup in 1990. Bo Ray won it in 1991."},
    {"title": "Puma", "text": "The puma is a large cat of the Americas."},
]


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("searched") / "index"
    Index.build(PAGES, folder).close()
    return str(folder)


class Postgres:
    """A server of PostgreSQL in a folder of its own, reached by a socket there."""

    def __init__(self) -> None:
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
        found = shutil.which("postgres") if not programs else programs[-1]
        if found is None:
            pytest.skip("PostgreSQL is not installed")
        self.programs = Path(os.path.realpath(found)).parent
        self.folder = Path(tempfile.mkdtemp(prefix="studio-pg-"))
        self.user = pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:  # it refuses to run as root
            self.user = "postgres"
            shutil.chown(self.folder, self.user)
        data = ["-D", str(self.folder / "data")]
        self.run("initdb", *data, "--auth=trust", f"--username={self.user}")
        self.start()

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        if os.getuid() == 0:
            command = ["runuser", "-u", self.user, "--", *command]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def start(self) -> None:
        options = f"-c listen_addresses='' -k {self.folder} -c max_connections=200"
        data = ["-D", str(self.folder / "data"), "-l", str(self.folder / "log")]
        self.run("pg_ctl", *data, "-o", options, "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "-w", "stop")

    def make_database(self) -> str:
        """The URL of a new database."""
        name = f"studio_{uuid.uuid4().hex[:12]}"
        self.run("createdb", "-h", str(self.folder), "-U", self.user, name)
        return f"postgresql+psycopg://{self.user}@/{name}?host={self.folder}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.stop("immediate")
    shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture
def make(tmp_path: Path, searched: str) -> Iterator[Make]:
    """Makes studios over some rows, which end with the test."""
    made = []

    def make_studio(kind: str, rows: list[Any] = QUESTIONS, **settings: Any) -> Studio:
        folder = tmp_path / f"project{len(made)}"
        questions = tmp_path / f"questions{len(made)}.jsonl"
        questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
        own = Settings(kind=kind, **{"index": searched, **settings})
        studio = Studio(create_project(folder, own, questions))
        made.append(studio)
        return studio

    yield make_studio
    for studio in made:
        studio.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """Settings' `database`: empty for SQLite."""
    if request.param == "sqlite":
        return ""
    server: Postgres = request.getfixturevalue("postgres")
    return server.make_database()


@contextlib.contextmanager
def served(studio: Studio) -> Iterator[str]:
    """The address of a server that ends with the block."""
    app = create_app(studio, pages=pages.router)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        wait_for(lambda: server.started)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(LONGEST)
        listening.close()


def annotate(studio: Studio, who: Member, number: int, value: dict[str, Any]) -> None:
    """Take an item, write a value and submit it."""
    studio.take(who, number)
    version = studio.view(who, number)["draft"]["version"]
    version = studio.save(who, number, version, value)["draft"]["version"]
    studio.submit(who, number, version)


def client(address: str, token: str) -> Any:
    """A client that sends a member's key."""
    return httpx.Client(
        base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=LONGEST
    )
