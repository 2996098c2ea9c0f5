"""How far annotators agree, over the questions that have several of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from whichsense.datasets import LongQuestion, Question
from whichsense.evaluation.report.tables import mean
from whichsense.metrics.agreement import kappa, pairwise_f1, pairwise_rouge_l


def multi_kappa(questions: Sequence[Question]) -> float | None:
    """Kappa for "has several answers"; None where no question has two annotations.

    Annotators have no identity in the data, so that each pair counts in both orders.
    """
    judged = [
        [annotation.is_single for annotation in question.annotations]
        for question in questions
    ]
    pairs = [pair for labels in judged for pair in permutations(labels, 2)]
    return (
        kappa([one for one, _ in pairs], [other for _, other in pairs])
        if pairs
        else None
    )


def answer_agreement(questions: Sequence[Question]) -> tuple[float, int]:
    """F1ans of each annotation taken as the prediction against each other one, and the number of questions."""
    scores = [
        score for q in questions if (score := pairwise_f1(q.answer_sets)) is not None
    ]
    return mean(scores), len(scores)


def long_agreement(questions: Sequence[LongQuestion]) -> tuple[float, int]:
    """ROUGE-L between the long answers of a question, and the number of questions that have two."""
    texts = (
        [answer.text for answer in question.long_answers] for question in questions
    )
    scores = [score for pair in texts if (score := pairwise_rouge_l(pair)) is not None]
    return mean(scores), len(scores)
