"""Requests of older clients, whose sessions live in one worker, passed on to that worker.

Each worker listens at a socket in the folder that all of them share. A request is one line of JSON; the answer is a
line with status and headers, and then the body as it comes.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from whichsense.serve.access import Caller

Handle = Callable[[Scope, Receive, Send, Caller], Awaitable[None]]
_LONGEST_LINE = 2**20  # a request's body has at most 64 KiB
_CHUNK = 65_536
_ENDED = {"type": "http.disconnect"}


def socket_of(folder: Path, process: int) -> Path:
    """Where a worker listens."""
    return folder / f"mcp-{process}.sock"


@contextlib.asynccontextmanager
async def listening(path: Path, handle: Handle) -> AsyncIterator[None]:
    """Answer what other workers pass on."""

    async def accept(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(ConnectionError):
            await _answer(reader, writer, handle)
        writer.close()

    server = await asyncio.start_unix_server(accept, path, limit=_LONGEST_LINE)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handle: Handle
) -> None:
    given = json.loads(await reader.readline())
    body: Message | None = {
        "type": "http.request",
        "body": base64.b64decode(given["body"]),
    }
    caller = Caller(given["caller"], tuple(given["scopes"]))
    headers = [_header(*pair) for pair in given["headers"]]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": given["method"],
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": headers,
    }

    async def receive() -> Message:
        nonlocal body
        if body is not None:
            message, body = body, None
            return message
        await reader.read()  # until the other side goes
        return _ENDED

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            pairs = [_text(*pair) for pair in message.get("headers", ())]
            line = json.dumps({"status": message["status"], "headers": pairs})
            writer.write(f"{line}\n".encode())
        else:
            writer.write(message.get("body", b""))
        await writer.drain()

    await handle(scope, receive, send, caller)


async def forward(path: Path, request: Request, caller: Caller, send: Send) -> bool:
    """Have another worker answer a request. False, and nothing sent, where it is not there any more."""
    try:
        reader, writer = await asyncio.open_unix_connection(path, limit=_LONGEST_LINE)
    except OSError:
        return False
    leaving: asyncio.Task[None] | None = None
    try:
        given = {
            "method": request.method,
            "headers": [_text(*pair) for pair in request.scope["headers"]],
            "body": base64.b64encode(await request.body()).decode(),
            "caller": caller.id,
            "scopes": caller.scopes,
        }
        writer.write(f"{json.dumps(given)}\n".encode())
        await writer.drain()
        leaving = asyncio.create_task(_close_with_client(request, writer))
        line = await reader.readline()
        if not line:
            return False
        await _pass_on(json.loads(line), reader, send)
        return True
    finally:
        if leaving is not None:
            leaving.cancel()
        writer.close()


async def _pass_on(head: Any, reader: asyncio.StreamReader, send: Send) -> None:
    headers = [_header(*pair) for pair in head["headers"]]
    start = {"type": "http.response.start", "status": head["status"]}
    await send({**start, "headers": headers})
    while chunk := await reader.read(_CHUNK):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _close_with_client(request: Request, writer: asyncio.StreamWriter) -> None:
    """A client that goes away stops its work."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    writer.close()


def _text(name: bytes, value: bytes) -> tuple[str, str]:
    return name.decode("latin-1"), value.decode("latin-1")


def _header(name: str, value: str) -> tuple[bytes, bytes]:
    return name.encode("latin-1"), value.encode("latin-1")
