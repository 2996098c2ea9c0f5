"""Short answers: exact match by any alias, by the first one, and by any of several predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from whichsense.text.words import normalize

# Gold aliases recur for every prediction, so their normal forms are cached.
normal_form = lru_cache(maxsize=2**16)(normalize)


def matches(prediction: str, aliases: Iterable[str]) -> bool:
    """Whether an answer equals one of its gold aliases after normalization.

    >>> matches("The Beatles", ["Beatles", "Fab Four"])
    True
    """
    form = normal_form(prediction)
    return form in map(normal_form, aliases)


def exact_match(prediction: str, aliases: Sequence[str]) -> float:
    """EM against any alias: what NQ-open and TriviaQA report.

    >>> exact_match("14 December 1972", ["December 14, 1972", "14 december 1972"])
    1.0
    """
    return float(matches(prediction, aliases))


def exact_match_first(prediction: str, aliases: Sequence[str]) -> float:
    """EM against the first alias only (AmbigQA, table 8).

    >>> exact_match_first("B", ["A", "B"])
    0.0
    """
    first = aliases[:1]  # none where there is no alias
    return float(matches(prediction, first))


def oracle_exact_match(predictions: Iterable[str], aliases: Sequence[str]) -> float:
    """EM that is right if any predicted answer is (REFUEL's Oracle EM).

    >>> oracle_exact_match(["A", "B"], ["b"])
    1.0
    """
    for prediction in predictions:
        if matches(prediction, aliases):
            return 1.0
    return 0.0


def token_f1(prediction: str, gold: str) -> float:
    """F1 over normalized words, as SQuAD's; two empty answers agree.

    >>> round(token_f1("the French Open", "2017 French Open"), 3)
    0.8
    """
    predicted_words = normal_form(prediction).split()
    gold_words = normal_form(gold).split()
    size = len(predicted_words) + len(gold_words)
    if not predicted_words or not gold_words:
        return float(size == 0)
    common = Counter(predicted_words) & Counter(gold_words)
    return 2 * common.total() / size
