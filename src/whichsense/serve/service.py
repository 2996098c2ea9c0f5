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
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from uvicorn.config import STARTUP_FAILURE

from whichsense.conversation import Conversation
from whichsense.pipeline import Pipeline
from whichsense.serve import events, state
from whichsense.serve.answering import (
    Answers,
    BuildPipeline,
    BuildSystems,
    Engine,
    OnStage,
    Recall,
    Reply,
    Running,
    Served,
    Wanted,
    WatchedPipeline,
    answer,
    begin,
    check_stages,
    new_id,
    reply,
)
from whichsense.serve.events import EventStream, Shared, dump
from whichsense.serve.problems import Problem, Refused, busy
from whichsense.serve.settings import (
    SCOPES,
    ApiKey,
    KeyFile,
    ServiceSettings,
    split_key,
)
from whichsense.serve.state import (
    Changed,
    Conversations,
    KeptConversation,
    Traces,
    Uploads,
)
from whichsense.serve.telemetry import Telemetry
from whichsense.types import Case, ServedCase

# Who asks: the API key of a request, its scopes, its rate.

_BURST = 0.25  # of a minute's requests may come at once
_REMEMBERED = 1000  # keys that need no second scrypt


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever made a request. Cases belong to the key that asked."""

    id: str
    scopes: tuple[str, ...]
    rate: int | None = None
    """Requests a minute; None: as many as there is room for."""

    @property
    def sees(self) -> str | None:
        """The owner whose cases may be seen; None: everyone's."""
        return None if "write" in self.scopes else self.id


_NOBODY = Caller("", SCOPES)  # without keys, on this machine alone
_UNKNOWN = Problem(
    401,
    "key",
    "This needs a valid API key.",
    "Send the header: Authorization: Bearer ws_…; the operator makes keys with whichsense keys add.",
    headers={"WWW-Authenticate": 'Bearer realm="whichsense"'},
)


class Access:
    """Checks keys. scrypt runs once for each key and process, in a thread; after that a keyed hash is compared."""

    def __init__(self, settings: ServiceSettings, shared: Shared) -> None:
        self._file = KeyFile(settings.state)
        self._default_rate = settings.rate
        self._given = settings.api_key.encode()
        self._is_local = settings.is_local
        self._shared = shared
        self._pepper = secrets.token_bytes(32)
        self._known: dict[bytes, str] = {}  # keyed hash of a whole key → its id
        self._one_at_a_time = asyncio.Semaphore(1)  # scrypt takes 16 MB

    def needs_key(self) -> bool:
        """Always at a public address, and wherever there is or was a key: revoking the last one opens nothing."""
        return bool(self._given or not self._is_local or self._file.keys())

    async def identify(self, authorization: str) -> Caller:
        """The caller behind an Authorization header; Refused where there is none."""
        if not self.needs_key():
            return _NOBODY
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token.isascii():
            raise Refused(_UNKNOWN)
        if self._given and secrets.compare_digest(token.encode(), self._given):
            return Caller("environment", ("ask",), self._default_rate)
        key = await self._verified(token)
        return Caller(key.id, key.scopes, key.rate or self._default_rate)

    async def _verified(self, token: str) -> ApiKey:
        parts = split_key(token)
        key = self._file.active().get(parts[0]) if parts else None
        if parts is None or key is None:
            raise Refused(_UNKNOWN)
        mark = hmac.digest(self._pepper, token.encode(), hashlib.sha256)
        if self._known.get(mark) == key.id:
            return key
        async with self._one_at_a_time:
            fits = await asyncio.to_thread(key.fits, parts[1])
        if not fits:
            raise Refused(_UNKNOWN)
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[mark] = key.id
        return key

    async def admit(self, caller: Caller) -> None:
        """Count a request of a key, or refuse it with the time to wait."""
        if caller.rate is None:
            return
        burst = max(1, int(caller.rate * _BURST))
        wait = await asyncio.to_thread(
            self._shared.admit, caller.id, caller.rate, burst
        )
        if wait > 0:
            raise Refused(busy("rate", "This key has asked too often.", wait + 0.5))

    async def check(self, request: Request, scope: str) -> Caller:
        """The caller of a request, who must have a scope and keep within the rate."""
        caller = await self.identify(request.headers.get("authorization", ""))
        if scope not in caller.scopes:
            raise Refused(
                Problem(
                    403,
                    "scope",
                    f"This key lacks the scope '{scope}'.",
                    f"Use a key made with: whichsense keys add NAME --scope {scope}",
                )
            )
        await self.admit(caller)
        return caller


# For the OpenAPI description; the check itself is ours, so that errors are problems.
_bearer = HTTPBearer(auto_error=False, description="A key of `whichsense keys add`.")


def requires(scope: str) -> Callable[..., object]:
    """A dependency: the caller, who must have a scope."""

    async def caller(request: Request, _: object = Depends(_bearer)) -> Caller:
        access: Access = request.app.state.service.access
        return await access.check(request, scope)

    return caller


# What the routes work with: one object for each worker.

Result = TypeVar("Result")
Make = Callable[[WatchedPipeline, Running], str]
"""Works in a thread over a pipeline that keeps to the limits of one answer, and returns the JSON of its result."""
_REFRESH = 1.0  # seconds between looks for a newer index
_UNTRACED = 900.0  # seconds for which a case can be rejoined where traces are off
_CHANGED = Problem(
    409,
    "changed",
    "Someone else replied in this conversation in the same moment.",
    "Read it again, then reply.",
)
_LOADING = Problem(
    503,
    "loading",
    "The models are still loading.",
    "Ask again when /readyz answers with 200.",
    headers={"Retry-After": "2"},
)


