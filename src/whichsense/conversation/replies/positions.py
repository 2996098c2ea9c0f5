"""Positions in a list: "2", "the second one", "the last", "b"."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.conversation.replies.tokens import Token
from whichsense.conversation.replies.vocabulary import (
    FILLERS,
    FIRST_WORDS,
    LAST_WORDS,
    MIDDLE_WORDS,
    POINTERS,
)


def is_place_word(token: Token) -> bool:
    """Whether a word names a position without a number."""
    return token.text in LAST_WORDS | FIRST_WORDS | MIDDLE_WORDS


def pick(tokens: Sequence[Token], listed: Sequence[str]) -> str:
    """The item at the position that the tokens name; '' where they name none, or one that does not exist."""
    place = _place(tokens, len(listed))
    return listed[place - 1] if place else ""


def _place(tokens: Sequence[Token], count: int) -> int:
    """From 1; 0 for none."""
    for token in tokens:
        if token.number is not None and not token.is_short_year:
            is_there = token.number.is_integer() and 1 <= token.number <= count
            return int(token.number) if is_there else 0
    words = [token.text for token in tokens]
    if any(word in LAST_WORDS for word in words):
        return count
    if any(word in FIRST_WORDS for word in words):
        return 1 if count else 0
    if any(word in MIDDLE_WORDS for word in words) and count % 2:
        return count // 2 + 1
    return _bare_place(words, count)


def _bare_place(words: Sequence[str], count: int) -> int:
    """ "one" and "b" are positions where they stand alone."""
    bare = [word for word in words if word not in POINTERS]
    if bare == ["one"]:
        return 1
    if len(bare) == 1 and len(bare[0]) == 1:
        letter = ord(bare[0]) - ord("a") + 1
        return letter if 1 <= letter <= count else 0
    is_pointed = len(bare) < len(words)
    rest = [word for word in bare if word not in FILLERS or word == "one"]
    return 1 if is_pointed and rest == ["one"] else 0
