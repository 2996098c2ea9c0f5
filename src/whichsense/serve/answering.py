"""How questions are answered: the index and systems that answer now, a bounded queue before them, answers that run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from whichsense import conversation as talk
from whichsense import sample
from whichsense.conversation import Conversation
from whichsense.errors import BadConfig, BadInput, MissingStage
from whichsense.index import Index
from whichsense.jobs.limits import LimitReached, Limits, current_limits, within
from whichsense.pipeline import Pipeline
from whichsense.serve.events import Event, Origin, Shared, dump, problem_event, stage_data
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
from whichsense.serve.schemas import (
    AskRequest,
    BeginRequest,
    ChooseRequest,
    ExplainRequest,
    ReplyRequest,
)
from whichsense.serve.settings import ServiceSettings
from whichsense.serve.state import View
from whichsense.serve.telemetry import Telemetry
from whichsense.stages.providers import COMPACT
from whichsense.systems import load_settings
from whichsense.types import Case

# The index and the systems that answer now. A newer generation of the index takes their place under
# load.

BuildPipeline = Callable[[Index], Pipeline]
Build = BuildPipeline | Mapping[str, BuildPipeline] | None
"""What makes the pipeline over an index; those of several systems by their names, of which the first answers where
none is named; None: what the settings name."""
_TRIED = "Which sense?"  # asked of a generation before it is served
_LOADING = Problem(
    503,
    "loading",
    "The models are still loading.",
    "Ask again when /readyz answers with 200.",
    headers={"Retry-After": "2"},
)
Headers = Mapping[str, str] | None
"""Of a request, which may name the trace that it is part of."""
_log = logging.getLogger("whichsense.serve")


@dataclass(frozen=True, slots=True)
class Served:
    """One generation of an index with the systems over it. A request keeps the one that it began with."""

    name: str
    """Of the index, as requests name it."""
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
        fix = f'Name one of these: {names}; or leave "system" out.'
        raise Refused(Problem(409, "system", "There is no such system here.", fix))


class Engine:
    """What answers over one index. Threads share it: a pipeline is a frozen value, and the swap is one assignment."""

    def __init__(self, name: str, place: str, settings: ServiceSettings) -> None:
        self.name = name
        self.place = place
        """The folder of the index, or the name of an embedded one."""
        self.fault = ""
        """Why the newest generation is not served, without paths; empty where it is."""
        self._settings = settings
        self._builds: Mapping[str, BuildPipeline] = {}
        self._served: Served | None = None
        self._refreshing = threading.Lock()

    @property
    def served(self) -> Served:
        """What answers now; Refused while the models are still loading."""
        if self._served is None:
            raise Refused(_LOADING)
        return self._served

    def load(self, builds: Mapping[str, BuildPipeline]) -> None:
        """Open the index and build the systems over it, once, in a thread."""
        place = self.place or None
        if self._settings.cluster:
            from whichsense.index.cluster import ClusterIndex

            address, replicas = self._settings.cluster, self._settings.replicas
            folder = sample.place_of(place)
            index: Index = ClusterIndex.connected(address, folder, replicas)
        else:
            index = sample.open_index(place)
        self._builds = builds
        self._served = self._serve(index)

    def _serve(self, index: Index) -> Served:
        """The systems over an index that each of them can search; raises where one cannot."""
        systems = {}
        for name, build in self._builds.items():
            systems[name] = build(index).with_threshold(self._settings.threshold)
            systems[name].retriever.retrieve([Case(_TRIED)], 1)
        return Served(self.name, index, systems)

    def refresh(self) -> None:
        """Move on to a newer generation of the index, if there is one. What is there stays where that fails, and
        `fault` says why."""
        if self._served is None:
            return
        with self._refreshing:
            old = self._served.index
            fault = ""
            try:
                index = old.refreshed()
                if index is not old:
                    self._served = self._serve(index)
                    number = index.manifest.generation
                    _log.info("generation %d of '%s' is served now", number, self.name)
            except Exception as error:  # whatever is wrong with it, the old one answers
                fault = _without_paths(str(error), old.folder)
                if fault != self.fault:  # it is tried again every second
                    about = "the newest generation of '%s' cannot be served: %s"
                    _log.error(about, self.name, error)
            self.fault = fault


class Engines:
    """The engines of all indexes. Their systems share models."""

    def __init__(self, settings: ServiceSettings, build: Build = None) -> None:
        self._settings = settings
        if callable(build):
            build = {system_name(settings.system): build}
        self._builds = build
        self.about: dict[str, str] = {}
        """What the systems' files say of them, by name."""
        self.by_name = {
            name: Engine(name, place, settings) for name, place in settings.places.items()
        }
        self.is_ready = False

    def load(self) -> None:
        """Load the models and open every index."""
        builds = self._builds
        if builds is None:
            builds = _default_builds(self._settings)
            for system in (self._settings.system, *self._settings.compare):
                self.about[system_name(system)] = load_settings(system).about
        for engine in self.by_name.values():
            engine.load(builds)
        self.is_ready = True

    def refresh(self) -> None:
        """Move every index on to its newest generation."""
        for engine in self.by_name.values():
            engine.refresh()

    def usable(self, names: Sequence[str] = ()) -> list[Engine]:
        """The engines of these indexes, without names all; the default comes first."""
        engines = self.by_name.values()
        return [engine for engine in engines if not names or engine.name in names]

    def choose(self, name: str = "", names: Sequence[str] = ()) -> Engine:
        """The engine of an index among those of these names; without a name the first of them. Refused where there is
        none: an index that a caller may not use is one that there is not."""
        engines = self.usable(names)
        for engine in engines:
            if name in ("", engine.name):
                return engine
        listed = ", ".join(engine.name for engine in engines) or "none"
        fix = f'Name one that this key may use: {listed}; or leave "index" out.'
        raise Refused(Problem(404, "index", "There is no such index here.", fix))


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


