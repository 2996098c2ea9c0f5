"""One application: the service, its routes and what guards them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from types import FrameType
from typing import Any

from fastapi import Depends, FastAPI
from starlette.middleware.cors import CORSMiddleware

from whichsense.serve import problems
from whichsense.serve.answering.engine import BuildPipeline, BuildSystems
from whichsense.serve.guard import Guard, json_only
from whichsense.serve.lifetime import running_service
from whichsense.serve.mcp import endpoint as mcp
from whichsense.serve.openai import chat, models, responses
from whichsense.serve.page import routes as page
from whichsense.serve.routes import (
    ask,
    cases,
    conversations,
    corpus,
    search,
    status,
    uploads,
)
from whichsense.serve.schemas.description import describe
from whichsense.serve.service import Service
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.telemetry import Telemetry
from whichsense.version import __version__


def create_app(
    settings: ServiceSettings, build: BuildPipeline | BuildSystems | None = None
) -> FastAPI:
    """The application. `build` makes the pipeline over an index, or those of several systems by their names; without
    it, the systems that the settings name are built."""
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
    # The first that match are found soonest.
    app.include_router(search.recalled)
    for group in (status, ask, search, conversations, cases, corpus, uploads):
        app.include_router(group.router)
    for group in (models, chat, responses):
        app.include_router(group.router)
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
def _told_of_stop(service: Service, endpoint: mcp.Endpoint) -> Iterator[None]:
    """At SIGTERM and Ctrl-C, let running answers end before the server closes its socket: meanwhile, whoever comes is
    told that the service is stopping. A second Ctrl-C closes the socket at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[None]] = []
    before: dict[int, Any] = {}

    async def stop(number: int) -> None:
        try:
            await service.stop()
            endpoint.close()  # its streams have no end of their own
        finally:
            _pass_on(number, before[number])

    def begin_to_stop(number: int) -> None:
        if not stopping:
            stopping.append(asyncio.create_task(stop(number)))
        elif number == signal.SIGINT:
            _pass_on(number, before[number])

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(begin_to_stop, number)

    for watched in (signal.SIGTERM, signal.SIGINT):
        before[watched] = signal.signal(watched, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pass_on(number: int, handler: Any) -> None:
    """Call the handler that a signal had before."""
    if callable(handler):
        handler(number, None)
