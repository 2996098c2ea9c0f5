"""One answer on its way: its events so far, who follows it, and how it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future

from whichsense.jobs.limits import Limits
from whichsense.serve.events import Event, problem_event
from whichsense.serve.problems import CANCELLED, INTERNAL, Problem, Refused


class Running:
    """Lives in the event loop. Only `limits` and `problem` are read by the thread that answers."""

    def __init__(
        self, case_id: str, owner: str, seconds: float, *, streamed: bool
    ) -> None:
        self.id = case_id
        self.owner = owner
        self.streamed = streamed
        self.events: list[Event] = []
        self.future: Future[None] | None = None
        self.problem: Problem | None = None
        """Why there is no answer, once it has ended without one."""
        self.publish: Callable[[str, str], None] = _too_early
        """For the thread: hand an event, its name and its JSON, to all followers."""
        self.alone_since = time.time()
        """When its last follower left."""
        self.followers = 0
        self._cancelled = threading.Event()
        self._changed = asyncio.Event()
        self.limits = Limits.of(seconds, self._cancelled.is_set)

    @property
    def ended(self) -> bool:
        return bool(self.events) and self.events[-1].last

    @property
    def last_event(self) -> Event:
        return self.events[-1]

    def result(self) -> str:
        """The JSON of the answer, once it has ended; Refused where it ended without one."""
        if self.last_event.name == "problem":
            raise Refused(self.problem or INTERNAL)
        return self.last_event.data

    def add(self, event: Event) -> None:
        """Hand an event to all followers. What comes after the end is dropped."""
        if self.ended:
            return
        self.events.append(event)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def cancel(self, problem: Problem = CANCELLED) -> None:
        """Stop the work at its next step, and tell the followers now."""
        self.problem = self.problem or problem
        self._cancelled.set()
        self.add(problem_event(len(self.events) + 1, self.problem))

    async def ending(self) -> None:
        """Wait for the end."""
        self.followers += 1
        try:
            while not self.ended:
                await self._changed.wait()
        finally:
            self._leave()

    async def follow(
        self, after: int = 0, heartbeat: float = 10.0
    ) -> AsyncGenerator[Event | None, None]:
        """The events after a number, as they come; None after every `heartbeat` seconds of silence."""
        self.followers += 1
        try:
            place = after
            while True:
                changed = self._changed
                while place < len(self.events):
                    event = self.events[place]
                    place += 1
                    yield event
                if self.ended:
                    return
                if not changed.is_set():
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(changed.wait(), heartbeat)
                        continue
                    yield None
        finally:
            self._leave()

    def _leave(self) -> None:
        self.followers -= 1
        self.alone_since = time.time()


def _too_early(name: str, data: str) -> None:
    raise RuntimeError("the work has not begun")
