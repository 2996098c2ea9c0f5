"""A bounded queue before the threads that answer, and every answer that is running or has just ended."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from whichsense.jobs.limits import LimitReached
from whichsense.serve.answering.running import Running
from whichsense.serve.events import Event, problem_event, stage_data
from whichsense.serve.problems import (
    CANCELLED,
    DIED,
    STOPPING,
    Problem,
    Refused,
    busy,
    problem_of,
)
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.state.shared import Shared
from whichsense.serve.telemetry import Telemetry
from whichsense.types import Case

OnStage = Callable[[str, Case], None]
Work = Callable[[Running, OnStage], str]
"""Answers in a thread, calls back after each stage, and returns the JSON of the answer."""

_POLL = 0.1  # seconds between looks at another worker's stream
_WATCH = 0.5  # seconds between looks at answers that nobody follows
_KEPT = 60.0  # seconds for which an answer that has ended can be rejoined with all its events
_log = logging.getLogger("whichsense.serve")


class Answers:
    """Lives in the event loop; the work is done by `parallel` threads."""

    def __init__(
        self,
        settings: ServiceSettings,
        shared: Shared,
        telemetry: Telemetry,
        *,
        counted: bool = True,
    ) -> None:
        self._counted = counted  # whether its length is a gauge
        self._settings = settings
        self._shared = shared
        self._telemetry = telemetry
        self._threads = ThreadPoolExecutor(settings.parallel, "whichsense-answer")
        self._loop = asyncio.get_running_loop()
        self._running: dict[str, Running] = {}
        self._ended_at: dict[str, float] = {}
        self._mean_seconds = 1.0
        self.stopping = False

    @property
    def active(self) -> int:
        """Answers that wait or are worked on."""
        return len(self._running) - len(self._ended_at)

    def submit(
        self,
        work: Work,
        owner: str,
        *,
        seconds: float | None = None,
        streamed: bool = False,
        parent: Mapping[str, str] | None = None,
    ) -> Running:
        """Take a piece of work into the queue, or refuse it. `parent` are the headers of a trace that it is part of."""
        if self.stopping:
            raise Refused(STOPPING)
        if self.active >= self._settings.parallel + self._settings.queue:
            self._telemetry.count_answer("refused")
            raise Refused(self._busy("queue-full", "Too many questions are waiting."))
        allowed = min(seconds or self._settings.deadline, self._settings.deadline)
        running = Running(new_id(), owner, allowed, streamed=streamed)
        self._running[running.id] = running
        running.future = self._threads.submit(self._run, running, work, parent or {})
        self._show_length()
        return running

    def _show_length(self) -> None:
        if self._counted:
            self._telemetry.set_active(self.active)

    def _busy(self, kind: str, title: str) -> Problem:
        wait = (self.active + 1) * self._mean_seconds / self._settings.parallel
        return busy(kind, title, min(wait, 60.0))

    def _run(self, running: Running, work: Work, parent: Mapping[str, str]) -> None:
        """In a thread: do the work, publish its events."""
        begun = time.monotonic()
        numbers = iter(range(1, 1_000_000))

        def publish(name: str, data: str) -> None:
            event = Event(next(numbers), name, data)
            if running.streamed and self._settings.workers > 1:
                self._shared.add(running.id, event)
            self._loop.call_soon_threadsafe(running.add, event)

        def on_stage(stage: str, case: Case) -> None:
            self._telemetry.observe_stage(stage, case)
            if running.streamed:
                publish("stage", stage_data(stage, case))

        running.publish = publish
        try:
            running.limits.check()
            with self._telemetry.span("whichsense answer", parent):
                body = work(running, on_stage)
            publish("done", body)
            self._telemetry.count_answer("done")
        except Exception as error:
            self._telemetry.count_answer(_outcome(error))
            running.problem = running.problem or self._explain(error, running.id)
            publish("problem", problem_event(0, running.problem).data)
        finally:
            took = time.monotonic() - begun
            self._loop.call_soon_threadsafe(self._end, running, took)

    def _explain(self, error: Exception, case_id: str) -> Problem:
        if not isinstance(error, LimitReached):
            return problem_of(error, case_id)
        if error.reason == "cancelled":
            return CANCELLED
        title = "The deadline passed before the question's turn came."
        return self._busy("deadline", title)

    def cancel(self, running: Running, problem: Problem = CANCELLED) -> None:
        """Stop an answer; one that still waits leaves the queue."""
        running.cancel(problem)
        if running.future is not None and running.future.cancel():
            self._end(running)

    def _end(self, running: Running, seconds: float | None = None) -> None:
        if seconds is not None:
            self._mean_seconds += 0.1 * (seconds - self._mean_seconds)
        if running.streamed:
            self._ended_at[running.id] = time.time()
        else:
            self._running.pop(running.id, None)
        self._show_length()

    def find(self, case_id: str) -> Running | None:
        """An answer of this worker that is running or has just ended."""
        return self._running.get(case_id)

    async def follow_elsewhere(
        self, case_id: str, after: int
    ) -> AsyncIterator[Event | None]:
        """The events of another worker's stream. One whose process has ended ends with a problem."""
        silent_since = time.monotonic()
        while True:
            events = await asyncio.to_thread(self._shared.events, case_id, after)
            for event in events:
                after = event.number
                silent_since = time.monotonic()
                yield event
                if event.last:
                    return
            if not events:
                if not await asyncio.to_thread(self._shared.is_alive, case_id):
                    yield problem_event(after + 1, DIED)
                    return
                if time.monotonic() - silent_since > self._settings.heartbeat:
                    silent_since = time.monotonic()
                    yield None
            await asyncio.sleep(_POLL)

    async def watch(self) -> None:
        """For ever: cancel what nobody follows any more, forget what has ended."""
        while True:
            await asyncio.sleep(_WATCH)
            try:
                await self._cancel_abandoned()
            except Exception:
                _log.exception("abandoned answers could not be looked for")
            now = time.time()
            for case_id, ended in list(self._ended_at.items()):
                if now - ended > _KEPT:
                    del self._ended_at[case_id]
                    self._running.pop(case_id, None)

    async def _cancel_abandoned(self) -> None:
        streams = [one for one in self._running.values() if one.streamed]
        live = [one for one in streams if not one.ended]
        wishes: dict[str, tuple[bool, float]] = {}
        if live and self._settings.workers > 1:
            ids = [one.id for one in live]
            wishes = await asyncio.to_thread(self._shared.wishes, ids)
        for running in live:
            cancelled, followed = wishes.get(running.id, (False, 0.0))
            left = max(running.alone_since, followed)
            alone = not running.followers
            if cancelled or (alone and time.time() - left > self._settings.rejoin):
                self.cancel(running)

    async def stop(self) -> None:
        """Take nothing more in, give what runs its grace, then end it with an event."""
        self.stopping = True
        ends_at = time.monotonic() + self._settings.grace
        while self.active and time.monotonic() < ends_at:
            await asyncio.sleep(0.05)
        for running in list(self._running.values()):
            if not running.ended:
                self.cancel(running, STOPPING)

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


def _outcome(error: Exception) -> str:
    if isinstance(error, LimitReached):
        return error.reason
    return "refused" if isinstance(error, Refused) else "failed"


def new_id() -> str:
    """An id that cannot be guessed: 128 bits."""
    return secrets.token_hex(16)
