"""Agreement of annotators, over the questions that have several of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from whichsense.datasets import LongQuestion, Question
from whichsense.evaluation.report.tables import mean
from whichsense.metrics.agreement import kappa, pairwise_f1, pairwise_rouge_l


def ambiguity_kappa(questions: Sequence[Question]) -> float | None:
    """Kappa for "has several answers"; None where no question has two annotations.

    Annotators have no identity in the data, so that each pair counts in both orders.
    """
    first_labels = []
    second_labels = []
    for question in questions:
        labels = [annotation.is_single for annotation in question.annotations]
        for first, second in permutations(labels, 2):
            first_labels.append(first)
            second_labels.append(second)
    return kappa(first_labels, second_labels) if first_labels else None


def answer_agreement(questions: Sequence[Question]) -> tuple[float, int]:
    """F1ans of each annotation as the prediction against each other one, and the number of questions."""
    scores = []
    for question in questions:
        score = pairwise_f1(question.answer_sets)
        if score is not None:
            scores.append(score)
    return mean(scores), len(scores)


def long_answer_agreement(questions: Sequence[LongQuestion]) -> tuple[float, int]:
    """ROUGE-L between the long answers of a question, and the number of questions that have two."""
    scores = []
    for question in questions:
        texts = [answer.text for answer in question.long_answers]
        score = pairwise_rouge_l(texts)
        if score is not None:
            scores.append(score)
    return mean(scores), len(scores)
