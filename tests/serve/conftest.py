"""A real server in a thread, over fakes."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")
httpx = pytest.importorskip("httpx2", reason="needs the extra 'client'")

import fake_service
import uvicorn
from fake_service import PATIENT, PLAIN, build, make_index

from patience import LONGEST, wait_for
from whichsense.serve.app import BoundedProtocol, create_app
from whichsense.serve.settings import ServiceSettings

Start = Callable[..., Any]


@pytest.fixture(scope="session")
def index_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_index(tmp_path_factory.mktemp("served"))


@contextlib.contextmanager
def running_server(settings: ServiceSettings, systems: Any = build) -> Iterator[str]:
    """The address of a server that ends with the block."""
    app = create_app(settings, systems)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        http=BoundedProtocol,
        timeout_keep_alive=int(LONGEST),  # a slow client meets no closed connection
    )
    server = uvicorn.Server(config)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        wait_for(lambda: answers(address))
        yield address
    finally:
        server.should_exit = True
        thread.join(LONGEST)
        listening.close()


def answers(address: str) -> bool:
    """Whether a service has loaded."""
    with contextlib.suppress(httpx.TransportError):
        return bool(httpx.get(f"{address}/readyz", verify=PLAIN).status_code == 200)
    return False


@pytest.fixture
def let_go() -> Iterator[threading.Event]:
    """Ends the work on held questions, which begins anew for each test."""
    fake_service.let_go.clear()
    yield fake_service.let_go
    fake_service.let_go.set()


@pytest.fixture
def start(index_folder: str, tmp_path: Path) -> Iterator[Start]:
    """Starts a server with these settings, and gives a client of it."""
    with contextlib.ExitStack() as stack:

        def begin(systems: Any = build, **settings: Any) -> Any:
            chosen = {"index": index_folder, "state": tmp_path, "grace": 0.2}
            made = ServiceSettings(**PATIENT | chosen | settings)
            address = stack.enter_context(running_server(made, systems))
            return stack.enter_context(
                httpx.Client(base_url=address, timeout=LONGEST, verify=PLAIN)
            )

        yield begin


@pytest.fixture(scope="module")
def client(index_folder: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of one server for all tests of a file that need nothing special."""
    chosen = {"index": index_folder, "state": tmp_path_factory.mktemp("state")}
    settings = ServiceSettings(**PATIENT | chosen | {"grace": 0.2})
    with running_server(settings) as address:
        with httpx.Client(base_url=address, timeout=LONGEST, verify=PLAIN) as one:
            yield one
