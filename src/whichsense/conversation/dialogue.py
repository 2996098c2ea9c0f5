"""The verbs of a conversation: begin, ask, reply, choose, explain. Each returns the conversation with one more turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from whichsense.conversation.asking import (
    AskingPolicy,
    chosen_by_context,
    clarification_of,
)
from whichsense.conversation.chosen import answer_option
from whichsense.conversation.exchange import Exchange, find_option
from whichsense.conversation.pronouns import resolved
from whichsense.conversation.records import (
    ABOUT,
    ANSWER,
    CHOOSE,
    CLARIFICATION,
    EXPLANATION,
    MORE,
    NONE,
    NOTHING,
    QUESTION,
    READINGS,
    SKIP,
    UNCLEAR,
    Conversation,
    Intent,
    Turn,
    check_reply,
)
from whichsense.conversation.refining import (
    completed,
    implied_clarification,
    narrowed,
    own_words,
    refine,
    says_something,
)
from whichsense.conversation.replies import understand
from whichsense.conversation.replies.questions import is_question, proposal
from whichsense.conversation.replies.tokens import plain
from whichsense.errors import BadInput
from whichsense.jobs.limits import Limits
from whichsense.pipeline import Pipeline
from whichsense.types import Case

_ASKING = AskingPolicy()
_NO_LIMITS = Limits()
_NEXT = "Ask another question, or say more about this one."


def begin(
    pipeline: Pipeline,
    question: str,
    *,
    policy: AskingPolicy = _ASKING,
    limits: Limits = _NO_LIMITS,
    identifier: str = "",
) -> Conversation:
    """A conversation about a question. Its last turn says what to show: an answer, or a question back."""
    conversation = Conversation(identifier) if identifier else Conversation.new()
    return ask(pipeline, conversation, question, policy=policy, limits=limits)


def ask(
    pipeline: Pipeline,
    conversation: Conversation,
    question: str,
    *,
    policy: AskingPolicy = _ASKING,
    limits: Limits = _NO_LIMITS,
    said: str = "",
) -> Conversation:
    """A new question within a conversation; `said` is how the person put it, where that differs."""
    question = check_reply(question)
    case = replace(pipeline.ask(question, limits=limits), scratch=None)
    turn = Turn(said or question, Intent(QUESTION, question=question), READINGS)
    said_before = conversation.said()
    conversation = replace(conversation, case=case)
    if not case.readings:
        return conversation.with_turn(replace(turn, shown=NOTHING))
    turn = replace(turn, readings=case.readings)
    clarification = clarification_of(pipeline, case)
    if clarification is None:
        shown = READINGS if case.has_several_readings else ANSWER
        return conversation.with_turn(replace(turn, shown=shown))
    turn = replace(turn, clarification=clarification)
    named = chosen_by_context(clarification, question, said_before)
    if named:
        option = find_option(clarification, named)
        readings = answer_option(pipeline, case, clarification.category, option, limits)
        message = f"Taken as: {option.label}."
        turn = replace(turn, shown=ANSWER, readings=readings, message=message)
    elif policy.enabled and clarification.question not in conversation.asked:
        turn = replace(turn, shown=CLARIFICATION)
    return conversation.with_turn(turn)


def reply(
    pipeline: Pipeline,
    conversation: Conversation,
    text: str,
    *,
    policy: AskingPolicy = _ASKING,
    limits: Limits = _NO_LIMITS,
) -> Conversation:
    """The next turn: a reply to the pending clarification, a later choice among its options, or a new question."""
    said = check_reply(text)
    intent = _intent_of(said, conversation)
    if intent.kind == UNCLEAR:
        refined = refine(pipeline, conversation, said, limits)
        if refined is not None:
            return conversation.with_turn(refined)
        if not conversation.last.pending and not says_something(said):
            return conversation.with_turn(Turn(said, intent, MORE, _NEXT))
        if not conversation.last.pending:
            intent = Intent(QUESTION, question=completed(said, conversation))
    if intent.kind == QUESTION:
        return ask(
            pipeline,
            conversation,
            intent.question,
            policy=policy,
            limits=limits,
            said=said,
        )
    exchange = _exchange(pipeline, conversation, policy, limits)
    return _answered(exchange, said, intent)


def choose(
    pipeline: Pipeline,
    conversation: Conversation,
    options: Sequence[str],
    *,
    policy: AskingPolicy = _ASKING,
    limits: Limits = _NO_LIMITS,
) -> Conversation:
    """The next turn: options chosen by their ids, as by clicking. An empty choice skips the clarification."""
    if conversation.clarification is None:
        raise BadInput("No clarification was asked: there is nothing to choose from.")
    exchange = _exchange(pipeline, conversation, policy, limits)
    labels = [find_option(exchange.clarification, one).label for one in options]
    intent = Intent(CHOOSE, tuple(options)) if options else Intent(SKIP)
    return _answered(exchange, ", ".join(labels), intent)


def explain(pipeline: Pipeline, conversation: Conversation) -> Conversation:
    """The next turn: the whole story of the question, with sources. The pipeline needs a summarizer."""
    long_answer = pipeline.summarize(_case_of(conversation))
    turn = Turn("", Intent(SKIP), EXPLANATION, long_answer=long_answer)
    return conversation.with_turn(turn)


def show_readings(conversation: Conversation) -> Conversation:
    """The next turn: every reading that is shown."""
    readings = _case_of(conversation).readings
    return conversation.with_turn(Turn("", Intent(SKIP), READINGS, readings=readings))


def _intent_of(said: str, conversation: Conversation) -> Intent:
    """What was said, in its place. A question that leans on what was said before is completed."""
    case = conversation.case
    if case is None:
        return Intent(QUESTION, question=said)
    is_more = conversation.last.shown == MORE and says_something(said)
    if is_more and not is_question(plain(said)):
        return Intent(QUESTION, question=narrowed(case.question, own_words(said)))
    clarification = conversation.clarification or implied_clarification(case)
    intent = understand(said, clarification, case.question, conversation.chosen)
    if intent.kind == QUESTION:
        return replace(intent, question=resolved(intent.question, conversation))
    if conversation.clarification is None and intent.kind not in (NONE, ABOUT):
        # There was no choice: what is not against the answer, or about it, is about another one.
        asks = is_question(plain(said)) and not proposal(plain(said))
        return Intent(QUESTION, question=said) if asks else Intent(UNCLEAR, score=0.0)
    return intent


def _exchange(
    pipeline: Pipeline, conversation: Conversation, policy: AskingPolicy, limits: Limits
) -> Exchange:
    case = _case_of(conversation)
    clarification = conversation.clarification or implied_clarification(case)
    return Exchange(pipeline, conversation, case, clarification, policy, limits)


def _answered(exchange: Exchange, said: str, intent: Intent) -> Conversation:
    turn = Turn(said, intent, READINGS, readings=exchange.case.readings)
    return exchange.conversation.with_turn(exchange.answer(turn))


def _case_of(conversation: Conversation) -> Case:
    if conversation.case is None:
        raise BadInput("Nothing was asked yet. Begin with a question.")
    return conversation.case
