"""The service of one worker, from its start to its end: what routes and other protocols call, and who may."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.responses import Response
from uvicorn.config import STARTUP_FAILURE

from whichsense.conversation import Conversation, ServedConversation
from whichsense.pipeline import Pipeline
from whichsense.serve import events, state
from whichsense.serve.answering import (
    Answers,
    Build,
    Engine,
    Engines,
    Running,
    Served,
    answer,
    check_stages,
    converse,
)
from whichsense.serve.events import Event, EventStream, Origin, Shared, as_json, dump, encoded
from whichsense.serve.problems import Problem, Refused, busy
from whichsense.serve.schemas import AskRequest, BeginRequest, ExplainRequest, ReplyRequest
from whichsense.serve.settings import NO_KEY, SCOPES, ApiKey, KeyFile, ServiceSettings, split_key
from whichsense.serve.state import Changed, Conversations, Quotas, Traces, Uploads, View
from whichsense.serve.telemetry import Telemetry
from whichsense.types import Case, ServedCase

# Who asks: the API key of a request, its scopes, its rate.

_BURST = 0.25  # of a minute's requests
_REMEMBERED = 1000  # keys that need no second scrypt
_log = logging.getLogger("whichsense.serve")


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever made a request. Cases belong to the key that asked."""

    id: str
    scopes: tuple[str, ...]
    rate: int | None = None
    """Requests a minute; None: as many as there is room for."""
    indexes: tuple[str, ...] = ()
    """The names of those that may be used; none: all."""
    quota: int | None = None
    """Bytes of files in a day; None: as many as there is room for."""

    @property
    def view(self) -> View:
        """The cases that may be seen: one's own, with the scope `write` everyone's."""
        owner = None if "write" in self.scopes else self.id
        return View(owner, self.indexes)


_NOBODY = Caller("", SCOPES)  # without keys, on this machine alone
_UNKNOWN = Problem(
    401,
    "key",
    "This needs a valid API key.",
    "Send the header: Authorization: Bearer ws_…; the operator makes keys with whichsense keys add.",
    headers={"WWW-Authenticate": 'Bearer realm="whichsense"'},
)


def lacks_scope(scope: str, options: str) -> Problem:
    """403: the key must have been made with other options."""
    fix = f"Use a key made with: whichsense keys add NAME {options}"
    return Problem(403, "scope", f"This key lacks the scope '{scope}'.", fix)


_TOO_MANY = "Too many keys that were sent from this address were wrong."


def _paced(rate: int) -> tuple[int, int]:
    """A rate, and how many of a minute's requests may come at once."""
    return rate, max(1, int(rate * _BURST))


