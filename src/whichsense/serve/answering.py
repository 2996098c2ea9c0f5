"""How questions are answered: the index and systems that answer now, a bounded queue before them, answers that run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from whichsense import conversation as talk
from whichsense import sample
from whichsense.conversation import Conversation
from whichsense.errors import BadConfig, BadInput, MissingStage, WhichsenseError
from whichsense.index import Index
from whichsense.jobs.limits import LimitReached, Limits
from whichsense.pipeline import Pipeline
from whichsense.serve.events import Event, Shared, problem_event, stage_data
from whichsense.serve.problems import (
    CANCELLED,
    DIED,
    INTERNAL,
    STOPPING,
    Problem,
    Refused,
    busy,
    problem_of,
)
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.telemetry import Telemetry
from whichsense.stages.providers import COMPACT
from whichsense.systems import load_settings
from whichsense.types import Case

# The index and the systems that answer now. A newer generation of the index takes their place under
# load.

BuildPipeline = Callable[[Index], Pipeline]
BuildSystems = Mapping[str, BuildPipeline]
"""By the name of the system; the first answers where none is named."""
_TRIED = "Which sense?"  # asked of a generation before it is served
_log = logging.getLogger("whichsense.serve")


@dataclass(frozen=True, slots=True)
class Served:
    """One generation of the index with the systems over it. A request keeps the one that it began with."""

    index: Index
    systems: Mapping[str, Pipeline]

    @property
    def system(self) -> str:
        """The name of the system that answers where none is named."""
        return next(iter(self.systems))

    @property
    def pipeline(self) -> Pipeline:
        """What answers where no system is named."""
        return self.systems[self.system]

    def choose(self, system: str) -> Pipeline:
        """The pipeline of a system by its name, without one the first; Refused where there is none."""
        system = system or self.system
        if system in self.systems:
            return self.systems[system]
        names = ", ".join(self.systems)
        raise Refused(
            Problem(
                409,
                "system",
                "There is no such system here.",
                f'Name one of these: {names}; or leave "system" out.',
            )
        )


class Engine:
    """What answers. Threads share it: a pipeline is a frozen value, and the swap is one assignment."""

    def __init__(
        self,
        settings: ServiceSettings,
        build: BuildPipeline | BuildSystems | None = None,
    ) -> None:
        self._settings = settings
        if callable(build):
            build = {system_name(settings.system): build}
        self._builds = build
        self.about: dict[str, str] = {}
        """What the systems' files say of them, by name."""
        self.fault = ""
        """Why the newest generation of the index is not served, without paths; empty where it is."""
        self._served: Served | None = None
        self._refreshing = threading.Lock()

    @property
    def is_ready(self) -> bool:
        return self._served is not None

    @property
    def served(self) -> Served:
        if self._served is None:
            raise WhichsenseError(
                "The models are still loading. Wait until /readyz says so."
            )
        return self._served

    def load(self) -> None:
        """Open the index and load the models, once, in a thread of its own."""
        place = self._settings.index or None
        if self._settings.cluster:
            from whichsense.index.cluster import ClusterIndex

            address, replicas = self._settings.cluster, self._settings.replicas
            folder = sample.place_of(place)
            index: Index = ClusterIndex.connected(address, folder, replicas)
        else:
            index = sample.open_index(place)
        if self._builds is None:
            self._builds = _default_builds(self._settings)
            for system in (self._settings.system, *self._settings.compare):
                self.about[system_name(system)] = load_settings(system).about
        self._served = self._serve(index)

    def _serve(self, index: Index) -> Served:
        """The systems over an index that each of them can search; raises where one cannot."""
        systems = {}
        for name, build in (self._builds or {}).items():
            systems[name] = build(index).with_threshold(self._settings.threshold)
            systems[name].retriever.retrieve([Case(_TRIED)], 1)
        return Served(index, systems)

    def refresh(self) -> bool:
        """Move on to a newer generation of the index, if there is one. What is there stays where that fails, and
        `fault` says why."""
        if self._served is None:
            return False
        with self._refreshing:
            old = self._served.index
            try:
                index = old.refreshed()
                if index is not old:
                    self._served = self._serve(index)
            except Exception as error:  # whatever is wrong with it, the old one answers
                fault = _without_paths(str(error), old.folder)
                if fault != self.fault:  # it is tried again every second
                    _log.error("the newest index cannot be served: %s", error)
                self.fault = fault
                return False
            self.fault = ""
            if index is old:
                return False
        _log.info("generation %d of the index is served now", index.manifest.generation)
        return True