def _default_builds(settings: ServiceSettings) -> dict[str, BuildPipeline]:
    """The systems that the settings name. Models that several of them use, or all generations, are there once."""
    from whichsense.models.compact.encoder import WEIGHTS
    from whichsense.models.compact.scene import Compact
    from whichsense.systems import load

    embedded: dict[str, Compact] = {}  # by their weights
    shared: dict[str, Any] = {"method": settings.method, "trained": {}}
    builds: dict[str, BuildPipeline] = {}
    for system in (settings.system, *settings.compare):
        name = system_name(system)
        if name in builds:
            raise BadConfig(f"Two of the systems are called '{name}'. Rename one of the files.")
        weights = settings.weights or load_settings(system).weights or str(WEIGHTS)
        model = embedded.setdefault(weights, Compact(Path(weights), settings.threads))
        if system == COMPACT:
            model.load()  # damaged weights are reported now, and the first question does not wait
        builds[name] = partial(load, system, model=model, **shared)
    return builds


# One answer on its way: its events so far, who follows it, and how it is cancelled.


class Running:
    """Lives in the event loop. Only `limits` and `problem` are read by the thread that answers."""

    def __init__(self, origin: Origin, seconds: float, *, streamed: bool) -> None:
        self.id = new_id()
        self.origin = origin
        self.streamed = streamed
        self.events: list[Event] = []
        self.published = 0
        """Events that the thread has made."""
        self.future: Future[None] | None = None
        self.problem: Problem | None = None
        """Why there is no answer, once it has ended without one."""
        self.stages: dict[str, float] = {}
        """Seconds by stage, so far."""
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

    def is_seen(self, view: View) -> bool:
        return view.shows(self.origin.owner, self.origin.index)

    def is_alone_since(self, before: float, followed: float) -> bool:
        """Whether nobody has followed it since a time, here or (at `followed`) in another worker."""
        return not self.followers and max(self.alone_since, followed) < before

    def _leave(self) -> None:
        self.followers -= 1
        self.alone_since = time.time()


# A bounded queue before the threads that answer, and every answer that is running or has just ended.

