"""Token-deletion pre-training (REFUEL, section 3.2): questions made ambiguous by taking an informative span out.

A span is informative if one of its words is an adjective, noun, number, name, symbol or verb. English needs no tagger
for that: the other classes are closed, and their words are listed here. spaCy may decide instead.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from whichsense.errors import BadInput, require
from whichsense.text.function_words import CLOSED_CLASS_WORDS

LONGEST = 5
INFORMATIVE = frozenset({"ADJ", "NOUN", "NUM", "PROPN", "SYM", "VERB"})
Tagger = Callable[[Sequence[str]], list[bool]]

_EDGES = ".,?!;:\"'"
_WORD = re.compile(r"[^\W_]", re.UNICODE)


def by_list(words: Sequence[str]) -> list[bool]:
    """Whether each word is informative: a word that is not of a closed class is.

    >>> by_list("Who wrote the play the Crucible ?".split())
    [False, True, False, True, False, True, False]
    """
    return [
        word.lower().strip(_EDGES) not in CLOSED_CLASS_WORDS
        and bool(_WORD.search(word))
        for word in words
    ]


def by_spacy(model: str) -> Tagger:
    """spaCy's tags, as in the paper's code. `model` is the name of an installed pipeline."""
    pipeline = _pipeline(model)

    def tag(words: Sequence[str]) -> list[bool]:
        from_words: Any = require("spacy.tokens", "tagging").Doc(
            pipeline.vocab, words=list(words)
        )
        return [token.pos_ in INFORMATIVE for token in pipeline(from_words)]

    return tag


@cache
def _pipeline(model: str) -> Any:
    spacy = require("spacy", "tagging")
    try:
        return spacy.load(model)
    except OSError:
        raise BadInput(
            f"spaCy has no pipeline '{model}'. Install it, or leave the tagger out."
        ) from None


def tagger(name: str) -> Tagger:
    """By the name that a recipe gives: empty for the list of closed classes, else a spaCy pipeline."""
    return by_spacy(name) if name else by_list


def partial(question: str, dice: random.Random, tag: Tagger = by_list) -> str | None:
    """The question without an informative span of 1 to 5 words, its length drawn evenly; None if nothing may go.

    >>> partial("Who wrote the play the Crucible?", random.Random(3))
    'Who wrote the play?'
    """
    body = question.rstrip()
    mark = body[-1:] if body[-1:] in "?.!" else ""
    words = body.removesuffix(mark).split()
    informative = tag(words)
    for length in _lengths(dice, len(words)):
        starts = [
            place
            for place in range(len(words) - length + 1)
            if any(informative[place : place + length])
        ]
        if starts:
            start = dice.choice(starts)
            return " ".join([*words[:start], *words[start + length :]]) + mark
    return None


def _lengths(dice: random.Random, count: int) -> list[int]:
    """The drawn length first; shorter ones follow where a question is too short for it. One word always stays."""
    drawn = dice.randint(1, LONGEST)
    return list(range(min(drawn, count - 1), 0, -1))