class Service:
    """The engine, the queue, the stores and the counters. Made in the event loop, closed at its end."""

    def __init__(
        self,
        settings: ServiceSettings,
        engine: Engine,
        folder: Path,
        telemetry: Telemetry,
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.shared = Shared(folder / events.FILE)
        kept = settings.state if settings.traces else folder
        self.traces = Traces(kept / state.FILE)
        self.conversations = Conversations(kept / state.FILE)
        self.uploads = Uploads(settings.state / "uploads")
        self.telemetry = telemetry
        self.recall = Recall(settings.recall_bytes)
        self.failure: Exception | None = None
        """Why it could not start."""
        self.access = Access(settings, self.shared)
        self.answers = Answers(settings, self.shared, self.telemetry)
        # One writer at a time, beside the answers.
        alone = replace(settings, parallel=1, queue=8, deadline=3600.0)
        self.writing = Answers(alone, self.shared, telemetry, counted=False)
        # Short work beside the answers: searches, look-ups, traces.
        self._short = ThreadPoolExecutor(2, "whichsense-short")
        self._short_waiting = 0

    @property
    def served(self) -> Served:
        if not self.engine.is_ready:
            raise Refused(_LOADING)
        return self.engine.served

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

    def submit(
        self,
        make: Make,
        owner: str,
        *,
        system: str = "",
        threshold: float | None = None,
        **options: Any,
    ) -> Running:
        """Take work over a system's pipeline into the queue, with a threshold of its own if one is given. Options are
        those of `Answers.submit`."""
        pipeline = self.served.choose(system).with_threshold(threshold)

        def work(running: Running, on_stage: OnStage) -> str:
            watched = WatchedPipeline.of(pipeline, running.limits, on_stage)
            return make(watched, running)

        return self.answers.submit(work, owner, **options)

    def ask(self, wanted: Wanted, owner: str, **options: Any) -> Running:
        """Begin to answer a question. Its result is the JSON of a `ServedCase`."""
        system = wanted.system or self.served.system
        pipeline = self.served.choose(system)
        check_stages(pipeline, clarify=wanted.clarify, explain=wanted.explain)

        def make(watched: Pipeline, running: Running) -> str:
            case = answer(watched, wanted)
            self._leave_trace(running, case, system)
            return dump(ServedCase(running.id, case, system).to_json())

        return self.submit(make, owner, system=system, **options)

    def begin(
        self, question: str, owner: str, system: str = "", **options: Any
    ) -> Running:
        """Begin a conversation. Its result is the JSON of a `KeptConversation`."""
        system = system or self.served.system

        def make(watched: Pipeline, running: Running) -> str:
            conversation = begin(watched, question, new_id())
            return self._keep(running, conversation, None, system)

        return self.submit(make, owner, system=system, **options)

    def reply(self, kept: KeptConversation, said: Reply, **options: Any) -> Running:
        """Reply in a conversation. Its result is the JSON of a `KeptConversation`."""
        system = kept.system or self.served.system
        pipeline = self.served.choose(system)
        check_stages(pipeline, clarify=False, explain=said.explain)

        def make(watched: Pipeline, running: Running) -> str:
            conversation = reply(watched, kept.conversation, said)
            return self._keep(running, conversation, kept, system)

        return self.submit(make, kept.owner, system=system, **options)

    def _keep(
        self,
        running: Running,
        conversation: Conversation,
        before: KeptConversation | None,
        system: str,
    ) -> str:
        """Keep a conversation, and the case of a question that was asked in it. In a thread."""
        kept = self.trace(running, conversation, before, system)
        try:
            self.conversations.save(kept, before)
        except Changed:
            raise Refused(_CHANGED) from None
        return dump(kept.to_json())

    def trace(
        self,
        running: Running,
        conversation: Conversation,
        before: KeptConversation | None,
        system: str,
    ) -> KeptConversation:
        """Leave a trace of the question that the last turn asked, if it asked one: the conversation with its case's id.

        In a thread.
        """
        case_id = before.case_id if before else ""
        case = conversation.case
        if case is not None and (before is None or case != before.conversation.case):
            case_id = running.id
            # Whoever opens the case by its link sees what was asked back.
            asked = conversation.last.clarification
            shown = replace(case, clarification=asked)
            self._leave_trace(running, shown, system)
        return KeptConversation(conversation, case_id, running.owner, system)

    def _leave_trace(self, running: Running, case: Case, system: str) -> None:
        """In a thread, before the client has the answer: no answered question is without its trace."""
        if not self.traces.add(running.id, running.owner, case, system):
            self.telemetry.count_lost_trace()

    async def stream(self, running: Running) -> EventStream:
        """The events of an answer as a response; other workers learn of it first, so that it can be rejoined there."""
        if self.settings.workers > 1:
            await self.briefly(lambda: self.shared.begin(running.id, running.owner))
        events = running.follow(heartbeat=self.settings.heartbeat)
        return EventStream(events, running.id)

    async def result(
        self, running: Running, request: Request, queue: Answers | None = None
    ) -> str:
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
            await loop.run_in_executor(self._short, self.engine.refresh)
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
        self.answers.close()
        self.writing.close()
        self._short.shutdown(wait=True)
        self.traces.close()
        self.conversations.close()
        self.shared.close()


async def _disconnected(request: Request) -> None:
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return


# A service from its start to its end, whatever protocol it is asked by.

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
