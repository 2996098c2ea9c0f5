"""What a stage says to a language model about a case: calls in parallel, within its limits, each of them recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from whichsense.jobs.limits import Limits, current_limits
from whichsense.models.llm.client import Endpoint
from whichsense.models.llm.exchange import LLMFault, Reply, Request
from whichsense.models.llm.prompts import load_prompt
from whichsense.types import Call, Case

Value = TypeVar("Value")
_SHARE = 0.6  # of the time that a question has left: the embedded model needs the rest, should the endpoint fail
_MOST_UNUSABLE = 0.5  # of a stage's replies
_NO_USE = "the reply cannot be used"


class Talk:
    """The calls of a stage for a case."""

    def __init__(self, endpoint: Endpoint, stage: str, case: Case) -> None:
        self.endpoint = endpoint
        self.stage = stage
        self.case = case
        self.calls: list[Call] = []
        self._lock = threading.Lock()
        self._reserved = 0  # tokens of calls that are under way
        self._limits = current_limits()
        self._ends_at = _end_of_time(endpoint, case, self._limits)

    def request(
        self,
        prompt: str,
        max_tokens: int,
        *,
        schema: dict[str, Any] | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        top_logprobs: int = 0,
        **fields: str,
    ) -> Request:
        """A prompt file with its fields filled in."""
        loaded = load_prompt(prompt, self.endpoint.settings.prompts)
        return Request(
            prompt,
            loaded.system,
            loaded.fill(**fields),
            max_tokens,
            schema,
            temperature,
            seed,
            top_logprobs,
        )

    def ask(
        self, requests: Sequence[Request], read: Callable[[Reply], Value | None]
    ) -> list[Value | None]:
        """What each reply says, None where it cannot be used. Raises `LLMFault` where the endpoint fails, and where
        too few replies can be used."""
        if not requests:
            return []
        workers = min(self.endpoint.settings.parallel, len(requests))
        with ThreadPoolExecutor(workers, "whichsense-llm-stage") as pool:
            futures = [
                pool.submit(lambda one: self._ask_one(one, read), one)
                for one in requests
            ]
            try:
                values: list[Value | None] = [one.result() for one in futures]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        unusable = sum(value is None for value in values)
        if unusable > _MOST_UNUSABLE * len(values):
            raise LLMFault(
                f"The language model '{self.endpoint.model}' gave no usable reply to {unusable} of "
                f"{len(values)} calls. Use a larger model, or one that follows instructions."
            )
        return values

    def _ask_one(
        self, request: Request, read: Callable[[Reply], Value | None]
    ) -> Value | None:
        begun = time.perf_counter()
        cached = self.endpoint.cached(request)
        if cached is not None:
            value = read(cached)
            self._record(request, cached, begun, cached=True, usable=value is not None)
            return value
        with _Reserved(self, request):
            try:
                reply, attempts = self.endpoint.complete(
                    request, self._ends_at, self._limits
                )
            except LLMFault as fault:
                self._record_fault(request, begun, fault)
                raise
        value = read(reply)
        if value is not None:
            self.endpoint.keep(request, reply)
        self._record(request, reply, begun, attempts=attempts, usable=value is not None)
        return value

    def stream(self, request: Request) -> Iterator[str]:
        """The pieces of one reply as they come."""
        begun = time.perf_counter()
        cached = self.endpoint.cached(request)
        if cached is not None:
            self._record(request, cached, begun, cached=True)
            yield cached.text
            return
        with _Reserved(self, request):
            try:
                for item in self.endpoint.stream(request, self._ends_at, self._limits):
                    if isinstance(item, Reply):
                        self.endpoint.keep(request, item)
                        self._record(request, item, begun)
                    else:
                        yield item
            except LLMFault as fault:
                self._record_fault(request, begun, fault)
                raise

    def recorded(self, case: Case) -> Case:
        """A case with the calls of this talk, and the tokens that they used."""
        used = sum(_tokens(call) for call in self.calls)
        whole = replace(case, calls=(*case.calls, *self.calls))
        return whole.spend(self.stage, tokens=used) if used else whole

    def reserve(self, request: Request) -> None:
        """Take the tokens of a call out of what the question may use. Raises `LLMFault` where they are too many."""
        settings = self.endpoint.settings
        with self._lock:
            calls = (*self.case.calls, *self.calls)
            used = sum(_tokens(call) for call in calls) + self._reserved
            cost = sum(self._cost(call) for call in calls)
            wanted = request.estimated_tokens
            if settings.max_tokens and used + wanted > settings.max_tokens:
                raise LLMFault(
                    f"The cap of {settings.max_tokens:,} tokens a question ([llm] max_tokens) is reached."
                )
            next_cost = (
                wanted * settings.price_in + request.max_tokens * settings.price_out
            ) / 1e6
            if settings.max_cost and cost + next_cost > settings.max_cost:
                raise LLMFault(
                    f"The cap of {settings.max_cost} on a question's cost ([llm] max_cost) is reached."
                )
            self._reserved += wanted

    def release(self, request: Request) -> None:
        with self._lock:
            self._reserved -= request.estimated_tokens

    def _cost(self, call: Call) -> float:
        if call.cached:
            return 0.0
        settings = self.endpoint.settings
        priced = (
            call.tokens_in * settings.price_in + call.tokens_out * settings.price_out
        )
        return priced / 1e6

    def _record(
        self,
        request: Request,
        reply: Reply,
        begun: float,
        *,
        attempts: int = 1,
        cached: bool = False,
        usable: bool = True,
    ) -> None:
        call = Call(
            self.stage,
            request.prompt,
            self.endpoint.model,
            time.perf_counter() - begun,
            reply.tokens_in,
            reply.tokens_out,
            cached,
            attempts,
            "" if usable else _NO_USE,
        )
        with self._lock:
            self.calls.append(call)

    def _record_fault(self, request: Request, begun: float, fault: LLMFault) -> None:
        seconds = time.perf_counter() - begun
        model = self.endpoint.settings.model
        call = Call(self.stage, request.prompt, model, seconds, problem=str(fault))
        with self._lock:
            self.calls.append(call)


@dataclass(frozen=True, slots=True)
class _Reserved:
    """Holds the tokens of a call while it is under way."""

    talk: Talk
    request: Request

    def __enter__(self) -> None:
        self.talk.reserve(self.request)

    def __exit__(self, *error: object) -> None:
        self.talk.release(self.request)


def _tokens(call: Call) -> int:
    return 0 if call.cached else call.tokens_in + call.tokens_out


def _end_of_time(endpoint: Endpoint, case: Case, limits: Limits) -> float:
    """Until when the endpoint may take, in seconds of `time.monotonic`."""
    settings = endpoint.settings
    now = time.monotonic()
    ends = [now + max(settings.timeout, settings.deadline)]
    if settings.deadline:
        ends.append(now + max(0.0, settings.deadline - case.seconds))
    if limits.ends_at is not None:
        left = max(0.0, limits.ends_at - now)
        ends.append(now + (_SHARE * left if settings.fallback else left))
    return min(ends)


def think(
    endpoint: Endpoint,
    stage: str,
    cases: Sequence[Case],
    thought: Callable[[Talk, Case], Case],
    instead: Callable[[Sequence[Case]], list[Case]] | None,
) -> list[Case]:
    """Take each case through a stage. Where the endpoint fails, the embedded default does it, and a note says so."""
    done = []
    for case in cases:
        talk = Talk(endpoint, stage, case)
        try:
            done.append(talk.recorded(thought(talk, case)))
        except LLMFault as fault:
            if instead is None or not endpoint.settings.fallback:
                raise
            (answered,) = instead([talk.recorded(case)])
            done.append(_with_fault(answered, stage, fault))
    return done


def _with_fault(case: Case, stage: str, fault: LLMFault) -> Case:
    """The case with a note on what failed, and which stages were done without it. The same fault is told once."""
    begin = f"{fault} The embedded model did in its place: "
    notes = []
    stages = []
    for note in case.notes:
        if note.startswith(begin):
            stages.append(note.removeprefix(begin).rstrip("."))
        else:
            notes.append(note)
    told = f"{begin}{', '.join([*stages, stage])}."
    return replace(case, notes=(*notes, told))
