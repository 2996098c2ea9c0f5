"""Annotator agreement: Cohen's kappa, F1 over their answers, ROUGE-L between their texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import combinations

from whichsense.errors import BadInput
from whichsense.metrics.ambignq import f1_answers
from whichsense.metrics.rouge import rouge_l


def kappa(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Cohen's kappa: agreement of two annotators beyond chance; 1 where they always agree.

    >>> kappa([True, True, False, False], [True, False, False, False])
    0.5
    """
    size = len(one)
    if size != len(other) or not size:
        raise BadInput(
            f"Kappa needs two labels for each item: {size} and {len(other)} given."
        )
    equal = 0
    for label, other_label in zip(one, other, strict=True):
        equal += label == other_label
    agreed = equal / size
    # The agreement of two annotators who draw labels at random, each by their own frequencies.
    one_counts, other_counts = Counter(one), Counter(other)
    products = 0
    for label, count in one_counts.items():
        products += count * other_counts[label]
    chance = products / size**2
    return 1.0 if chance == 1 else (agreed - chance) / (1 - chance)


def pairwise_f1(annotations: Sequence[Sequence[Sequence[str]]]) -> float | None:
    """F1 over answers between every two annotators of a question, each once as the gold side; None below two.

    An annotation is a list of answers, an answer a list of aliases. As a prediction, an answer is its first alias.

    >>> pairwise_f1([[["a"], ["b"]], [["a"]]])
    0.6666666666666666
    """
    scores = []
    for one, other in combinations(annotations, 2):
        for gold, predicted in ((one, other), (other, one)):
            answers = [aliases[0] for aliases in predicted]
            scores.append(f1_answers(gold, answers))
    return sum(scores) / len(scores) if scores else None


def pairwise_rouge_l(texts: Sequence[str]) -> float | None:
    """Mean ROUGE-L between every two texts for one question; None below two.

    >>> pairwise_rouge_l(["It opened in 1977.", "It opened in 1977."])
    1.0
    """
    scores = [rouge_l(one, other) for one, other in combinations(texts, 2)]
    return sum(scores) / len(scores) if scores else None
