"""ASQA's metrics for long answers: ROUGE-L, STR-EM, Disambig-F1 and DR, length.

The official ROUGE-L has two rules. Since December 2022: the better of the two references for each question
(`rouge_l_best`). Before: each reference over the whole set, and the better of the two averages
(`rouge_l_better_average`). The official script prints the middle of a bootstrap, not the mean: see
`bootstrap.middle`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from whichsense.metrics.answers import matches, normal_form, token_f1
from whichsense.metrics.rouge import rouge_l

Reader = Callable[[Sequence[tuple[str, str]]], Sequence[str]]
"""Answers (question, text) pairs with a span of the text each, or with an empty string."""


@dataclass(frozen=True, slots=True)
class Disambiguation:
    """One unambiguous question and the names of its short answer."""

    question: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReaderScores:
    """A reader's answers from a long answer: Disambig-F1, QA-EM, and whether every question got its answer."""

    disambig_f1: float
    qa_em: float
    qa_hit: float


def rouge_l_best(references: Sequence[str], prediction: str) -> float:
    """ROUGE-L against the better reference.

    >>> rouge_l_best(["It opened in 1977.", "The opening was in 1977."], "It opened in 1977.")
    1.0
    """
    return max(rouge_l(reference, prediction) for reference in references)


def rouge_l_better_average(scores: Sequence[Sequence[float]]) -> float:
    """The older rule, from each question's scores against each reference.

    >>> rouge_l_better_average([(0.5, 0.25), (0.25, 1.0)])
    0.625
    """
    averages: list[float] = []
    for column in zip(*scores, strict=True):  # one per reference
        averages.append(sum(column) / len(column))
    return max(averages)


def str_em(answers: Sequence[Sequence[str]], prediction: str) -> float:
    """The share of short answers that the long answer holds: a normalized alias is a substring of it.

    >>> str_em([["5"], ["Carrie Fisher", "Fisher"]], "It came out in 1995, with Ford.")
    0.5
    """
    text = normal_form(prediction)
    held = 0
    for aliases in answers:
        forms = map(normal_form, aliases)
        held += any(form in text for form in forms)
    return held / len(answers)


def reader_scores(
    questions: Sequence[Disambiguation], short_answers: Sequence[str]
) -> ReaderScores:
    """How well the answers that a reader took from a long answer agree with the gold ones.

    >>> questions = [Disambiguation("When did it open?", ("1977",)), Disambiguation("Who led?", ("Ann Lee", "Lee"))]
    >>> reader_scores(questions, ["1977", "Ann"])
    ReaderScores(disambig_f1=0.8333333333333333, qa_em=0.5, qa_hit=0.0)
    """
    f1 = []
    em = []
    for question, answer in zip(questions, short_answers, strict=True):
        # The best alias counts.
        f1.append(max(token_f1(answer, alias) for alias in question.aliases))
        em.append(matches(answer, question.aliases))
    return ReaderScores(
        disambig_f1=sum(f1) / len(f1), qa_em=sum(em) / len(em), qa_hit=float(all(em))
    )


def read_all(
    questions: Sequence[Sequence[Disambiguation]],
    predictions: Sequence[str],
    reader: Reader,
) -> list[ReaderScores]:
    """Let a reader answer every disambiguated question from the long answers, in one call, and score it."""
    pairs = []
    for group, text in zip(questions, predictions, strict=True):
        for disambiguation in group:
            pairs.append((disambiguation.question, text))
    answers = reader(pairs)
    scores = []
    start = 0  # of the group's answers
    for group in questions:
        end = start + len(group)
        scores.append(reader_scores(group, answers[start:end]))
        start = end
    return scores


def dr(disambig_f1: float, rouge: float) -> float:
    """The geometric mean of both.

    >>> dr(0.25, 0.36)
    0.3
    """
    return math.sqrt(disambig_f1 * rouge)


def length(prediction: str) -> int:
    """The number of words between white space.

    >>> length("It opened in 1977.")
    4
    """
    return len(prediction.split())
