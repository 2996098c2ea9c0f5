"""Retrieval: recall at k over gold answers and over questions, and reciprocal rank."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.metrics.answers import normal_form
from whichsense.text.words import normalize


def answer_ranks(
    answers: Sequence[Sequence[str]], texts: Sequence[str]
) -> list[int | None]:
    """For each gold answer the rank, from 1, of the first text that holds one of its aliases; None if none does.

    A text holds an alias where it occurs as whole words after normalization. Every text is normalized once, and only
    as far down as answers are missing.

    >>> answer_ranks([["Ann Lee"], ["1977"], ["the"]], ["It opened in 1977.", "By Lee, Ann.", "Ann Lee's play"])
    [None, 1, None]
    >>> answer_ranks([["Ann Lee"]], ["It opened in 1977.", "by ann lee, who"])
    [2]
    """
    ranks: list[int | None] = [None] * len(answers)
    # Blanks around an alias and around a text make a substring a match of whole words.
    forms: list[list[str]] = []
    missing = []
    for number, aliases in enumerate(answers):
        own = [f" {form} " for form in map(normal_form, aliases) if form]
        forms.append(own)
        if own:
            missing.append(number)
    for rank, text in enumerate(texts, 1):
        if not missing:
            break
        padded = f" {normalize(text)} "
        still_missing = []
        for number in missing:
            if any(form in padded for form in forms[number]):
                ranks[number] = rank
            else:
                still_missing.append(number)
        missing = still_missing
    return ranks


def _found_within(ranks: Sequence[int | None], k: int) -> int:
    """How many gold answers are in the top k."""
    count = 0
    for rank in ranks:
        if rank is not None and rank <= k:
            count += 1
    return count


def answer_recall(ranks: Sequence[int | None], k: int) -> float:
    """The share of gold answers in the top k.

    >>> answer_recall([1, 7, None, 3], k=5)
    0.5
    """
    return _found_within(ranks, k) / len(ranks) if ranks else 0.0


def any_answer_recall(ranks: Sequence[int | None], k: int) -> float:
    """Whether a gold answer is in the top k.

    >>> any_answer_recall([None, 7], k=5), any_answer_recall([None, 7], k=10)
    (0.0, 1.0)
    """
    return float(_found_within(ranks, k) > 0)


def all_answers_recall(ranks: Sequence[int | None], k: int) -> float:
    """Whether all gold answers are in the top k, or k of them where there are more (JPR's MRECALL).

    >>> all_answers_recall([1, 7], k=5), all_answers_recall([1, 7], k=10), all_answers_recall([1, 2, None], k=2)
    (0.0, 1.0, 1.0)
    """
    wanted = min(len(ranks), k)
    return float(_found_within(ranks, k) >= wanted)


def reciprocal_rank(ranks: Sequence[int | None]) -> float:
    """One over the rank of the first text with a gold answer; 0 if none has one. Its mean is MRR.

    >>> reciprocal_rank([4, 2, None])
    0.5
    """
    present = [rank for rank in ranks if rank is not None]
    return 1 / min(present) if present else 0.0
