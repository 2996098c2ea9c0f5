"""Answers as a set: all right ones and no other. RAMDocs asks for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.metrics.answers import normal_form


@dataclass(frozen=True, slots=True)
class SetScores:
    """Precision: the share of given answers that are right. Recall: the share of right answers that are given."""

    precision: float
    recall: float
    exact: float
    """1 where both are 1."""


def contains_answer(one: str, other: str) -> bool:
    """Whether two answers are the same, or one holds all words of the other in a row.

    >>> contains_answer("3,559 people", "3,559"), contains_answer("Ann", "Annabel"), contains_answer("", "Ann")
    (True, False, False)
    """
    short, long = sorted((normal_form(one), normal_form(other)), key=len)
    return bool(short) and f" {short} " in f" {long} "


def set_scores(
    gold: Sequence[str], predicted: Sequence[str], strict: bool = False
) -> SetScores:
    """Compare answers with gold ones; `strict` wants them equal after normalization.

    >>> set_scores(["1902", "3,559 people"], ["1902", "3,559"])
    SetScores(precision=1.0, recall=1.0, exact=1.0)
    >>> set_scores(["1902"], ["1885", "1902"])
    SetScores(precision=0.5, recall=1.0, exact=0.0)
    >>> set_scores(["3,559 people"], ["3,559"], strict=True)
    SetScores(precision=0.0, recall=0.0, exact=0.0)
    """
    right = 0
    for answer in predicted:
        right += any(_matches(answer, one, strict) for one in gold)
    covered = 0
    for one in gold:
        covered += any(_matches(answer, one, strict) for answer in predicted)
    precision = right / len(predicted) if predicted else 0.0
    recall = covered / len(gold) if gold else 0.0
    return SetScores(precision, recall, float(precision == recall == 1.0))


def _matches(one: str, other: str, strict: bool) -> bool:
    if strict:
        return normal_form(one) == normal_form(other)
    return contains_answer(one, other)
