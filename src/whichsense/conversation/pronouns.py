"""A question that leans on the one before: "and who directed it?"."""

from __future__ import annotations

import re

from whichsense.conversation.records import ANSWER, Conversation
from whichsense.conversation.replies.tokens import plain, tokenize
from whichsense.types import Reading

_THING = re.compile(
    r"\b(?:its?\b(?!['’])|(?:this|that)(?: one)?(?=[\s?.!]*$))", re.IGNORECASE
)
_PERSON = re.compile(r"\b(he|she|him|her|his|hers)\b", re.IGNORECASE)
_POSSESSIVE = ("its", "his", "her")
_BRACKETS = re.compile(r"\s*\([^)]*\)$")
_NAME = re.compile(
    r"[A-Z][\w'’-]*(?: (?:(?:of|the|and|de|la|von|van) )*[A-Z0-9][\w'’-]*)*"
)
_FIRST_WORDS = re.compile(r"^\W*\w+")


def resolved(question: str, conversation: Conversation) -> str:
    """The question with its pronoun replaced: "he" or "she" by the last answer, "it" by the title that this answer
    rests on; before there is one answer, by the name in the last question. One that names something itself stays."""
    if _names_something(question):
        return question
    reading = _last_reading(conversation)
    if _PERSON.search(question) and reading and reading.answer[:1].isupper():
        return _replaced(_PERSON, question, reading.answer)
    thing = _name_in(conversation.case.question) if conversation.case else ""
    if reading and reading.evidence:
        thing = _BRACKETS.sub("", reading.evidence[0].passage.title)
    return _replaced(_THING, question, thing) if thing else question


def _replaced(pronoun: re.Pattern[str], question: str, name: str) -> str:
    return pronoun.sub(lambda match: _form(match[0], name), question, count=1)


def _name_in(question: str) -> str:
    """The longest name in a question, behind its first word.

    >>> _name_in("Who plays the Phantom in The Phantom of the Opera?"), _name_in("who won it")
    ('The Phantom of the Opera', '')
    """
    names = _NAME.findall(_FIRST_WORDS.sub("", question))
    return max(names, key=len, default="")


def _form(pronoun: str, name: str) -> str:
    return f"{name}'s" if pronoun.lower() in _POSSESSIVE else name


def _names_something(question: str) -> bool:
    """Whether a word behind the first is capitalized, or a number."""
    rest = _FIRST_WORDS.sub("", question)
    if any(token.number is not None for token in tokenize(plain(rest))):
        return True
    return any(word[:1].isupper() and word != "I" for word in re.findall(r"\w+", rest))


def _last_reading(conversation: Conversation) -> Reading | None:
    """The one reading that was answered last."""
    for turn in reversed(conversation.turns):
        if turn.shown == ANSWER:
            return turn.readings[0] if len(turn.readings) == 1 else None
    return None
