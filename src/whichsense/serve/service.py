"""What the routes work with: one object for each worker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request

from whichsense.conversation import Conversation
from whichsense.pipeline import Pipeline
from whichsense.serve.access import Access
from whichsense.serve.answering.dialogue import (
    Reply,
    Wanted,
    answer,
    begin,
    check_stages,
    reply,
)
from whichsense.serve.answering.engine import Engine, Served, WatchedPipeline
from whichsense.serve.answering.queue import Answers, OnStage, new_id
from whichsense.serve.answering.running import Running
from whichsense.serve.events import EventStream, dump
from whichsense.serve.problems import Problem, Refused, busy
from whichsense.serve.recall import Recall
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.state import shared, traces
from whichsense.serve.state.conversations import (
    Changed,
    Conversations,
    KeptConversation,
)
from whichsense.serve.state.shared import Shared
from whichsense.serve.state.traces import Traces
from whichsense.serve.state.uploads import Uploads
from whichsense.serve.telemetry import Telemetry
from whichsense.types import Case, ServedCase

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
        self.shared = Shared(folder / shared.FILE)
        kept = settings.state if settings.traces else folder
        self.traces = Traces(kept / traces.FILE)
        self.conversations = Conversations(kept / traces.FILE)
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
