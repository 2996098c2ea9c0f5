"""ROUGE-L over whole texts (`rougeLsum` of the `rouge-score` package, stemmer on), fast."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from whichsense.metrics.punkt import sentences
from whichsense.text.porter import stem

_WORD = re.compile("[a-z0-9]+")

Sentences = tuple[tuple[str, ...], ...]


def stems(text: str) -> tuple[str, ...]:
    """Lower-case ASCII words; those over three letters are stemmed.

    >>> stems("It was filmed in Toruń's studios.")
    ('it', 'was', 'film', 'in', 'toru', 's', 'studio')
    """
    return tuple(
        stem(word) if len(word) > 3 else word for word in _WORD.findall(text.lower())
    )


@lru_cache(maxsize=2**13)
def _stemmed_sentences(text: str) -> Sentences:
    parts = (
        line for sentence in sentences(text.lower()) for line in sentence.split("\n")
    )
    return tuple(stems(part) for part in parts if part)


def rouge_l(reference: str, prediction: str) -> float:
    """F1 of the words of each reference sentence that stand in the prediction's sentences in the same order.

    >>> round(rouge_l("It came out in 1977. A sequel followed.", "A sequel followed. It came in 1978."), 4)
    0.8
    """
    return rouge_l_scores(reference, prediction)[2]


def rouge_l_scores(reference: str, prediction: str) -> tuple[float, float, float]:
    """Precision, recall and F1."""
    gold, guess = _stemmed_sentences(reference), _stemmed_sentences(prediction)
    size, our_size = sum(map(len, gold)), sum(map(len, guess))
    if not size or not our_size:
        return 0.0, 0.0, 0.0
    free_gold, free_guess = (
        Counter(word for part in parts for word in part) for parts in (gold, guess)
    )
    hits = 0
    for sentence in gold:
        for word in _union(sentence, guess):
            if (
                free_guess[word] > 0 and free_gold[word] > 0
            ):  # no word is counted more often than it occurs
                hits += 1
                free_guess[word] -= 1
                free_gold[word] -= 1
    if not hits:
        return 0.0, 0.0, 0.0
    precision, recall = hits / our_size, hits / size
    return precision, recall, 2 * precision * recall / (precision + recall)


def rouge_1_recall(reference: str, prediction: str) -> float:
    """The share of the reference's words that stand in the prediction, without stemming (ASQA, table 2's footnote).

    >>> rouge_1_recall("a b c", "c a")
    0.6666666666666666
    """
    gold, guess = (
        Counter(_WORD.findall(text.lower())) for text in (reference, prediction)
    )
    return sum((gold & guess).values()) / max(sum(gold.values()), 1)


def _union(sentence: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> list[str]:
    """The words of a sentence that are in the longest common subsequence with any of the others."""
    words = set(sentence)
    covered: set[int] = set()
    for other in others:
        if not words.isdisjoint(other):
            covered.update(_common_positions(sentence, other))
    return [sentence[i] for i in sorted(covered)]


def _common_positions(gold: Sequence[str], guess: Sequence[str]) -> list[int]:
    """Where in `gold` one longest common subsequence stands. Of several, the one that `rouge-score` reads out."""
    rows = [[0] * (len(guess) + 1)]
    for word in gold:
        above, row, left = rows[-1], [0], 0
        for j, other in enumerate(guess):
            if word == other:
                left = above[j] + 1
            elif above[j + 1] > left:
                left = above[j + 1]
            row.append(left)
        rows.append(row)
    positions, i, j = [], len(gold), len(guess)
    while i and j:
        if gold[i - 1] == guess[j - 1]:
            positions.append(i - 1)
            i, j = i - 1, j - 1
        elif rows[i][j - 1] > rows[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return positions
