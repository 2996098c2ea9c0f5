"""Work for the queue: a question, the beginning of a conversation, a reply. Each runs in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from whichsense import conversation as talk
from whichsense.conversation import Conversation
from whichsense.errors import BadInput, MissingStage
from whichsense.jobs.limits import LimitReached
from whichsense.pipeline import Pipeline
from whichsense.serve.problems import Problem, Refused
from whichsense.types import Case


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
