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

_Tagger = Callable[[Sequence[str]], list[bool]]
"""Says of each word of a question whether it is informative."""
_LONGEST = 5  # words of a deleted span
_INFORMATIVE = frozenset({"ADJ", "NOUN", "NUM", "PROPN", "SYM", "VERB"})
_EDGES = ".,?!;:\"'"
_WORD = re.compile(r"[^\W_]", re.UNICODE)


def tag_by_list(words: Sequence[str]) -> list[bool]:
    """Words that are not of a closed class are informative.

    >>> tag_by_list("Who wrote the play the Crucible ?".split())
    [False, True, False, True, False, True, False]
    """
    tags = []
    for word in words:
        is_closed = word.lower().strip(_EDGES) in CLOSED_CLASS_WORDS
        tags.append(not is_closed and bool(_WORD.search(word)))
    return tags


def load_tagger(name: str) -> _Tagger:
    """The tagger that a recipe names: empty for the list of closed classes, else an installed spaCy pipeline, as in the
    paper's code."""
    if not name:
        return tag_by_list
    pipeline = _load_pipeline(name)

    def tag(words: Sequence[str]) -> list[bool]:
        tokens: Any = require("spacy.tokens", "tagging")
        document = tokens.Doc(pipeline.vocab, words=list(words))
        return [token.pos_ in _INFORMATIVE for token in pipeline(document)]

    return tag


@cache
def _load_pipeline(name: str) -> Any:
    spacy = require("spacy", "tagging")
    try:
        return spacy.load(name)
    except OSError:
        raise BadInput(
            f"spaCy has no pipeline '{name}'. Install it, or leave the tagger out."
        ) from None


def delete_span(
    question: str, rng: random.Random, tag: _Tagger = tag_by_list
) -> str | None:
    """The question without an informative span of 1 to 5 words, its length drawn evenly; None if nothing may go.

    >>> delete_span("Who wrote the play the Crucible?", random.Random(3))
    'Who wrote the play?'
    """
    body = question.rstrip()
    mark = body[-1:] if body[-1:] in "?.!" else ""
    words = body.removesuffix(mark).split()
    informative = tag(words)
    # The drawn length first, then shorter ones for a short question. One word stays.
    longest = min(rng.randint(1, _LONGEST), len(words) - 1)
    for length in range(longest, 0, -1):
        starts = []
        for start in range(len(words) - length + 1):
            if any(informative[start : start + length]):
                starts.append(start)
        if starts:
            start = rng.choice(starts)
            return " ".join([*words[:start], *words[start + length :]]) + mark
    return None
