"""Replies that are about the options as a whole: all of them, none of them, no preference."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from whichsense.conversation.records import ALL, NONE, SKIP, Intent
from whichsense.conversation.replies.matching import Matcher
from whichsense.conversation.replies.tokens import Token, tokenize
from whichsense.conversation.replies.vocabulary import (
    ALL_WORDS,
    CARDINALS,
    COURTESIES,
    DENIALS,
    FILLERS,
    INDIFFERENT,
    LIST_WORDS,
    NONE_PHRASES,
    NONE_WORDS,
    ORDINALS,
    SKIP_PHRASES,
)

_PARTS = re.compile(r"[,.;:!?]| but | so ")


def whole_intent(bare: str, matcher: Matcher) -> Intent | None:
    """All, none or no preference; None where the reply says more than that."""
    if _is_skipping(bare):
        return Intent(SKIP)
    tokens = matcher.tokens(bare)
    words = [token.text for token in tokens]
    if _is_phrase(words, NONE_PHRASES) or _is_missing(words):
        return Intent(NONE)
    # What may stand beside all and none: "all three", "all seasons", "another John Whitfield".
    if not all(_is_general(token, matcher) for token in tokens):
        return None
    if not NONE_WORDS.isdisjoint(words):
        return Intent(NONE)
    if not ALL_WORDS.isdisjoint(words) or _counts_all(words, len(matcher.ids)):
        return Intent(ALL, tuple(matcher.ids))
    return None


def _is_phrase(words: Sequence[str], phrases: Collection[str]) -> bool:
    """Whether words are one of the phrases, with nothing but courtesies around it."""
    short = " ".join(word for word in words if word not in COURTESIES)
    return short in phrases or " ".join(words) in phrases


def _is_skipping(bare: str) -> bool:
    """Whether every part of a reply says that there is no preference: "not sure, you decide"."""
    skipping = 0
    for part in _PARTS.split(bare):
        words = [token.text for token in tokenize(part)]
        denied = not DENIALS.isdisjoint(words)
        indifferent = not INDIFFERENT.isdisjoint(words)
        rest = [word for word in words if word not in FILLERS | DENIALS | INDIFFERENT]
        if _is_phrase(words, SKIP_PHRASES) or (denied and indifferent and not rest):
            skipping += 1
        elif rest or denied:
            return False
    return skipping > 0


def _is_missing(words: Sequence[str]) -> bool:
    """ "it is not in the list", "mine isn't there"."""
    denied = not DENIALS.isdisjoint(words)
    listed = not LIST_WORDS.isdisjoint(words)
    known = FILLERS | DENIALS | LIST_WORDS
    return denied and listed and all(word in known for word in words)


def _is_general(token: Token, matcher: Matcher) -> bool:
    """Whether a token says the same of all options: all, none, their number, their category, a word of the
    question or of every label."""
    if token.text in ALL_WORDS | NONE_WORDS | LIST_WORDS | DENIALS:
        return True
    if token.number is not None:
        return token.number == len(matcher.ids)
    if token.stem in matcher.asked or token.stem in matcher.shared:
        return True
    return token not in matcher.content([token])


def _counts_all(words: Sequence[str], count: int) -> bool:
    """ "the two of them"."""
    numbers = [CARDINALS[word] for word in words if word in CARDINALS]
    return "of" in words and numbers == [count] and ORDINALS.keys().isdisjoint(words)