Work = Callable[[Running], str]
"""Answers in a thread, and returns the JSON of the answer."""

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
        origin: Origin,
        *,
        seconds: float | None = None,
        streamed: bool = False,
        parent: Headers = None,
    ) -> Running:
        """Take a piece of work into the queue, or refuse it. `parent` are the headers of a trace that it is part of."""
        if self.stopping:
            raise Refused(STOPPING)
        if self.active >= self._settings.parallel + self._settings.queue:
            self._telemetry.answers.labels("refused").inc()
            raise Refused(self._busy("queue-full", "Too many questions are waiting."))
        allowed = min(seconds or self._settings.deadline, self._settings.deadline)
        running = Running(origin, allowed, streamed=streamed)
        record = self._telemetry.record
        record.index, record.stages = origin.index, running.stages
        self._running[running.id] = running
        running.future = self._threads.submit(self._run, running, work, parent or {})
        self._show_length()
        return running

    def _show_length(self) -> None:
        if self._counted:
            self._telemetry.active.set(self.active)

    def _busy(self, kind: str, title: str) -> Problem:
        wait = (self.active + 1) * self._mean_seconds / self._settings.parallel
        return busy(kind, title, min(wait, 60.0))

    def _run(self, running: Running, work: Work, parent: Mapping[str, str]) -> None:
        """In a thread: do the work, publish its events."""
        begun = time.monotonic()
        try:
            running.limits.check()
            span = self._telemetry.span("whichsense answer", parent)
            with span, within(running.limits):
                ending = "done", work(running)
            outcome = "done"
        except Exception as error:
            outcome = _outcome(error)
            running.problem = running.problem or self._explain(error, running.id)
            ending = "problem", dump(running.problem.body())
        self._telemetry.answers.labels(outcome).inc()
        self.publish(running, *ending)
        took = time.monotonic() - begun
        self._loop.call_soon_threadsafe(self._end, running, took)

    def publish(self, running: Running, name: str, data: str) -> None:
        """For the thread: hand an event, its name and its JSON, to all followers."""
        running.published += 1
        event = Event(running.published, name, data)
        if running.streamed and self._settings.workers > 1:
            self._shared.add(running.id, event)
        self._loop.call_soon_threadsafe(running.add, event)

    def on_stage(self, running: Running, stage: str, cases: Sequence[Case]) -> None:
        """For the thread: count a stage that has ended, and publish it."""
        for case in cases:
            self._telemetry.observe_stage(stage, case)
            running.stages[stage] = case.spent[stage].seconds
            if running.streamed:
                self.publish(running, "stage", stage_data(stage, case))

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

    async def follow_elsewhere(self, case_id: str, after: int) -> AsyncIterator[Event | None]:
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
        live = [one for one in self._running.values() if one.streamed and not one.ended]
        wishes: dict[str, tuple[bool, float]] = {}
        if live and self._settings.workers > 1:
            ids = [one.id for one in live]
            wishes = await asyncio.to_thread(self._shared.wishes, ids)
        before = time.time() - self._settings.rejoin
        for running in live:
            cancelled, followed = wishes.get(running.id, (False, 0.0))
            if cancelled or running.is_alone_since(before, followed):
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


# Work for the queue: a question, a turn of a conversation. Each runs in a thread of its own.


def check_stages(pipeline: Pipeline, *, clarify: bool, explain: bool) -> None:
    """A stage that is missing is named before the work."""
    lacks_clarifier = clarify and pipeline.clarifier is None
    if lacks_clarifier or (explain and pipeline.summarizer is None):
        stage = "clarifier" if lacks_clarifier else "summarizer"
        raise MissingStage(f"The system that is served has no {stage}.")


def answer(pipeline: Pipeline, asked: AskRequest) -> Case:
    """A question through the pipeline, and on to a clarification and a long answer where they are wanted."""
    case = pipeline.ask(asked.question)
    if asked.clarify and not case.stopped and case.has_several_readings:
        case = pipeline.advance(case, "clarification")
    if asked.explain and not case.stopped and case.readings:
        case = pipeline.advance(case, "long answer")
    return check_cancelled(case)


def converse(
    pipeline: Pipeline, before: Conversation | None, said: BeginRequest | ReplyRequest
) -> Conversation:
    """The conversation with one more turn. What cannot be said is a problem: these messages name options and lengths,
    never a file."""
    options: Any = {"limits": current_limits()}
    try:
        if isinstance(said, BeginRequest):
            options["identifier"] = new_id()
            after = talk.begin(pipeline, said.question, **options)
        else:
            assert before is not None
            after = _reply(pipeline, before, said, options)
    except BadInput as error:
        fix = "Say one of the options, or ask a new question."
        raise Refused(Problem(409, "reply", str(error), fix)) from None
    if after.case is not None:
        check_cancelled(after.case)
    return after


def _reply(
    pipeline: Pipeline, before: Conversation, said: ReplyRequest, options: Any
) -> Conversation:
    if isinstance(said, ExplainRequest):
        return talk.explain(pipeline, before)
    if isinstance(said, ChooseRequest):
        return talk.choose(pipeline, before, said.options, **options)
    return talk.reply(pipeline, before, said.text, **options)


def check_cancelled(case: Case) -> Case:
    """The case, unless nobody waits for it any more."""
    if case.stopped == "cancelled":
        raise LimitReached("cancelled")
    return case
