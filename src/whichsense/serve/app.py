"""One application from all parts of the service, and how it runs: workers, signals, sockets, HTTP on the wire."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from socket import socket as Socket
from types import FrameType
from typing import Any

import uvicorn
from fastapi import Depends, FastAPI
from starlette.middleware.cors import CORSMiddleware
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from whichsense import __version__
from whichsense.errors import BadConfig
from whichsense.serve import corpus_routes, events, mcp, openai, page, problems, routes
from whichsense.serve.answering import Build
from whichsense.serve.events import Shared
from whichsense.serve.guard import Guard, json_only
from whichsense.serve.problems import Problem
from whichsense.serve.schemas import describe
from whichsense.serve.service import Service, running_service
from whichsense.serve.settings import KeyFile, ServiceSettings
from whichsense.serve.telemetry import RESTARTS, Telemetry, begin_log

_log = logging.getLogger("whichsense.serve")

# One application: the service, its routes and what guards them.


def create_app(settings: ServiceSettings, build: Build = None) -> FastAPI:
    """The application."""
    telemetry = Telemetry()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running_service(settings, build, telemetry) as service:
            app.state.service = service
            async with mcp.running_endpoint(service) as app.state.mcp:
                with _told_of_stop(service, app.state.mcp):
                    yield

    app = FastAPI(
        title="whichsense",
        version=__version__,
        summary="Ambiguous questions, answered in every sense they have.",
        lifespan=lifespan,
        dependencies=[Depends(json_only)],
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
    )
    problems.install(app)
    describe(app)
    for router in (*routes.routers, *corpus_routes.routers, *openai.routers):
        app.include_router(router)
    app.router.routes.append(mcp.route)
    app.include_router(page.router)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["*"],  # clients send some of their own, as X-Stainless-OS
            expose_headers=["Location", "Retry-After", "X-Request-Id", *mcp.HEADERS],
        )
    app.add_middleware(Guard, settings=settings, telemetry=telemetry)
    return app


@contextlib.contextmanager
def _handling(handle: Any, *numbers: int) -> Iterator[dict[int, Any]]:
    """Handle signals while the block runs, in the main thread: the handlers that they had before."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            before[number] = signal.signal(number, handle)
    try:
        yield before
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _told_of_stop(service: Service, endpoint: mcp.Endpoint) -> Iterator[None]:
    """At SIGTERM and Ctrl-C, let running answers end before the server closes its socket: meanwhile, whoever comes is
    told that the service is stopping. A second Ctrl-C closes the socket at once."""
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[None]] = []

    async def stop(number: int) -> None:
        try:
            await service.stop()
            endpoint.close()  # its streams have no end of their own
        finally:
            _pass_on(number, before[number])

    def begin_to_stop(number: int) -> None:
        if not stopping:
            if service.settings.workers == 1:
                _log.warning(_STOPPING, service.settings.grace)
            stopping.append(asyncio.create_task(stop(number)))
        elif number == signal.SIGINT:
            _pass_on(number, before[number])

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(begin_to_stop, number)

    with _handling(handle, signal.SIGTERM, signal.SIGINT) as before:
        yield


def _pass_on(number: int, handler: Any) -> None:
    """Call the handler that a signal had before."""
    if callable(handler):
        handler(number, None)


# HTTP on the wire: uvicorn's own protocol, with a bound on how long and how large a request's head
# may be.

HEAD_SECONDS = 20.0
"""For the request line and the headers."""
HEAD_BYTES = 65_536
_READ_ON = 2**20  # bytes of a head that was refused: who still sends has not read why
_TOO_LARGE = Problem(
    431,
    "head",
    "The head of the request is too large.",
    "Send less in its headers, and the question in its body.",
    headers={"Connection": "close"},
)


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose request does not begin, or whose headers do not end; refuses headers that are too
    large."""

    _head_bytes = 0
    _is_refused = False
    _in_head = True
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > HEAD_BYTES:
            self._refuse_head()
            raise ValueError("the head is too large")  # the parser stops
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        if not self._is_refused:
            super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > _READ_ON:
                self.transport.close()
            elif self._head_bytes > HEAD_BYTES and not self._is_refused:
                self._refuse_head()

    def _refuse_head(self) -> None:
        """Say why, and read on for a while: a connection that is closed on unread data loses the answer."""
        self._is_refused = True
        response = _TOO_LARGE.response()
        lines = [STATUS_LINE[response.status_code]]
        for name, value in response.raw_headers:
            lines += [name, b": ", value, b"\r\n"]
        self.transport.write(b"".join([*lines, b"\r\n", bytes(response.body)]))
        self.transport.write_eof()

    def send_400_response(self, msg: str) -> None:
        if not self._is_refused:
            super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._in_head, self._head_bytes = True, 0
        self._patience = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


# Serve: a socket, workers, signals.

_STOPPING = "stopping: whoever comes now is refused, what runs gets %.0f s"
_CONNECTIONS = 4096  # in one worker; more are refused at once
_SILENCE = 60  # seconds after which a worker that says nothing is replaced; a busy machine starts one in more than 15


def serve(
    settings: ServiceSettings,
    *,
    build: Build = None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Serve until a signal ends it. `say` is told the address once the socket is bound."""
    check_address(settings)
    folder = Path(tempfile.mkdtemp(prefix="whichsense-serve-"))
    settings = replace(settings, shared=folder)
    begin_log(settings)
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
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
    )
    try:
        socket = config.bind_socket()
        say(_greeting(settings, socket.getsockname()[1]))
        with (
            contextlib.suppress(KeyboardInterrupt, _Terminated),
            _handling(_terminate, signal.SIGTERM),
        ):
            if settings.workers > 1:
                _Workers(config, [socket], settings).run()
            else:
                uvicorn.Server(config).run([socket])
        if settings.workers == 1:
            _check_started(app)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_in_worker(settings: ServiceSettings, build: Build) -> FastAPI:
    """Make the application of a worker, which stops when the process that started it has ended, by whatever means."""
    begin_log(settings)
    threading.Thread(target=_end_with_parent, args=(settings,), daemon=True).start()
    return create_app(settings, build)


def _end_with_parent(settings: ServiceSettings) -> None:
    parent = multiprocessing.parent_process()
    if parent is None or settings.shared is None:
        return
    parent.join()
    with contextlib.suppress(OSError):  # one of the workers tells of it
        (settings.shared / "orphaned").mkdir()
        _log.warning("process %d, which held the workers, has ended", parent.pid)
    os.kill(os.getpid(), signal.SIGTERM)


class _Workers(Multiprocess):
    """The worker processes. One that dies is told of, counted and replaced."""

    def __init__(
        self, config: uvicorn.Config, sockets: list[Socket], settings: ServiceSettings
    ) -> None:
        super().__init__(config, sockets)
        self._grace = settings.grace
        self._shared = Shared((settings.shared or Path()) / events.FILE)

    def keep_subprocess_alive(self) -> None:
        before = list(self.processes)
        super().keep_subprocess_alive()
        for old, new in zip(before, self.processes, strict=False):
            if old is not new:
                told = old.pid, old.exitcode, new.pid
                _log.error("worker %d has ended (%s); %d takes its place", *told)
                self._shared.count(RESTARTS)

    def terminate_all(self) -> None:
        _log.warning(_STOPPING, self._grace)
        super().terminate_all()


class _Terminated(Exception):
    """SIGTERM, once the server has ended."""


def _terminate(number: int, frame: FrameType | None) -> None:
    """uvicorn raises SIGTERM again when it has ended; by default that would end Python before it has tidied up."""
    raise _Terminated


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
