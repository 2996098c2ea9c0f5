"""A service from its start to its end, whatever protocol it is asked by."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from uvicorn.config import STARTUP_FAILURE

from whichsense.serve.answering.engine import BuildPipeline, BuildSystems, Engine
from whichsense.serve.service import Service
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.telemetry import Telemetry

_SWITCH = 0.001  # seconds after which a thread that answers lets the event loop in; 0.005 is usual
_READY = "ready"  # a file of the shared folder: some worker can answer
_log = logging.getLogger("whichsense.serve")


@contextlib.asynccontextmanager
async def running_service(
    settings: ServiceSettings,
    build: BuildPipeline | BuildSystems | None,
    telemetry: Telemetry,
) -> AsyncIterator[Service]:
    """A service that loads its models in a thread, and is closed at the end of the block."""
    sys.setswitchinterval(_SWITCH)
    folder = settings.shared or Path(tempfile.mkdtemp(prefix="whichsense-serve-"))
    service = Service(settings, Engine(settings, build), folder, telemetry)
    loading = asyncio.create_task(_load(service, folder / _READY))
    if (folder / _READY).exists():
        await loading  # in the place of a worker that died: the others answer meanwhile
    tasks = [
        loading,
        asyncio.create_task(service.answers.watch()),
        asyncio.create_task(service.writing.watch()),
        asyncio.create_task(service.tend()),
    ]
    try:
        yield service
    finally:
        await service.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(service.close)
        if settings.shared is None:
            shutil.rmtree(folder, ignore_errors=True)


async def _load(service: Service, ready: Path) -> None:
    """Load the models in a thread: /healthz answers meanwhile. A service that cannot answer ends."""
    try:
        await asyncio.to_thread(service.engine.load)
        ready.touch()
    except Exception as error:
        _log.error("the service cannot start: %s", error)
        if service.settings.workers > 1:
            os._exit(STARTUP_FAILURE)  # the parent would start it again for ever
        service.failure = error
        signal.raise_signal(signal.SIGTERM)
