"""Serve: a socket, workers, signals."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from whichsense.errors import BadConfig
from whichsense.serve.answering.engine import BuildPipeline, BuildSystems
from whichsense.serve.app import create_app
from whichsense.serve.protocol import BoundedProtocol
from whichsense.serve.service import Service
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.state.keys import KeyFile

_CONNECTIONS = 4096  # in one worker; more are refused at once
_SILENCE = 15  # seconds after which a worker that says nothing is replaced; a busy machine starts one in more than 5


def serve(
    settings: ServiceSettings,
    *,
    build: BuildPipeline | BuildSystems | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Serve until a signal ends it. `say` is told the address once the socket is bound."""
    check_address(settings)
    folder = Path(tempfile.mkdtemp(prefix="whichsense-serve-"))
    settings = replace(settings, shared=folder)
    if settings.workers > 1:
        counters = folder / "counters"
        counters.mkdir()
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(counters)
    # Workers make the application anew; one process shows what became of it.
    app: Any = partial(_make_in_worker, settings, build)
    if settings.workers == 1:
        app = create_app(settings, build)
    config = uvicorn.Config(
        app,
        factory=settings.workers > 1,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        http=BoundedProtocol,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=int(settings.grace) + 5,
        timeout_worker_healthcheck=_SILENCE,
    )
    try:
        socket = config.bind_socket()
        say(_greeting(settings, socket.getsockname()[1]))
        with contextlib.suppress(KeyboardInterrupt, _Terminated), _terminated():
            if settings.workers > 1:
                Multiprocess(config, [socket]).run()
            else:
                uvicorn.Server(config).run([socket])
        if settings.workers == 1:
            _check_started(app)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_in_worker(
    settings: ServiceSettings, build: BuildPipeline | BuildSystems | None
) -> FastAPI:
    """Make the application of a worker, which stops when the process that started it has ended, by whatever means."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return create_app(settings, build)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


class _Terminated(Exception):
    """SIGTERM, once the server has ended."""


@contextlib.contextmanager
def _terminated() -> Iterator[None]:
    """uvicorn raises SIGTERM again when it has ended; by default that would end Python before it has tidied up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_started(app: Any) -> None:
    """Raise what kept the service from starting."""
    service: Service | None = getattr(app.state, "service", None)
    if service is not None and service.failure is not None:
        raise service.failure


def check_address(settings: ServiceSettings) -> None:
    """Refuse a public address without keys."""
    has_keys = settings.api_key or KeyFile(settings.state).active()
    if not settings.is_local and not has_keys:
        raise BadConfig(
            f"'{settings.host}' can be reached from other machines, and there is no API key. Make one: "
            "whichsense keys add NAME. Or serve this machine alone: --host 127.0.0.1"
        )


def _greeting(settings: ServiceSettings, port: int) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    who = "this machine alone"
    if not settings.is_local:
        who = "every machine that reaches this address, with a key"
    return f"whichsense at http://{host}:{port} for {who}"
