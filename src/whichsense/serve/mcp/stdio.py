"""The protocol over standard input and output: the client starts the program. Nothing else is written there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any, cast

from mcp.server.stdio import stdio_server

from whichsense.serve.access import Caller
from whichsense.serve.answering.engine import BuildPipeline
from whichsense.serve.lifetime import running_service
from whichsense.serve.mcp.server import make_server
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.state.keys import SCOPES
from whichsense.serve.telemetry import Telemetry

_USER = Caller("", SCOPES)  # whoever started the program
_CHUNK = 65_536
_LONGEST_LINE = 4 * 2**20
_WAITING = 100  # lines that were read and not yet answered


def serve_stdio(settings: ServiceSettings, build: BuildPipeline | None = None) -> None:
    """Serve until standard input ends, or a signal comes."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(settings, build))


async def _serve(settings: ServiceSettings, build: BuildPipeline | None) -> None:
    serving = asyncio.create_task(_serve_lines(settings, build))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, serving.cancel)
    try:
        await serving
    except asyncio.CancelledError:
        if not serving.cancelled():
            raise


async def _serve_lines(settings: ServiceSettings, build: BuildPipeline | None) -> None:
    async with running_service(settings, build, Telemetry()) as service:
        server = make_server(service, lambda context: _USER)
        lines = cast(Any, _Lines(sys.stdin.fileno()))
        try:
            async with stdio_server(stdin=lines) as (incoming, outgoing):
                options = server.create_initialization_options()
                await server.run(incoming, outgoing, options)
        except asyncio.CancelledError:
            if service.failure is not None:
                raise service.failure from None
            raise


class _Lines:
    """Lines of a file, read by a thread that nobody waits for: a signal ends the program while it blocks."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING)
        threading.Thread(target=self._read, daemon=True).start()

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            yield line.decode("utf-8", "replace")

    def _read(self) -> None:
        rest = b""
        with contextlib.suppress(RuntimeError, OSError, asyncio.CancelledError):
            while chunk := os.read(self._file, _CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._put(line)
                if len(rest) > _LONGEST_LINE:
                    rest = b"too long"  # no message: the client is told so
            self._put(None)

    def _put(self, line: bytes | None) -> None:
        """Hand a line over, and wait while too many lie there."""
        putting = self._lines.put(line)
        asyncio.run_coroutine_threadsafe(putting, self._loop).result()