def _without_paths(message: str, folder: Path) -> str:
    """A message as clients may read it.

    >>> _without_paths("'/data/wiki' has no vectors.", Path("/data/wiki"))
    "'wiki' has no vectors."
    """
    return re.sub(r"'/[^']*/", "'", message).replace(str(folder), folder.name)


def system_name(system: str) -> str:
    """What requests call a system: its file's name without the suffix.

    >>> system_name("systems/compact-shallow.toml"), system_name("compact")
    ('compact-shallow', 'compact')
    """
    return Path(system).name.removesuffix(".toml")


def _default_builds(settings: ServiceSettings) -> BuildSystems:
    """The systems that the settings name. Models that several of them use, or all generations, are there once."""
    from whichsense.models.compact.encoder import WEIGHTS
    from whichsense.models.compact.scene import Compact
    from whichsense.systems import TrainedStages, load

    embedded: dict[str, Compact] = {}  # by their weights
    trained: TrainedStages = {}
    builds: dict[str, BuildPipeline] = {}
    for system in (settings.system, *settings.compare):
        name = system_name(system)
        if name in builds:
            raise BadConfig(
                f"Two of the systems are called '{name}'. Rename one of the files."
            )
        weights = settings.weights or load_settings(system).weights or str(WEIGHTS)
        model = embedded.setdefault(weights, Compact(Path(weights), settings.threads))
        if system == COMPACT:
            model.load()  # damaged weights are reported now, and the first question does not wait

        def build(
            index: Index, system: str = system, model: Compact = model
        ) -> Pipeline:
            method = settings.method
            return load(system, index, method=method, model=model, trained=trained)

        builds[name] = build
    return builds


@dataclass(frozen=True, slots=True)
class WatchedPipeline(Pipeline):
    """A pipeline that tells one listener of every stage and keeps to one answer's limits, whoever asks it."""

    limits: Limits | None = None
    listener: Callable[[str, Case], None] = lambda stage, case: None

    @classmethod
    def of(
        cls, pipeline: Pipeline, limits: Limits, listener: Callable[[str, Case], None]
    ) -> WatchedPipeline:
        stages = {one.name: getattr(pipeline, one.name) for one in fields(Pipeline)}
        return cls(**stages, limits=limits, listener=listener)

    def run(self, *arguments: Any, **options: Any) -> list[Case]:
        # slots make a second class of this one, which super() without arguments would miss.
        return Pipeline.run(self, *arguments, **self._watched(options))

    def advance(self, *arguments: Any, **options: Any) -> Case:
        return Pipeline.advance(self, *arguments, **self._watched(options))

    def _watched(self, options: dict[str, Any]) -> dict[str, Any]:
        return options | {"limits": self.limits, "on_stage": self._tell}

    def _tell(self, stage: str, cases: Sequence[Case]) -> None:
        for case in cases:
            self.listener(stage, case)


# One answer on its way: its events so far, who follows it, and how it is cancelled.


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


# A bounded queue before the threads that answer, and every answer that is running or has just ended.

OnStage = Callable[[str, Case], None]
Work = Callable[[Running, OnStage], str]
"""Answers in a thread, calls back after each stage, and returns the JSON of the answer."""

_POLL = 0.1  # seconds between looks at another worker's stream
_WATCH = 0.5  # seconds between looks at answers that nobody follows
_KEPT = 60.0  # seconds for which an answer that has ended can be rejoined with all its events


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


