"""How far annotators agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import permutations

from whichsense.datasets import LongQuestion, Question
from whichsense.metrics.ambignq import f1_answers
from whichsense.metrics.rouge import rouge_l

from .shape import mean


def kappa(pairs: Sequence[tuple[object, object]]) -> float:
    """Cohen's kappa of two annotators: agreement beyond what chance would give.

    >>> kappa([("yes", "yes"), ("yes", "no"), ("no", "no"), ("no", "no")])
    0.5
    """
    if not pairs:
        return 0.0
    total = len(pairs)
    observed = sum(one == other for one, other in pairs) / total
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    chance = sum(first[label] * second[label] for label in first) / total**2
    return (observed - chance) / (1 - chance) if chance < 1 else 1.0


def multi_kappa(questions: Iterable[Question]) -> tuple[float, int]:
    """Kappa for "has several answers" over questions with two annotations or more, and their number.

    Annotators have no identity in the data, so that each pair counts in both orders.
    """
    judged = [[a.is_single for a in question.annotations] for question in questions if len(question.annotations) > 1]
    return kappa([pair for labels in judged for pair in permutations(labels, 2)]), len(judged)


def answer_agreement(questions: Iterable[Question]) -> tuple[float, int]:
    """F1ans of each annotation taken as the prediction against each other one, and the number of questions."""
    compared = [question.answer_sets for question in questions if len(question.annotations) > 1]
    scores = [
        mean(f1_answers(gold, [aliases[0] for aliases in said]) for gold, said in permutations(sets, 2))
        for sets in compared
    ]
    return mean(scores), len(compared)


def long_agreement(questions: Iterable[LongQuestion]) -> tuple[float, int]:
    """ROUGE-L between the long answers of a question, and the number of questions that have two."""
    compared = [[answer.text for answer in q.long_answers] for q in questions if len(q.long_answers) > 1]
    return mean(mean(rouge_l(one, other) for one, other in permutations(texts, 2)) for texts in compared), len(compared)