class Access:
    """Checks keys. scrypt runs once for each key and process, in a thread; after that a keyed hash is compared."""

    def __init__(self, settings: ServiceSettings, shared: Shared, telemetry: Telemetry) -> None:
        self._file = KeyFile(settings.state)
        self._telemetry = telemetry
        self._settings = settings
        self._given = settings.api_key.encode()
        self._pace = _paced(settings.failures)
        self._shared = shared
        self._pepper = secrets.token_bytes(32)
        self._known: dict[bytes, str] = {}  # keyed hash of a whole key → its id
        self._one_at_a_time = asyncio.Semaphore(1)  # scrypt takes 16 MB

    def needs_key(self) -> bool:
        """Always at a public address, and wherever there is or was a key: revoking the last one opens nothing."""
        return bool(self._given or not self._settings.is_local or self._file.keys())

    async def _identify(self, authorization: str, address: str) -> Caller:
        """The caller behind an Authorization header from an address; Refused where there is none."""
        if not self.needs_key():
            return _NOBODY
        if not authorization:
            self._telemetry.refused_keys.labels("none").inc()
            raise Refused(_UNKNOWN)
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        is_token = scheme.lower() == "bearer" and token.isascii()
        given = token.encode() if is_token else b""
        if self._given and secrets.compare_digest(given, self._given):
            scopes = self._settings.api_key_scopes
            return Caller("environment", scopes, self._settings.rate)
        # What this process has verified before needs no second scrypt.
        key = self._file.keys().get(self._known.get(self._mark(given), ""))
        if key is None or not key.is_active:
            key = await self._verified(given, address)
        rate = key.rate or self._settings.rate
        return Caller(key.id, key.scopes, rate, key.indexes, key.quota)

    def _mark(self, token: bytes) -> bytes:
        return hmac.digest(self._pepper, token, hashlib.sha256)

    async def _verified(self, token: bytes, address: str) -> ApiKey:
        """The key of a token. An id that there is not is told no sooner than a wrong secret, and who sends many wrong
        ones has to wait."""
        source = f"wrong keys of {address}"
        wait = await asyncio.to_thread(self._shared.wait, source, *self._pace)
        if wait > 0:
            raise Refused(busy("wrong-keys", _TOO_MANY, wait + 0.5))
        key_id, secret = split_key(token.decode()) or ("", "")
        key = self._file.keys().get(key_id, NO_KEY)
        async with self._one_at_a_time:
            fits = await asyncio.to_thread(key.fits, secret)
        if not fits or not key.is_active:
            await asyncio.to_thread(self._shared.admit, source, *self._pace)
            reason = "inactive" if fits else "secret" if key.id else "unknown"
            self._telemetry.refused_keys.labels(reason).inc()
            _log.warning("a key was refused (%s), from %s", reason, address)
            raise Refused(_UNKNOWN)
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[self._mark(token)] = key.id
        return key

    async def check(self, request: Request, scope: str) -> Caller:
        """The caller of a request, who must have a scope and keep within the rate."""
        address = request.client.host if request.client else ""
        caller = await self._identify(request.headers.get("authorization", ""), address)
        self._telemetry.record.key = caller.id
        if scope not in caller.scopes:
            raise Refused(lacks_scope(scope, f"--scope {scope}"))
        if caller.rate is not None:
            pace = _paced(caller.rate)
            wait = await asyncio.to_thread(self._shared.admit, caller.id, *pace)
            if wait > 0:
                raise Refused(busy("rate", "This key has asked too often.", wait + 0.5))
        return caller


# What the routes work with: one object for each worker.

Result = TypeVar("Result")
Make = Callable[[Pipeline, Running], str]
"""Works in a thread, within the limits of one answer, and returns the JSON of its result."""
_REFRESH = 1.0  # seconds between looks for a newer index
_UNTRACED = 900.0  # seconds for which a case can be rejoined where traces are off
_CHANGED = Problem(
    409,
    "changed",
    "Someone else replied in this conversation in the same moment.",
    "Read it again, then reply.",
)


