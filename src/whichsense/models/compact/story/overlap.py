"""Whether a passage supports a sentence, by the words that they share: for weights that have no judge."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whichsense.text.function_words import SUMMARY_STOP_WORDS
from whichsense.text.porter import porter_stem
from whichsense.text.words import words

_NUMBER = re.compile(r"\d")


class WordOverlap:
    """The share of a sentence's content words that a passage holds; a number that it lacks halves it."""

    def supports(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """
        >>> passage = "Batman is a 1989 film with Jack Nicholson as the Joker."
        >>> pairs = [("Jack Nicholson is the Joker in Batman.", passage), ("Batman is a 2008 film.", passage)]
        >>> WordOverlap().supports(pairs)
        [1.0, 0.3333333333333333]
        """
        return [_share(sentence, passage) for sentence, passage in pairs]


def _share(sentence: str, passage: str) -> float:
    content = set(words(sentence)) - SUMMARY_STOP_WORDS
    if not content:
        return 0.0
    known = {porter_stem(word) for word in words(passage)}
    held = 0
    lacks_number = False
    for word in content:
        if porter_stem(word) in known:
            held += 1
        elif _NUMBER.search(word):
            lacks_number = True
    share = held / len(content)
    return share / 2 if lacks_number else share
