"""ROUGE-L over whole texts: `rougeLsum` of the `rouge-score` package with its stemmer, but faster."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from whichsense.metrics.punkt import sentences
from whichsense.text.porter import porter_stem

_WORD = re.compile("[a-z0-9]+")

_Words = tuple[str, ...]


def _stems(text: str) -> _Words:
    """Lower-case ASCII words; those over three letters are stemmed.

    >>> _stems("It was filmed in Toruń's studios.")
    ('it', 'was', 'film', 'in', 'toru', 's', 'studio')
    """
    stems = []
    for word in _WORD.findall(text.lower()):
        stems.append(porter_stem(word) if len(word) > 3 else word)
    return tuple(stems)


@lru_cache(maxsize=2**13)
def _stemmed_sentences(text: str) -> tuple[_Words, ...]:
    stemmed = []
    for sentence in sentences(text.lower()):
        for line in sentence.split("\n"):
            if line:
                stemmed.append(_stems(line))
    return tuple(stemmed)


def rouge_l(reference: str, prediction: str) -> float:
    """F1 of the words of each reference sentence that occur in the prediction's sentences in the same order.

    >>> round(rouge_l("It came out in 1977. A sequel followed.", "A sequel followed. It came in 1978."), 4)
    0.8
    """
    return rouge_l_scores(reference, prediction)[2]


def rouge_l_scores(reference: str, prediction: str) -> tuple[float, float, float]:
    """Precision, recall and F1."""
    gold = _stemmed_sentences(reference)
    predicted = _stemmed_sentences(prediction)
    gold_size = sum(map(len, gold))
    predicted_size = sum(map(len, predicted))
    if not gold_size or not predicted_size:
        return 0.0, 0.0, 0.0
    # How often each word may still be counted: no more often than it occurs on either side.
    free_gold = _count_words(gold)
    free_predicted = _count_words(predicted)
    hits = 0
    for sentence in gold:
        for word in _union_of_subsequences(sentence, predicted):
            if free_predicted[word] > 0 and free_gold[word] > 0:
                hits += 1
                free_predicted[word] -= 1
                free_gold[word] -= 1
    if not hits:
        return 0.0, 0.0, 0.0
    precision = hits / predicted_size
    recall = hits / gold_size
    return precision, recall, 2 * precision * recall / (precision + recall)


def _count_words(text: tuple[_Words, ...]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for sentence in text:
        counts.update(sentence)
    return counts


def rouge_1_recall(reference: str, prediction: str) -> float:
    """The share of the reference's words that occur in the prediction, without stemming (ASQA, table 2's footnote).

    >>> rouge_1_recall("a b c", "c a")
    0.6666666666666666
    """
    gold = Counter(_WORD.findall(reference.lower()))
    predicted = Counter(_WORD.findall(prediction.lower()))
    common = gold & predicted
    return common.total() / max(gold.total(), 1)


def _union_of_subsequences(sentence: _Words, others: Sequence[_Words]) -> list[str]:
    """The words of a sentence that are in the longest common subsequence with any of the others."""
    words = set(sentence)
    covered: set[int] = set()
    for other in others:
        if not words.isdisjoint(other):
            covered.update(_common_positions(sentence, other))
    return [sentence[position] for position in sorted(covered)]


def _common_positions(gold: Sequence[str], predicted: Sequence[str]) -> list[int]:
    """The positions in `gold` of a longest common subsequence. Of several, the one that `rouge-score` reads out."""
    # lengths[i][j]: the length of the longest common subsequence of gold[:i] and predicted[:j].
    lengths = [[0] * (len(predicted) + 1)]
    for word in gold:
        above = lengths[-1]
        row = [0]
        left = 0
        for j, other in enumerate(predicted):
            if word == other:
                left = above[j] + 1
            elif above[j + 1] > left:
                left = above[j + 1]
            row.append(left)
        lengths.append(row)
    positions = []
    i, j = len(gold), len(predicted)
    while i and j:
        if gold[i - 1] == predicted[j - 1]:
            positions.append(i - 1)
            i -= 1
            j -= 1
        elif lengths[i][j - 1] > lengths[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return positions
