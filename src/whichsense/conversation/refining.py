"""A question narrowed by words of the person's own, which no option has."""

from __future__ import annotations

import re
from dataclasses import replace

from whichsense.conversation.pronouns import resolved
from whichsense.conversation.records import (
    ANSWER,
    NOTHING,
    POSSIBLE,
    REFINE,
    Conversation,
    Intent,
    Turn,
)
from whichsense.conversation.replies import understand
from whichsense.conversation.replies.matching import Matcher
from whichsense.conversation.replies.tokens import plain, tokenize
from whichsense.conversation.replies.vocabulary import FILLERS, SIZE_ORDER, TIME_ORDER
from whichsense.jobs.limits import Limits
from whichsense.pipeline import Pipeline
from whichsense.stages.clarify import offer_each
from whichsense.types import Case, Clarification, Reading

_PREPOSITIONS = frozenset(
    "in on at for from during with by of before after since until under as".split()
)
_ARTICLES = ("the", "a", "an")
_NUMBER_OF_OPTION = re.compile(r"\d{1,2}[.)]?")
# Words of a reply that narrows a question; more are a question of their own.
_LONGEST = 8
_SHORT = 2
# The least score with which a reply names something that is merely possible.
_SURE = 0.6


def implied_clarification(case: Case) -> Clarification:
    """The readings of a case as options, whether or not the person was asked."""
    return offer_each(case.readings)


def refine(
    pipeline: Pipeline, conversation: Conversation, said: str, limits: Limits
) -> Turn | None:
    """A turn for a reply that names no option: what is merely possible, or what a search with its words finds.

    None where neither has the words of the reply.
    """
    case = conversation.case
    assert case is not None
    clarification = conversation.clarification or implied_clarification(case)
    wanted = _content(said, Matcher(clarification, case.question))
    is_short = len(said.split()) <= _LONGEST
    if not wanted or not is_short or not says_something(said):
        return None
    question = narrowed(case.question, own_words(said))
    turn = Turn(said, Intent(REFINE, question=question), ANSWER)
    named = _named_possible(case, said, wanted)
    if named:
        return replace(turn, shown=POSSIBLE, readings=named)
    found = pipeline.ask(question, limits=limits)
    readings = []
    for reading in (*found.readings, *found.possible):
        if _has_words(reading, wanted):
            readings.append(reading)
    if not readings:
        return None
    return replace(
        turn, readings=tuple(readings[:1]), message=f"Taken as: {own_words(said)}."
    )


def completed(said: str, conversation: Conversation) -> str:
    """A question for what is no question: "in the seventies" goes on with the last one, and so does what follows a
    question without an answer; "the capital of France" does not."""
    case = conversation.case
    if case is None:
        return said
    bare = own_words(said)
    is_short = len(bare.split()) <= _SHORT or conversation.last.shown == NOTHING
    if is_short or bare.lower().partition(" ")[0] in _PREPOSITIONS:
        return narrowed(_question_as_asked(conversation), bare)
    return resolved(said, conversation)


def _question_as_asked(conversation: Conversation) -> str:
    """The last question in a person's own words, without what was added to it in vain."""
    for turn in reversed(conversation.turns):
        if turn.intent.question == turn.said:
            return turn.said
    return conversation.case.question if conversation.case else ""


def narrowed(question: str, words: str) -> str:
    """A question with words behind it; a word that stands on both sides is said once.

    >>> narrowed("Who won?", "in 2008"), narrowed("When did it come out?", "the book")
    ('Who won in 2008?', 'When did it come out, the book?')
    >>> narrowed("how heavy is the skerry", "Skerry 48")
    'how heavy is the skerry 48?'
    """
    bare = question.rstrip(" ?")
    first, _, rest = words.partition(" ")
    if rest and bare.lower().endswith(f" {first.lower()}"):
        return f"{bare} {rest}?"
    mark = "" if first.lower() in _PREPOSITIONS else ","
    return f"{bare}{mark} {words}?"


def own_words(said: str) -> str:
    """A reply without what stands before its own words, and without its mark.

    >>> own_words("and in Uruguay?"), own_words("What about Estate?"), own_words("I'm an administrator")
    ('in Uruguay', 'Estate', 'an administrator')
    """
    words = said.rstrip(" ?.!").split()
    start = 0
    for place, word in enumerate(words):
        bare = plain(word).split()
        opens = bare[:1] and (bare[0] in _PREPOSITIONS or bare[0] in _ARTICLES)
        if opens and bare[0] != "about":
            break
        if not all(part.strip(",.:;") in FILLERS for part in bare):
            break
        start = place + 1
    return " ".join(words[start:]) or said


def says_something(said: str) -> bool:
    """Whether a text has more than words that go around a choice, and is not the bare number of one.

    >>> says_something("ok, thanks!"), says_something("the newer one"), says_something("the film")
    (False, False, True)
    >>> says_something("2"), says_something("1998")
    (False, True)
    """
    if _NUMBER_OF_OPTION.fullmatch(said.strip()):
        return False
    empty = FILLERS | TIME_ORDER.keys() | SIZE_ORDER.keys()
    return any(token.text not in empty for token in tokenize(plain(said)))


def _named_possible(case: Case, said: str, wanted: set[str]) -> tuple[Reading, ...]:
    if not case.possible or any(_is_named(one, wanted) for one in case.readings):
        return ()
    # The probable ones compete: what fits them as well singles nothing out.
    clarification = offer_each((*case.possible, *case.readings))
    intent = understand(said, clarification, case.question)
    if intent.kind != "choose" or intent.score < _SURE:
        return ()
    places = [int(identifier) - 1 for identifier in intent.options]
    if max(places) >= len(case.possible):
        return ()
    return tuple(case.possible[place] for place in places)


def _content(said: str, matcher: Matcher) -> set[str]:
    """The stems of a reply's own words."""
    return {token.stem for token in matcher.content(tokenize(plain(said)))}


def _is_named(reading: Reading, wanted: set[str]) -> bool:
    """Whether the rewrite of a reading, its label, or a title behind it, has all the words."""
    titles = " ".join(span.passage.title for span in reading.evidence)
    tokens = tokenize(plain(f"{reading.question} {reading.label} {titles}"))
    return wanted <= {token.stem for token in tokens}


def _has_words(reading: Reading, wanted: set[str]) -> bool:
    """Whether a passage behind a reading has all the words."""
    for span in reading.evidence:
        text = plain(f"{span.passage.title} {span.passage.text}")
        if wanted <= {token.stem for token in tokenize(text)}:
            return True
    return False
