"""Find questions that repeat others: equal, or with nearly the same words."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from whichsense.text.words import words

_THRESHOLD = 0.75  # Jaccard overlap of words

_Words = frozenset[str]


def find_near_duplicates(
    questions: Sequence[str], against: Sequence[str], threshold: float = _THRESHOLD
) -> dict[int, int]:
    """The questions that repeat one of `against`: position → position of the first that they repeat there.

    Two questions repeat each other when the Jaccard overlap of their word sets is `threshold` or more. Exact, and
    fast by prefix filtering: two sets with such an overlap share one of their few rarest words.

    >>> find_near_duplicates(["who sang Hurt?", "who wrote it"], ["Who sang hurt", "when was it"])
    {0: 0}
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be over 0 and at most 1, not {threshold}")
    known = [frozenset(words(text)) for text in against]
    asked = [frozenset(words(text)) for text in questions]
    frequency: Counter[str] = Counter()
    for tokens in (*known, *asked):
        frequency.update(tokens)
    # word → positions in `against` of the questions that have it among their rarest words
    index: defaultdict[str, list[int]] = defaultdict(list)
    for number, tokens in enumerate(known):
        for word in _rarest_words(tokens, frequency, threshold):
            index[word].append(number)
    duplicates: dict[int, int] = {}
    for number, tokens in enumerate(asked):
        candidates: set[int] = set()  # positions in `against`
        for word in _rarest_words(tokens, frequency, threshold):
            candidates.update(index[word])
        for candidate in sorted(candidates):
            if _overlap_enough(tokens, known[candidate], threshold):
                duplicates[number] = candidate
                break
    _add_wordless(duplicates, asked, known)
    return duplicates


def _add_wordless(
    duplicates: dict[int, int], asked: list[_Words], known: list[_Words]
) -> None:
    """A text of punctuation alone has no words; it repeats every other such text."""
    if frozenset() not in known:
        return
    first = known.index(frozenset())
    for number, tokens in enumerate(asked):
        if not tokens:
            duplicates[number] = first


def _overlap_enough(one: _Words, other: _Words, threshold: float) -> bool:
    small, large = sorted((len(one), len(other)))
    if small / large < threshold:  # even if the smaller set is a subset of the larger
        return False
    shared = len(one & other)
    return shared / (small + large - shared) >= threshold


def _rarest_words(
    tokens: _Words, frequency: Counter[str], threshold: float
) -> list[str]:
    """The prefix: of n words, as many as leave a rest that cannot reach the threshold alone."""
    if not tokens:
        return []
    # Rounding errors must not demand a word too many.
    needed = math.ceil(threshold * len(tokens) - 1e-9)
    ranked = sorted(tokens, key=lambda word: (frequency[word], word))
    return ranked[: len(tokens) - needed + 1]
