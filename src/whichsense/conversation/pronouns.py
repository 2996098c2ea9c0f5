"""A question that leans on the one before: "and who directed it?"."""

from __future__ import annotations

import re

from whichsense.conversation.records import ANSWER, Conversation
from whichsense.conversation.replies.tokens import plain, tokenize
from whichsense.types import Reading

_THING = re.compile(r"\b(its?|this|that|that one|this one)\b(?!['’])", re.IGNORECASE)
_PERSON = re.compile(r"\b(he|she|him|her|his|hers)\b", re.IGNORECASE)
_POSSESSIVE = ("its", "his", "her")
_BRACKETS = re.compile(r"\s*\([^)]*\)$")
_FIRST_WORDS = re.compile(r"^\W*\w+")


def resolved(question: str, conversation: Conversation) -> str:
    """The question with its pronoun replaced: "it" by the title that the last answer rests on, "he" or "she" by the
    last answer. One that names something itself, or follows no answer, stays as it is."""
    reading = _last_reading(conversation)
    if reading is None or _names_something(question):
        return question
    if reading.evidence and _THING.search(question):
        title = _BRACKETS.sub("", reading.evidence[0].passage.title)
        return _THING.sub(lambda match: _form(match[0], title), question, count=1)
    is_name = reading.answer[:1].isupper()
    if is_name and _PERSON.search(question):
        return _PERSON.sub(
            lambda match: _form(match[0], reading.answer), question, count=1
        )
    return question


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