# Work for the queue: a question, the beginning of a conversation, a reply. Each runs in a thread of
# its own.


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked, and what beside the readings."""

    question: str
    clarify: bool = False
    explain: bool = False
    system: str = ""
    """Which of the served systems answers; empty: the first."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person says next: a text, options by their ids, or that the whole story is wanted."""

    text: str = ""
    options: tuple[str, ...] | None = None
    explain: bool = False


def check_stages(pipeline: Pipeline, *, clarify: bool, explain: bool) -> None:
    """A stage that is missing is named before the work."""
    lacks_clarifier = clarify and pipeline.clarifier is None
    if lacks_clarifier or (explain and pipeline.summarizer is None):
        stage = "clarifier" if lacks_clarifier else "summarizer"
        raise MissingStage(f"The system that is served has no {stage}.")


def answer(pipeline: Pipeline, wanted: Wanted) -> Case:
    """A question through the pipeline, and on to a clarification and a long answer where they are wanted."""
    case = pipeline.ask(wanted.question)
    if wanted.clarify and not case.stopped and case.has_several_readings:
        case = pipeline.advance(case, "clarification")
    if wanted.explain and not case.stopped and case.readings:
        case = pipeline.advance(case, "long answer")
    return check_cancelled(case)


def begin(pipeline: Pipeline, question: str, conversation_id: str) -> Conversation:
    """A new conversation about a question."""
    return _said(lambda: talk.begin(pipeline, question, identifier=conversation_id))


def reply(pipeline: Pipeline, conversation: Conversation, said: Reply) -> Conversation:
    """The conversation with one more turn."""
    if said.explain:
        return _said(lambda: talk.explain(pipeline, conversation))
    if said.options is not None:
        chosen = said.options
        return _said(lambda: talk.choose(pipeline, conversation, chosen))
    return _said(lambda: talk.reply(pipeline, conversation, said.text))


def _said(turn: Callable[[], Conversation]) -> Conversation:
    """A turn. What cannot be said is a problem: these messages name options and lengths, never a file."""
    try:
        conversation = turn()
    except BadInput as error:
        fix = "Say one of the options, or ask a new question."
        raise Refused(Problem(409, "reply", str(error), fix)) from None
    if conversation.case is not None:
        check_cancelled(conversation.case)
    return conversation


def check_cancelled(case: Case) -> Case:
    """The case, unless nobody waits for it any more."""
    if case.stopped == "cancelled":
        raise LimitReached("cancelled")
    return case


# Searches that were answered before: the same body to the same generation of the index gets the same
# bytes.

Key = tuple[int, str, bytes]
"""Generation, content type, body."""
_LONGEST_BODY = 4_096


class Recall:
    """Responses by their request, least recently used ones forgotten first. Lives in the event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._size = 0
        self._bodies: OrderedDict[Key, bytes] = OrderedDict()

    def find(self, key: Key) -> bytes | None:
        body = self._bodies.get(key)
        if body is not None:
            self._bodies.move_to_end(key)
        return body

    def add(self, key: Key, body: bytes) -> None:
        if len(key[2]) > _LONGEST_BODY or key in self._bodies:
            return
        self._bodies[key] = body
        self._size += _weight(key, body)
        while self._size > self._most and self._bodies:
            self._size -= _weight(*self._bodies.popitem(last=False))


def _weight(key: Key, body: bytes) -> int:
    return len(key[2]) + len(body) + 500  # what the objects themselves take


class RecallingRoute(APIRoute):
    """A route that is answered from memory, where it can be, before the body is even parsed. The caller is checked."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def handle(request: Request) -> Response:
            service = request.app.state.service
            if not service.engine.is_ready:
                return await answer(request)
            generation = service.served.index.manifest.generation
            kind = request.headers.get("content-type", "")
            key = (generation, kind, await request.body())
            known = service.recall.find(key)
            if known is not None:
                await service.access.check(request, "ask")
                return Response(known, media_type="application/json")
            response = await answer(request)
            if response.status_code == 200:
                service.recall.add(key, bytes(response.body))
            return response

        return handle
