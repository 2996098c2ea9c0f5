"""Server-sent events: what a stage has filled in, heartbeats, the end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.responses import StreamingResponse

from whichsense import records
from whichsense.serve.problems import Problem
from whichsense.types import Case

# The fields of a case that a stage fills in, and that its event carries.
_FILLED = {
    "retrieve": ("hits",),
    "rerank": ("hits",),
    "read": ("answers",),
    "detect": ("ambiguous", "is_ambiguous"),
    "disambiguate": ("readings",),
    "round trip": ("readings",),
    "verify": ("readings", "possible", "is_ambiguous"),
    "clarify": ("clarification",),
    "summarize": ("long_answer",),
}
# What a person is told of a stage: what it did, how many, of what.
_DONE = {
    "retrieve": ("Found", "passages", "passage"),
    "read": ("Found", "answers", "candidate answer"),
    "disambiguate": ("Found", "readings", "reading"),
    "verify": ("Checked:", "readings", "reading"),
    "summarize": ("Wrote the long answer", "", ""),
}
_COUNTED = {
    "passages": "hits",
    "answers": "answers",
    "readings": "readings",
    "possible": "possible",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream. `last` ends the stream: "done" with the answer, "problem" with what went wrong."""

    number: int
    """From 1 in each stream: the `id` with which a client resumes."""
    name: str
    data: str
    """JSON, in one line."""

    @property
    def last(self) -> bool:
        return self.name in ("done", "problem")

    def encode(self) -> bytes:
        return format_sse_event(
            data_str=self.data, event=self.name, id=str(self.number)
        )


def stage_data(stage: str, case: Case) -> str:
    """What one stage has done: its seconds, how much there is by now, and the fields that it filled in."""
    cost = case.spent.get(stage)
    table: dict[str, Any] = {"stage": stage, "counts": stage_counts(case)}
    table["seconds"] = round(cost.seconds, 6) if cost else 0.0
    for name in _FILLED.get(stage, ()):
        table[name] = records.encode(getattr(case, name))
    return dump(table)


def stage_counts(case: Case) -> dict[str, int]:
    """How much there is by now."""
    return {name: len(getattr(case, key)) for name, key in _COUNTED.items()}


def describe_stage(stage: str, counts: Mapping[str, int]) -> str:
    """What a stage has done, in a few words; empty where a person would not care.

    >>> describe_stage("retrieve", {"passages": 1}), describe_stage("retrieve", {"passages": 40})
    ('Found 1 passage', 'Found 40 passages')
    """
    if stage not in _DONE:
        return ""
    verb, counted, noun = _DONE[stage]
    if not noun:
        return verb
    number = counts[counted]
    return f"{verb} {number} {noun}" + ("" if number == 1 else "s")


def replayed(body: str, case: Case) -> Iterator[Event]:
    """The events of an answer that has ended: its stages as they were left, and the answer itself."""
    number = 0
    for number, stage in enumerate(case.spent, 1):
        yield Event(number, "stage", stage_data(stage, case))
    yield Event(number + 1, "done", body)


def problem_event(number: int, problem: Problem) -> Event:
    return Event(number, "problem", dump(problem.body()))


def dump(value: Any) -> str:
    """JSON without line breaks; half a surrogate pair stays an escape."""
    return json.dumps(value, separators=(",", ":"))


class EventStream(StreamingResponse):
    """Events as they come; None is a heartbeat."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[Event | None], answer_id: str) -> None:
        headers = {
            "Cache-Control": "no-store",
            "X-Accel-Buffering": "no",  # nginx would hold events back
            "Location": f"/v1/cases/{answer_id}",
        }
        super().__init__(_encoded(events), headers=headers)


async def _encoded(events: AsyncIterator[Event | None]) -> AsyncIterator[bytes]:
    async for event in events:
        yield KEEPALIVE_COMMENT if event is None else event.encode()
