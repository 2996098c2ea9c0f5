"""Whether a question back is worth it, and whether what was said already chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whichsense.conversation.replies.matching import Matcher
from whichsense.conversation.replies.profiles import Profile, content
from whichsense.conversation.replies.tokens import plain, tokenize
from whichsense.errors import MissingStage
from whichsense.pipeline import Pipeline
from whichsense.stages.clarify import offer_each
from whichsense.text.answers import same_answer
from whichsense.text.clarification import compose_question
from whichsense.types import Case, Clarification, Option, Reading


@dataclass(frozen=True, slots=True)
class AskingPolicy:
    """When a person is asked back."""

    enabled: bool = True
    """False: never. All readings are shown at once."""
    follow_ups: int = 1
    """How often in a row the choice of a group may lead to a narrower question."""
    repeats: int = 1
    """How often in a row the same options are shown again after a reply that fits nothing."""


def clarification_of(pipeline: Pipeline, case: Case) -> Clarification | None:
    """The question back to the person; None where it is not worth asking."""
    if len(case.readings) < 2 or not _answers_differ(case.readings):
        return None
    try:
        clarification = pipeline.clarify(case)
    except MissingStage:
        clarification = offer_each(case.readings)
    if clarification is None or len(clarification.options) < 2:
        return None
    return clarification


def _answers_differ(readings: Sequence[Reading]) -> bool:
    first = readings[0].answer
    return any(not same_answer(first, other.answer) for other in readings[1:])


def narrower(
    clarification: Clarification, options: Sequence[Option]
) -> Clarification | None:
    """A question about a group's own options; None where no group was chosen."""
    if len(options) != 1 or len(options[0].options) < 2:
        return None
    options = options[0].options
    labels = [option.label for option in options]
    question = compose_question(clarification.lead, labels)
    return replace(clarification, question=question, options=tuple(options))


def chosen_by_context(
    clarification: Clarification, question: str, said: Sequence[str]
) -> str:
    """The id of the one option that the question, or what was said before, already names; '' where none is.

    `said` has the latest first. It counts where it is about the same thing as the question, or names nothing else.
    """
    matcher = Matcher(clarification, question)
    for text in (question, *said):
        if text != question and not _is_related(text, matcher):
            continue
        named = _named(text, matcher)
        if len(named) == 1:
            return named[0]
        if named:
            return ""
    return ""


def _named(text: str, matcher: Matcher) -> list[str]:
    """Options all of whose own words, those that no other label has, are said, where they are years or names."""
    stems = {token.stem for token in tokenize(plain(text))}
    named = []
    for profile in matcher.profiles:
        own = _own_stems(profile, matcher)
        if own and own <= stems:
            named.append(profile.id)
    return named


def _own_stems(profile: Profile, matcher: Matcher) -> set[str]:
    own = {token.stem for token in profile.label.tokens}
    for other in matcher.profiles:
        if other.id != profile.id:
            own -= {token.stem for token in other.label.tokens}
    return own


def _is_related(text: str, matcher: Matcher) -> bool:
    """Whether a text shares a word with the question, or has nothing but words of the options."""
    stems = {token.stem for token in content(tokenize(plain(text)))}
    if stems & matcher.asked:
        return True
    labels = set()
    for profile in matcher.profiles:
        labels |= {token.stem for token in profile.label.tokens}
    return bool(stems) and stems <= labels