class Service:
    """The engine, the queue, the stores and the counters. Made in the event loop, closed at its end."""

    def __init__(
        self, settings: ServiceSettings, engines: Engines, folder: Path, telemetry: Telemetry
    ) -> None:
        self.settings = settings
        self.engines = engines
        self.shared = Shared(folder / events.FILE)
        kept = settings.state if settings.traces else folder
        self.traces = Traces(kept / state.FILE)
        self.conversations = Conversations(kept / state.FILE)
        self.uploads = Uploads(settings.state / "uploads")
        self.quotas = Quotas(settings.state / state.QUOTAS)
        self.telemetry = telemetry
        self.failure: Exception | None = None
        """Why it could not start."""
        self.access = Access(settings, self.shared, telemetry)
        self.answers = Answers(settings, self.shared, self.telemetry)
        # One writer at a time, beside the answers.
        alone = replace(settings, parallel=1, queue=8, deadline=3600.0)
        self.writing = Answers(alone, self.shared, telemetry, counted=False)
        # Short work beside the answers: searches, look-ups, traces.
        self._short = ThreadPoolExecutor(2, "whichsense-short")
        self._short_waiting = 0

    def engine(self, caller: Caller, index: str = "") -> Engine:
        """The engine of an index that the caller may use, without a name of the first; Refused where there is none."""
        return self.engines.choose(index, caller.indexes)

    def served(self, caller: Caller, index: str = "") -> Served:
        """What answers over it now; Refused while it is loading."""
        return self.engine(caller, index).served

    async def briefly(self, work: Callable[[], Result]) -> Result:
        """Do short work in a thread; refuse it where too much waits already."""
        most = 4 * (self.settings.queue + self.settings.parallel)
        if self._short_waiting >= most:
            raise Refused(busy("queue-full", "Too many requests are waiting.", 1))
        self._short_waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._short, work)
        finally:
            self._short_waiting -= 1

    async def conversation(self, identifier: str, caller: Caller) -> ServedConversation | None:
        """A conversation by its id; None where the caller sees none."""
        find = partial(self.conversations.find, identifier, caller.view)
        return await self.briefly(find)

    def submit(
        self,
        make: Make,
        caller: Caller,
        served: Served,
        *,
        system: str = "",
        threshold: float | None = None,
        **options: Any,
    ) -> Running:
        """Take work over a system's pipeline into the queue, with a threshold of its own if one is given. Options are
        those of `Answers.submit`."""
        system = system or served.system
        pipeline = served.choose(system).with_threshold(threshold)

        def work(running: Running) -> str:
            on_stage = partial(self.answers.on_stage, running)
            return make(replace(pipeline, on_stage=on_stage), running)

        origin = Origin(caller.id, served.name, system)
        return self.answers.submit(work, origin, **options)

    def ask(self, body: AskRequest, caller: Caller, **options: Any) -> Running:
        """Begin to answer a question. Its result is the JSON of a `ServedCase`."""
        served = self.served(caller, body.index)
        pipeline = served.choose(body.system)
        check_stages(pipeline, clarify=body.clarify, explain=body.explain)
        options |= self._bounds(body, body.system)
        return self.submit(partial(self._answer, body), caller, served, **options)

    def begin(self, body: BeginRequest, caller: Caller, **options: Any) -> Running:
        """Begin a conversation. Its result is the JSON of a `ServedConversation`."""
        served = self.served(caller, body.index)
        options |= self._bounds(body, body.system)
        return self.submit(partial(self._turn, body, None), caller, served, **options)

    def reply(
        self, kept: ServedConversation, body: ReplyRequest, caller: Caller, **options: Any
    ) -> Running:
        """Reply in a conversation. Its result is the JSON of a `ServedConversation`."""
        served = self.served(caller, kept.index)
        explains = isinstance(body, ExplainRequest)
        check_stages(served.choose(kept.system), clarify=False, explain=explains)
        owner = replace(caller, id=kept.owner)
        options |= self._bounds(body, kept.system)
        return self.submit(partial(self._turn, body, kept), owner, served, **options)

    def _bounds(self, body: BeginRequest | ReplyRequest, system: str) -> dict[str, Any]:
        """What a request says of its answer; the log has its question."""
        said = getattr(body, "question", getattr(body, "text", ""))
        self.telemetry.record.question = said
        bounds = body.model_dump(include={"threshold", "seconds"})
        return bounds | {"system": system}

    def _answer(self, body: AskRequest, pipeline: Pipeline, running: Running) -> str:
        return dump(self._leave_trace(running, answer(pipeline, body)).to_json())

    def _turn(
        self,
        body: BeginRequest | ReplyRequest,
        before: ServedConversation | None,
        pipeline: Pipeline,
        running: Running,
    ) -> str:
        """Keep a conversation with one more turn, and the case of a question that was asked in it."""
        so_far = before.conversation if before else None
        kept = self.trace(running, converse(pipeline, so_far, body), before)
        try:
            self.conversations.save(kept, before)
        except Changed:
            raise Refused(_CHANGED) from None
        return dump(kept.to_json())

    def trace(
        self, running: Running, conversation: Conversation, before: ServedConversation | None
    ) -> ServedConversation:
        """Leave a trace of the question that the last turn asked, if it asked one: the conversation with its case's id.

        In a thread.
        """
        case_id = before.case_id if before else ""
        case = conversation.case
        if case is not None and (before is None or case != before.conversation.case):
            case_id = running.id
            # Whoever opens the case by its link sees what was asked back.
            asked = conversation.last.clarification
            self._leave_trace(running, replace(case, clarification=asked))
        origin = running.origin
        return ServedConversation(conversation, case_id, origin.system, origin.index, origin.owner)

    def _leave_trace(self, running: Running, case: Case) -> ServedCase:
        """In a thread, before the client has the answer: no answered question is without its trace."""
        origin = running.origin
        served = ServedCase(running.id, case, origin.system, origin.index)
        if not self.traces.add(served, origin.owner):
            self.telemetry.lost.inc()
        return served

    async def respond(
        self, running: Running, request: Request, queue: Answers | None = None
    ) -> Response:
        """The JSON of an answer when it is there; or its events, of which other workers learn first, so that it can be
        rejoined there."""
        if not running.streamed:
            return as_json(await self.result(running, request, queue))
        if self.settings.workers > 1:
            await self.briefly(lambda: self.shared.begin(running.id, running.origin))
        following = running.follow(heartbeat=self.settings.heartbeat)
        return self.event_stream(following, running.id)

    def event_stream(self, events: AsyncIterator[Event | None], answer_id: str) -> EventStream:
        """Events as a response that says where they are rejoined."""
        location = f"{self.settings.root_path}/v1/cases/{answer_id}"
        return EventStream(encoded(events), {"Location": location})

    async def result(self, running: Running, request: Request, queue: Answers | None = None) -> str:
        """The JSON of an answer when it is there. A client that goes away stops its work."""
        ending = asyncio.ensure_future(running.ending())
        leaving = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait({ending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (ending, leaving):
                task.cancel()
            if not running.ended:
                (queue or self.answers).cancel(running)
        return running.result()

    async def tend(self) -> None:
        """For ever: a newer index is served, and what is kept for a while goes."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_REFRESH)
            await loop.run_in_executor(self._short, self.engines.refresh)
            with contextlib.suppress(Exception):
                await loop.run_in_executor(self._short, self._forget)

    async def stop(self) -> None:
        """Take nothing more in; give what runs its grace, then end it."""
        await asyncio.gather(self.answers.stop(), self.writing.stop())

    def _forget(self) -> None:
        self.shared.forget_older(2 * self.settings.deadline + _UNTRACED)
        if not self.settings.traces:
            self.traces.delete_older(_UNTRACED)
            self.conversations.delete_older(_UNTRACED)

    def close(self) -> None:
        for queue in (self.answers, self.writing):
            queue.close()
        self._short.shutdown(wait=True)
        for store in (self.traces, self.conversations, self.quotas, self.shared):
            store.close()


# For the OpenAPI description; the check itself is ours, so that errors are problems.
_bearer = HTTPBearer(auto_error=False, description="A key of `whichsense keys add`.")


async def _serving(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Serving = Annotated[Service, Depends(_serving)]


def _requires(scope: str) -> Any:
    """A dependency: the caller, who must have a scope."""

    async def caller(request: Request, service: Serving, _: object = Depends(_bearer)) -> Caller:
        return await service.access.check(request, scope)

    return Depends(caller)


Asks = Annotated[Caller, _requires("ask")]
Writes = Annotated[Caller, _requires("write")]


async def _disconnected(request: Request) -> None:
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return


# A service from its start to its end, whatever protocol it is asked by.

_SWITCH = 0.001  # seconds after which a thread that answers lets the event loop in; 0.005 is usual
_READY = "ready"  # a file of the shared folder: some worker can answer


@contextlib.asynccontextmanager
async def running_service(
    settings: ServiceSettings, build: Build, telemetry: Telemetry
) -> AsyncIterator[Service]:
    """A service that loads its models in a thread, and is closed at the end of the block."""
    sys.setswitchinterval(_SWITCH)
    folder = settings.shared or Path(tempfile.mkdtemp(prefix="whichsense-serve-"))
    service = Service(settings, Engines(settings, build), folder, telemetry)
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
        await asyncio.to_thread(service.engines.load)
        ready.touch()
    except Exception as error:
        _log.error("the service cannot start: %s", error)
        if service.settings.workers > 1:
            os._exit(STARTUP_FAILURE)  # the parent would start it again for ever
        service.failure = error
        signal.raise_signal(signal.SIGTERM)
