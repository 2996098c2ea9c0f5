"""One application: the service, its routes and what guards them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from fastapi import Depends, FastAPI
from starlette.middleware.cors import CORSMiddleware
from uvicorn.config import STARTUP_FAILURE

from whichsense.serve import problems
from whichsense.serve.answering.engine import BuildPipeline, Engine
from whichsense.serve.guard import Guard, json_only
from whichsense.serve.openai import chat, models, responses
from whichsense.serve.page import routes as page
from whichsense.serve.routes import ask, cases, conversations, corpus, search, status
from whichsense.serve.schemas.description import describe
from whichsense.serve.service import Service
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.telemetry import Telemetry
from whichsense.version import __version__

_SWITCH = 0.001  # seconds after which a thread that answers lets the event loop in; 0.005 is usual
_log = logging.getLogger("whichsense.serve")


def create_app(
    settings: ServiceSettings, build: BuildPipeline | None = None
) -> FastAPI:
    """The application. `build` makes the pipeline over an index; without it, the system that the settings name."""
    sys.setswitchinterval(_SWITCH)
    telemetry = Telemetry()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        folder = settings.shared or Path(tempfile.mkdtemp(prefix="whichsense-serve-"))
        service = Service(settings, Engine(settings, build), folder, telemetry)
        app.state.service = service
        tasks = [
            asyncio.create_task(_load(service)),
            asyncio.create_task(service.answers.watch()),
            asyncio.create_task(service.writing.watch()),
            asyncio.create_task(service.tend()),
        ]
        try:
            with _told_of_stop(service):
                yield
        finally:
            await asyncio.gather(service.answers.stop(), service.writing.stop())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.to_thread(service.close)
            if settings.shared is None:
                shutil.rmtree(folder, ignore_errors=True)

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
    # The first that match are found soonest.
    app.include_router(search.recalled)
    for group in (status, ask, search, conversations, cases, corpus):
        app.include_router(group.router)
    for group in (models, chat, responses):
        app.include_router(group.router)
    app.include_router(page.router)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Last-Event-ID"],
            expose_headers=["Location", "Retry-After", "X-Request-Id"],
        )
    app.add_middleware(Guard, settings=settings, telemetry=telemetry)
    return app


async def _load(service: Service) -> None:
    """Load the models in a thread: /healthz answers meanwhile. A service that cannot answer ends."""
    try:
        await asyncio.to_thread(service.engine.load)
    except Exception as error:
        _log.error("the service cannot start: %s", error)
        if service.settings.workers > 1:
            os._exit(STARTUP_FAILURE)  # the parent would start it again for ever
        service.failure = error
        signal.raise_signal(signal.SIGTERM)


@contextlib.contextmanager
def _told_of_stop(service: Service) -> Iterator[None]:
    """Let running answers know of SIGTERM and Ctrl-C before the server waits for them to end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[None]] = []
    before: dict[signal.Signals, Any] = {}

    def stop() -> None:
        for queue in (service.answers, service.writing):
            stopping.append(asyncio.create_task(queue.stop()))

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)
        server = before[signal.Signals(number)]
        if callable(server):
            server(number, frame)

    for number in (signal.SIGTERM, signal.SIGINT):
        before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
