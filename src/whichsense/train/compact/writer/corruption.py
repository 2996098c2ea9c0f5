"""Corrupted texts: words are taken out, and the writer learns to restore them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

_SHORTEST = 4  # tokens of a text that is corrupted
_GAP_COUNTS = (1, 1, 1, 2, 2, 3)  # one of them is drawn
_LONGEST_GAP = 5  # tokens
_LONGEST_BEGINNING = 3  # tokens that remain of a text that is nearly all taken out
_REPEATED_WORD = 0.25  # how often a word too many is left, which has to go
_RESTORED_WEIGHT = 1.5  # of a token that was taken out, beyond the others


@dataclass(frozen=True, slots=True)
class _CutText:
    """The remaining tokens of a text, and the weights of the whole with its end: tokens that were taken out count
    more."""

    remaining: list[int]
    weights: list[float]


def cut_words(
    text: Sequence[int], rng: random.Random, *, nearly_all: float
) -> _CutText | None:
    """Take tokens out of a text; with probability `nearly_all`, all but the first few.

    None if the text is too short, or if nothing or everything would be taken out.
    """
    if len(text) < _SHORTEST:
        return None
    if rng.random() < nearly_all:
        beginning = rng.randint(1, _LONGEST_BEGINNING)
        stays = [place < beginning for place in range(len(text))]
    else:
        stays = _draw_gaps(len(text), rng)
    remaining = []
    weights = []
    for piece, stayed in zip(text, stays, strict=True):
        if stayed:
            remaining.append(piece)
            weights.append(1.0)
        else:
            weights.append(1.0 + _RESTORED_WEIGHT)
    if not remaining or len(remaining) == len(text):
        return None
    if rng.random() < _REPEATED_WORD:
        place = rng.randrange(len(remaining) + 1)
        remaining.insert(place, rng.choice(remaining))
    weights.append(1.0)  # of the end
    return _CutText(remaining, weights)


def _draw_gaps(size: int, rng: random.Random) -> list[bool]:
    """Which tokens stay, where a few short gaps are taken out. The first token always stays."""
    stays = [True] * size
    for _ in range(rng.choice(_GAP_COUNTS)):
        length = rng.randint(1, _LONGEST_GAP)
        first = rng.randrange(1, max(2, size - length + 1))
        for place in range(first, min(first + length, size)):
            stays[place] = False
    return stays
