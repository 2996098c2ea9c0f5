"""The protocol at /mcp: streamable HTTP, in the stateless form of 2026-07-28 and in the sessions of older clients.

What guards the other paths guards this one: hosts, origins, sizes, keys and rates. A session lives in one worker, and
requests that reach another one are passed on. The protocol's package takes a second to import, so it is imported at
the first request.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from whichsense.errors import require
from whichsense.serve.access import Caller
from whichsense.serve.mcp.forwarding import forward, listening, socket_of
from whichsense.serve.problems import STOPPING, Refused
from whichsense.serve.service import Service

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

HEADERS = ("Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name")
"""That clients in a page send and read."""
_CALLER = "whichsense.caller"
_SESSION = "mcp-session-id"
_MOST_SESSIONS = 1_000  # of older clients


class Endpoint:
    """The protocol's server of one worker. Lives in the event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._has_workers = service.settings.workers > 1
        self._folder = service.settings.shared or Path()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a caller who may ask."""
        request = Request(scope, receive)
        caller = await self._service.access.check(request, "ask")
        if self._service.answers.stopping:
            raise Refused(STOPPING)
        if self._has_workers:
            holder = await self._holder(request.headers.get(_SESSION, ""))
            if holder and await forward(holder, request, caller, send):
                return
            send = self._announcing(send)
        await self._answer(scope, receive, send, caller)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, caller: Caller
    ) -> None:
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._manager))
        manager = await asyncio.shield(self._manager)
        scope = {**scope, _CALLER: caller, "user": _user(caller)}
        await manager.handle_request(scope, receive, send)

    async def _holder(self, session_id: str) -> Path | None:
        """The socket of the worker that holds a session, if that is another one."""
        if not session_id:
            return None
        shared = self._service.shared
        process = await asyncio.to_thread(shared.session_process, session_id)
        if process in (None, os.getpid()):
            return None
        return socket_of(self._folder, process)

    def _announcing(self, send: Send) -> Send:
        """Let the other workers know of a session before its client does."""

        async def announce(message: Message) -> None:
            if message["type"] == "http.response.start":
                session_id = Headers(raw=list(message["headers"])).get(_SESSION)
                if session_id:
                    add = self._service.shared.add_session
                    await asyncio.to_thread(add, session_id)
            await send(message)

        return announce

    async def _run(self, begun: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Hold the sessions, in a task of their own, until the service ends."""
        try:
            manager = await asyncio.to_thread(_make_manager, self._service)
        except Exception as error:
            self._manager = None  # the next request tries again
            begun.set_exception(error)
            return
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(manager.run())
            if self._has_workers:
                path = socket_of(self._folder, os.getpid())
                await stack.enter_async_context(listening(path, self._answer))
            begun.set_result(manager)
            await self._ended.wait()

    def close(self) -> None:
        """End all streams."""
        self._ended.set()

    async def wait_closed(self) -> None:
        self.close()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)


@contextlib.asynccontextmanager
async def running_endpoint(service: Service) -> AsyncIterator[Endpoint]:
    endpoint = Endpoint(service)
    try:
        yield endpoint
    finally:
        await endpoint.wait_closed()


class _App:
    """What the route calls: the endpoint of the application that is asked."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint: Endpoint = scope["app"].state.mcp
        await endpoint.handle(scope, receive, send)


route = Route(
    "/mcp", _App(), methods=["GET", "POST", "DELETE"], include_in_schema=False
)


def _make_manager(service: Service) -> StreamableHTTPSessionManager:
    """In a thread."""
    require("mcp", "serve")
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    from whichsense.serve.mcp.server import make_server

    def caller_of(context: Any) -> Caller:
        caller: Caller = context.request.scope[_CALLER]
        return caller

    guarded_already = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return StreamableHTTPSessionManager(
        make_server(service, caller_of),
        security_settings=guarded_already,
        max_request_body_size=service.settings.body_bytes,
        max_sessions=_MOST_SESSIONS,
    )


def _user(caller: Caller) -> Any:
    """The caller as the protocol's package knows callers: a session belongs to the key that began it."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(
        AccessToken(token="", client_id=caller.id, scopes=list(caller.scopes))
    )
