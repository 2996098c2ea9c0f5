"""EDIT-F1: do two rewrites of a question change the same words of it?"""

from __future__ import annotations

from functools import lru_cache

_Words = tuple[str, ...]


def edit_f1(prompt: _Words, reference: _Words, prediction: _Words) -> float:
    """F1 between the words that gold and predicted question delete from and add to the prompt.

    >>> prompt, gold = "who made play crucible".split(), "who wrote play crucible".split()
    >>> round(edit_f1(tuple(prompt), tuple(gold), tuple("who wrote play crucible in 1953".split())), 6)
    0.666667
    """
    gold_edits = _word_edits(prompt, reference)
    predicted_edits = _word_edits(prompt, prediction)
    if not gold_edits or not predicted_edits:
        return float(gold_edits == predicted_edits)
    common = 0
    for word in gold_edits.keys() & predicted_edits.keys():
        gold_count = gold_edits[word]
        predicted_count = predicted_edits[word]
        # An addition never matches a deletion of the same word.
        if (gold_count > 0) == (predicted_count > 0):
            common += min(abs(gold_count), abs(predicted_count))
    gold_size = sum(map(abs, gold_edits.values()))
    predicted_size = sum(map(abs, predicted_edits.values()))
    return 2 * common / (gold_size + predicted_size)


@lru_cache(maxsize=2**14)
def _word_edits(before: _Words, after: _Words) -> dict[str, int]:
    """Count how often each word is added (positive) or deleted (negative)."""
    # The official script splits at blanks: a question without words has one word, the empty string.
    net: dict[str, int] = {}
    for word in after or ("",):
        net[word] = net.get(word, 0) + 1
    for word in before or ("",):
        net[word] = net.get(word, 0) - 1
    return {word: count for word, count in net.items() if count}
