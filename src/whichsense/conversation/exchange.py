"""What follows from a reply that was understood: one function for each kind, from turn to turn."""

from __future__ import annotations

from dataclasses import dataclass, replace

from whichsense.conversation.asking import AskingPolicy, narrower
from whichsense.conversation.chosen import Excluding, answer_option
from whichsense.conversation.descriptions import describe
from whichsense.conversation.records import (
    ABOUT,
    ALL,
    ANSWER,
    CHOOSE,
    CLARIFICATION,
    MORE,
    NONE,
    NOTHING,
    POSSIBLE,
    UNCLEAR,
    Conversation,
    Turn,
)
from whichsense.errors import BadInput
from whichsense.jobs.limits import Limits
from whichsense.pipeline import Pipeline
from whichsense.text.answers import same_answer
from whichsense.types import Case, Clarification, Option, Reading


@dataclass(frozen=True, slots=True)
class Exchange:
    """A conversation at the moment of a reply to its clarification."""

    pipeline: Pipeline
    conversation: Conversation
    case: Case
    clarification: Clarification
    policy: AskingPolicy
    limits: Limits

    def answer(self, turn: Turn) -> Turn:
        """The turn with what is to be shown for its intent. It comes with all readings, for those who skip."""
        kind = turn.intent.kind
        if kind in (CHOOSE, ALL):
            return self._answer_choice(turn)
        if kind == ABOUT:
            return self._answer_about(turn)
        if kind == NONE:
            return self._look_elsewhere(turn)
        if kind == UNCLEAR:
            return self._answer_unclear(turn)
        return turn

    def _answer_choice(self, turn: Turn) -> Turn:
        """The answer to the options that were chosen; for a group, one narrower question first."""
        options = [find_option(self.clarification, one) for one in turn.intent.options]
        narrowed = narrower(self.clarification, options)
        if narrowed is not None and self._may_follow_up(narrowed):
            return replace(
                turn, shown=CLARIFICATION, clarification=narrowed, readings=()
            )
        if turn.intent.kind == ALL:
            return replace(turn, shown=ANSWER)  # there is nothing to rank anew for
        readings: list[Reading] = []
        for option in options:
            readings += answer_option(
                self.pipeline,
                self.case,
                self.clarification.category,
                option,
                self.limits,
            )
        return replace(turn, shown=ANSWER, readings=tuple(readings))

    def _may_follow_up(self, narrowed: Clarification) -> bool:
        """Whether one more question in a row is allowed; never the same one twice."""
        count = 0
        for turn in reversed(self.conversation.turns):
            if not turn.pending or turn.intent.kind != CHOOSE:
                break
            count += 1
        is_new = narrowed.question not in self.conversation.asked
        return self.policy.enabled and count < self.policy.follow_ups and is_new

    def _answer_about(self, turn: Turn) -> Turn:
        """A description of the options and the options again; where nothing is pending, the readings themselves."""
        if self.conversation.last.pending:
            message = describe(self.clarification, turn.intent.options)
            return self._put_again(turn, message)
        readings: list[Reading] = []
        for option in self.clarification.options:
            if option.id in turn.intent.options or not turn.intent.options:
                readings += option.readings
        return replace(
            turn, shown=ANSWER if readings else NOTHING, readings=tuple(readings)
        )

    def _put_again(self, turn: Turn, message: str) -> Turn:
        return replace(
            turn,
            shown=CLARIFICATION,
            message=message,
            readings=(),
            clarification=self.clarification,
        )

    def _look_elsewhere(self, turn: Turn) -> Turn:
        """What is merely possible, then what a search without the rejected passages finds, then one more word."""
        if self.case.possible:
            return replace(turn, shown=POSSIBLE, readings=self.case.possible)
        rejected: list[Reading] = []
        for option in self.clarification.options:
            rejected += option.readings
        passages: set[str] = set()
        for reading in rejected:
            passages |= {span.passage.id for span in reading.evidence}
        retriever = Excluding(self.pipeline.retriever, frozenset(passages))
        elsewhere = replace(self.pipeline, retriever=retriever)
        found = elsewhere.ask(self.case.question, limits=self.limits)
        fresh = []
        for reading in (*found.readings, *found.possible):
            if not any(same_answer(reading.answer, one.answer) for one in rejected):
                fresh.append(reading)
        if fresh:
            return replace(turn, shown=POSSIBLE, readings=tuple(fresh))
        message = "Nothing else was found. Say in a word or two what you mean."
        return replace(turn, shown=MORE, readings=(), message=message)

    def _answer_unclear(self, turn: Turn) -> Turn:
        """The options once more, then the readings."""
        repeats = 0
        for earlier in reversed(self.conversation.turns):
            if earlier.intent.kind != UNCLEAR:
                break
            repeats += 1
        if repeats < self.policy.repeats:
            return self._put_again(turn, "That fits none of these.")
        return replace(turn, message="That fits none of these. Here is every reading.")


def find_option(clarification: Clarification, identifier: str) -> Option:
    """The option of this id. Raises `BadInput` where there is none."""
    for option in clarification.options:
        if option.id == identifier:
            return option
    known = ", ".join(option.id for option in clarification.options)
    raise BadInput(f"There is no option '{identifier}'. There are: {known}.")
