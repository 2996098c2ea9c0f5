"""The work for the queue: a message in its conversation, answered and written down."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from whichsense import conversation as talk
from whichsense import records
from whichsense.conversation import Conversation
from whichsense.errors import BadInput
from whichsense.pipeline import Pipeline
from whichsense.serve.answering.dialogue import check_cancelled
from whichsense.serve.answering.engine import WatchedPipeline
from whichsense.serve.answering.running import Running
from whichsense.serve.events import describe_stage, dump, stage_counts
from whichsense.serve.openai.history import ASSISTANT, USER, Found, Message, next_digest
from whichsense.serve.openai.models import Model
from whichsense.serve.openai.turns import write_turn
from whichsense.serve.openai.writing import Page, Written
from whichsense.serve.service import Service
from whichsense.serve.state.conversations import KeptConversation
from whichsense.types import Case

STATUS = "status"
"""The event of a stage that has ended: what was done, in a few words."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A message to be answered."""

    text: str
    found: Found
    model: Model
    base: str
    """The address of the service, for links to passages."""
    kept: bool = True
    """Whether the conversation may be kept."""
    has_id: bool = False
    """Whether what follows may name the answer by its id."""
    in_open_webui: bool = False
    """Whether stages are told as they end, and numbers are shown as titles."""


def make_answer(
    service: Service, asked: Asked, watched: WatchedPipeline, running: Running
) -> str:
    """The JSON of a `Written`. In a thread."""
    pipeline = _telling(watched, running) if asked.in_open_webui else watched
    kept = asked.found.kept
    conversation = kept.conversation if kept else None
    for text in asked.found.replayed:
        with contextlib.suppress(
            BadInput
        ):  # too long, or empty: it was not answered then
            conversation = _turn(pipeline, conversation, text, asked.model)
    before = None
    if conversation is not None:
        case_id = kept.case_id if kept else ""
        before = KeptConversation(conversation, case_id, running.owner)
    conversation = _turn(pipeline, conversation, asked.text, asked.model)
    written = write_turn(conversation, Page(asked.base, asked.in_open_webui))
    after = service.trace(running, conversation, before, service.served.system)
    for identifier in _identifiers(asked, running, written):
        named = replace(conversation, id=identifier)
        service.conversations.save(replace(after, conversation=named), None)
    return dump(records.encode(written))


def _identifiers(asked: Asked, running: Running, written: Written) -> Iterator[str]:
    """Under which the conversation is kept: its messages' digest, the id of the response."""
    if not asked.kept:
        return
    if asked.found.digest:
        digest = next_digest(asked.found.digest, Message(USER, asked.text))
        yield next_digest(digest, Message(ASSISTANT, written.text))
    if asked.has_id:
        yield running.id


def _turn(
    pipeline: Pipeline, before: Conversation | None, text: str, model: Model
) -> Conversation:
    """The conversation with what a message leads to; with the model that explains, a question leads to its story."""
    if before is None:
        after = talk.begin(pipeline, text, policy=model.policy)
    else:
        after = talk.reply(pipeline, before, text, policy=model.policy)
    case = after.case
    if case is None:
        return after
    check_cancelled(case)
    is_new = before is None or case != before.case
    if model.explains and is_new and case.readings and not case.stopped:
        return talk.explain(pipeline, after)
    return after


def _telling(watched: WatchedPipeline, running: Running) -> WatchedPipeline:
    """The pipeline; followers of the answer are told of every stage in words."""

    def listen(stage: str, case: Case) -> None:
        watched.listener(stage, case)
        description = describe_stage(stage, stage_counts(case))
        if description:
            running.publish(STATUS, dump(description))

    return replace(watched, listener=listen)
