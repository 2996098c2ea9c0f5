"""A real server in a thread, over fakes."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'serve'")
httpx = pytest.importorskip("httpx2", reason="needs the extra 'client'")

import uvicorn
from fake_service import build, make_index

from whichsense.serve.app import create_app
from whichsense.serve.protocol import BoundedProtocol
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
        app, log_level="warning", access_log=False, http=BoundedProtocol
    )
    server = uvicorn.Server(config)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        ends_at = time.monotonic() + 20
        while time.monotonic() < ends_at:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{address}/readyz").status_code == 200:
                    break
            time.sleep(0.02)
        yield address
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


@pytest.fixture
def start(index_folder: str, tmp_path: Path) -> Iterator[Start]:
    """Starts a server with these settings, and gives a client of it."""
    with contextlib.ExitStack() as stack:

        def begin(systems: Any = build, **settings: Any) -> Any:
            chosen = {"index": index_folder, "state": tmp_path, "grace": 0.2}
            made = ServiceSettings(**chosen | settings)
            address = stack.enter_context(running_server(made, systems))
            return stack.enter_context(httpx.Client(base_url=address, timeout=20))

        yield begin


@pytest.fixture(scope="module")
def client(
    index_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """A client of one server for all tests of a file that need nothing special."""
    settings = ServiceSettings(
        index=index_folder, state=tmp_path_factory.mktemp("state"), grace=0.2
    )
    with running_server(settings) as address, httpx.Client(base_url=address) as one:
        yield one
