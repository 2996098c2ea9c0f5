"""What holds for every request: sizes, hosts, origins, security headers, and no stack trace in any answer."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time

from starlette._utils import get_route_path
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from whichsense.serve.problems import INTERNAL, OPENAI_PATHS, STOPPING, Problem, Refused
from whichsense.serve.settings import ServiceSettings, is_loopback
from whichsense.serve.telemetry import AccessLog, Telemetry

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
UPLOADS = {"PUT": "/v1/corpus/sources/", "PATCH": "/v1/corpus/uploads/"}
"""Files are sent here, whole or in pieces."""
_LONGEST_URL = 32_768
_A_ROUND = 16  # requests, each of which takes less than half a millisecond of the event loop
_WHILE_STOPPING = ("/healthz", "/metrics", "/v1/cases/")
"""Paths that are answered until the service has stopped: streams that break off are rejoined at the last."""
_log = logging.getLogger("whichsense.serve")

TOO_LARGE = Problem(
    413,
    "size",
    "The body is too large.",
    "Send a shorter question, or a smaller file; begin a new chat where this one is too long.",
)
_SLOW = Problem(408, "slow", "The body did not arrive in time.", "Send the whole body at once.")
_NO_JSON = Problem(
    415, "content-type", "The body must be JSON.", "Send the header: Content-Type: application/json"
)
_HOST = Problem(
    421,
    "host",
    "The service is not asked under this host name.",
    "Use the address that it printed, or start it with --host-name NAME.",
)
_HOSTS = Problem(400, "host", "The request has more than one Host header.", "Send one.")
_ORIGIN = Problem(
    403,
    "origin",
    "Pages of other sites may not ask.",
    "Start the service with --allow-origin ORIGIN.",
)
_URL = Problem(414, "url", "The address is too long.", "Send parameters in the body.")


class Guard:
    """The outermost layer of the application (plain ASGI, so that streams pass through it untouched)."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings, telemetry: Telemetry) -> None:
        self._app = app
        self._settings = settings
        self._telemetry = telemetry
        self._local_hosts = {"localhost", *map(str.lower, settings.hosts)}
        self._access_log = AccessLog(settings)
        self._turns = _Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = {**scope, "root_path": self._settings.root_path}
        path = get_route_path(scope)
        if scope["method"] == "HEAD" and path != "/mcp":
            scope = {**scope, "method": "GET"}  # the server leaves the body out
        exchange = _Exchange(scope, receive, send, self._settings)
        begun = time.perf_counter()
        record = self._telemetry.begin_record(exchange.request_id)
        try:
            self._check(scope, exchange)
            if path != "/healthz":
                await self._turns.wait()
            await self._app(scope, exchange.receive, exchange.send)
        except Refused as refused:
            await exchange.refuse(refused.problem)
        except ClientDisconnect:
            pass  # nobody is there to be told
        except Exception:
            _log.exception("a request failed: %s", exchange.request_id)
            await exchange.refuse(INTERNAL)
        finally:
            route = scope.get("route")
            request = scope["method"], getattr(route, "path", "other"), exchange.status
            seconds = time.perf_counter() - begun
            self._telemetry.count_request(*request, seconds)
            self._access_log.write(record, *request, seconds)

    def _check(self, scope: Scope, exchange: _Exchange) -> None:
        # The studio has no answers that could be on their way.
        service = getattr(scope["app"].state, "service", None)
        is_stopping = service is not None and service.answers.stopping
        if is_stopping and not exchange.path.startswith(_WHILE_STOPPING):
            raise Refused(STOPPING)
        if len(scope["raw_path"]) + len(scope["query_string"]) > _LONGEST_URL:
            raise Refused(_URL)
        self._check_host(exchange.headers.getlist("host"))
        self._check_origin(scope["scheme"], exchange.headers)
        declared = exchange.headers.get("content-length", "")
        is_number = declared.isascii() and declared.isdigit()
        if is_number and int(declared) > exchange.most_bytes:
            raise Refused(TOO_LARGE)

    def _check_host(self, hosts: list[str]) -> None:
        if len(hosts) > 1:
            raise Refused(_HOSTS)
        host = "".join(hosts)
        name = host.rpartition(":")[0] if not host.endswith("]") else host
        name = (name or host).lower()
        is_own = name in self._local_hosts or is_loopback(name)
        if self._settings.is_local and not is_own:
            # A page elsewhere may point a name of its own at this machine.
            raise Refused(_HOST)

    def _check_origin(self, scheme: str, headers: Headers) -> None:
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "")
        if origin is None or origin in self._settings.origins:
            return
        is_own = origin == f"{scheme}://{headers.get('host', '')}"
        if site == "cross-site" or not (is_own or site == "same-origin"):
            raise Refused(_ORIGIN)


class _Turns:
    """Bounds how many requests begin in one round of the event loop.

    A new connection needs three rounds until its request is read. Hundreds of short requests in each round would keep
    even /healthz waiting.
    """

    def __init__(self) -> None:
        self._begun = 0

    async def wait(self) -> None:
        """Wait for a round in which there is room."""
        while self._begun >= _A_ROUND:
            await asyncio.sleep(0)
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._next_round)
        self._begun += 1

    def _next_round(self) -> None:
        self._begun = 0


async def json_only(request: Request) -> None:
    """A dependency of all routes: a form of another site can send any body but JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and kind != "application/json":
        raise Refused(_NO_JSON)


class _Exchange:
    """One request and its response: counts what comes in, adds headers to what goes out."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, settings: ServiceSettings
    ) -> None:
        self.headers = Headers(scope=scope)
        self.request_id = secrets.token_hex(8)
        self.status = 0
        self._receive = receive
        self._send = send
        self.most_bytes = settings.body_bytes
        seconds = settings.body_seconds
        files = UPLOADS.get(scope["method"])
        self.path = get_route_path(scope)
        if files is not None and self.path.startswith(files):
            self.most_bytes = settings.upload_bytes
            seconds *= max(1, settings.upload_bytes >> 20)
        if self.path.startswith(OPENAI_PATHS):
            self.most_bytes = settings.history_bytes
        self._size = 0
        self._complete = False
        self._ends_at = time.monotonic() + seconds

    async def receive(self) -> Message:
        """The next message; Refused where the body grows too large or comes too slowly."""
        if self._complete:
            return await self._receive()
        try:
            async with asyncio.timeout(max(0.0, self._ends_at - time.monotonic())):
                message = await self._receive()
        except TimeoutError:
            raise Refused(_SLOW) from None
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._complete = not message.get("more_body", False)
            if self._size > self.most_bytes:
                raise Refused(TOO_LARGE)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers["X-Request-Id"] = self.request_id
            if self.path.startswith(("/v1/", "/mcp")):
                headers.setdefault("Cache-Control", "no-store")
        await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        """Answer with a problem, unless the response has begun: then the connection is all that can be closed."""
        if self.status:
            return
        response = problem.response(self.path)
        if problem.status in (408, 413) or problem is STOPPING:
            response.headers["Connection"] = "close"
        await response({"type": "http"}, self._receive, self.send)
