"""Questions that say the same: equal, or with nearly the same words."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from whichsense.text.words import words

THRESHOLD = 0.75


def near_duplicates(
    questions: Sequence[str], against: Sequence[str], threshold: float = THRESHOLD
) -> dict[int, int]:
    """The questions that repeat one of `against`: position → position of the first that they repeat there.

    Two questions repeat each other when their sets of words overlap by `threshold` (Jaccard) or more. Exact, and
    fast by prefix filtering: two sets that overlap so much share one of their few rarest words.

    >>> near_duplicates(["who sang Hurt?", "who wrote it"], ["Who sang hurt", "when was it"])
    {0: 0}
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be over 0 and at most 1, not {threshold}")
    known = [frozenset(words(text)) for text in against]
    asked = [frozenset(words(text)) for text in questions]
    count = Counter(word for tokens in (*known, *asked) for word in tokens)
    index: defaultdict[str, list[int]] = defaultdict(list)
    empty = next((number for number, tokens in enumerate(known) if not tokens), None)
    for number, tokens in enumerate(known):
        for word in _rarest(tokens, count, threshold):
            index[word].append(number)
    found: dict[int, int] = {}
    for number, tokens in enumerate(asked):
        candidates = {
            other for word in _rarest(tokens, count, threshold) for other in index[word]
        }
        hits = [
            other for other in candidates if _repeats(tokens, known[other], threshold)
        ]
        if (
            not tokens and empty is not None
        ):  # nothing but punctuation equals nothing but punctuation
            hits = [empty]
        if hits:
            found[number] = min(hits)
    return found


def _repeats(one: frozenset[str], other: frozenset[str], threshold: float) -> bool:
    small, large = sorted((len(one), len(other)))
    if small / large < threshold:  # even if the small one lies within the large one
        return False
    shared = len(one & other)
    return shared / (small + large - shared) >= threshold


def _rarest(tokens: frozenset[str], count: Counter[str], threshold: float) -> list[str]:
    """The prefix: of n words, so many that the rest alone could not reach the threshold."""
    needed = math.ceil(threshold * len(tokens) - 1e-9)
    return (
        sorted(tokens, key=lambda word: (count[word], word))[: len(tokens) - needed + 1]
        if tokens
        else []
    )
