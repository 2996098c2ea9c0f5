"""What the routes work with: one object for each worker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from starlette.requests import Request

from whichsense.errors import MissingStage
from whichsense.jobs.limits import LimitReached, Limits
from whichsense.pipeline import Pipeline
from whichsense.serve.access import Access
from whichsense.serve.answers import Answers, OnStage
from whichsense.serve.engine import Engine, Served
from whichsense.serve.events import dump
from whichsense.serve.problems import INTERNAL, Problem, Refused, busy
from whichsense.serve.running import Running
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.state import shared, traces
from whichsense.serve.state.shared import Shared
from whichsense.serve.state.traces import Traces
from whichsense.serve.telemetry import Telemetry
from whichsense.types import Case, ServedCase

Result = TypeVar("Result")
_REFRESH = 1.0  # seconds between looks for a newer index
_UNTRACED = 900.0  # seconds for which a case can be rejoined where traces are off
_LOADING = Problem(
    503,
    "loading",
    "The models are still loading.",
    "Ask again when /readyz answers with 200.",
    headers={"Retry-After": "2"},
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked, and what beside the readings."""

    question: str
    clarify: bool = False
    explain: bool = False


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
        self.telemetry = telemetry
        self.access = Access(settings, self.shared)
        self.answers = Answers(settings, self.shared, self.telemetry)
        # Short work beside the answers: searches, look-ups, traces.
        self._short = ThreadPoolExecutor(4, "whichsense-short")
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

    def ask(
        self,
        wanted: Wanted,
        owner: str,
        *,
        seconds: float | None = None,
        streamed: bool = False,
        parent: Mapping[str, str] | None = None,
    ) -> Running:
        """Begin to answer a question. Its result is the JSON of a `ServedCase`."""
        pipeline = self.served.pipeline
        check_stages(pipeline, wanted)

        def work(running: Running, on_stage: OnStage) -> str:
            case = answer(pipeline, wanted, running.limits, on_stage)
            return self.keep(running, case)

        return self.answers.submit(
            work, owner, seconds=seconds, streamed=streamed, parent=parent
        )

    def keep(self, running: Running, case: Case) -> str:
        """Leave the trace of a case, and give its JSON. In a thread, before the client has the answer."""
        if case.stopped == "cancelled":
            raise LimitReached("cancelled")
        if not self.traces.add(running.id, running.owner, case):
            self.telemetry.count_lost_trace()
        return dump(ServedCase(running.id, case).to_json())

    async def result(self, running: Running, request: Request) -> str:
        """The JSON of an answer when it is there. A client that goes away stops its work."""
        ending = asyncio.ensure_future(running.ending())
        leaving = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait({ending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (ending, leaving):
                task.cancel()
            if not running.ended:
                self.answers.cancel(running)
        event = running.last_event
        if event.name == "problem":
            raise Refused(running.problem or INTERNAL)
        return event.data

    async def tend(self) -> None:
        """For ever: a newer index is served, and what is kept for a while goes."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_REFRESH)
            await loop.run_in_executor(self._short, self.engine.refresh)
            with contextlib.suppress(Exception):
                await loop.run_in_executor(self._short, self._forget)

    def _forget(self) -> None:
        self.shared.forget_older(2 * self.settings.deadline + _UNTRACED)
        if not self.settings.traces:
            self.traces.delete_older(_UNTRACED)

    def close(self) -> None:
        self.answers.close()
        self._short.shutdown(wait=True)
        self.traces.close()
        self.shared.close()


def check_stages(pipeline: Pipeline, wanted: Wanted) -> None:
    """A stage that is missing is named before the work."""
    lacks_clarifier = wanted.clarify and pipeline.clarifier is None
    if lacks_clarifier or (wanted.explain and pipeline.summarizer is None):
        stage = "clarifier" if lacks_clarifier else "summarizer"
        raise MissingStage(f"The system that is served has no {stage}.")


def answer(
    pipeline: Pipeline, wanted: Wanted, limits: Limits, on_stage: OnStage
) -> Case:
    """A question through the pipeline, and on to a clarification and a long answer where they are wanted."""

    def hook(stage: str, cases: Sequence[Case]) -> None:
        for case in cases:
            on_stage(stage, case)

    case = pipeline.ask(wanted.question, limits=limits, on_stage=hook)
    if wanted.clarify and not case.stopped and case.has_several_readings:
        case = pipeline.advance(case, "clarification", limits=limits, on_stage=hook)
    if wanted.explain and not case.stopped and case.readings:
        case = pipeline.advance(case, "long answer", limits=limits, on_stage=hook)
    return case


async def _disconnected(request: Request) -> None:
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return
