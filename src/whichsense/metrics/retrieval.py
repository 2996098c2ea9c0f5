"""Did the search bring the answers? Recall at k over gold answers, over questions, and reciprocal rank."""

from __future__ import annotations

from collections.abc import Sequence

from whichsense.metrics.answers import normal_form
from whichsense.text.words import normalize


def answer_ranks(
    answers: Sequence[Sequence[str]], texts: Sequence[str]
) -> list[int | None]:
    """For each gold answer the rank, from 1, of the first text that holds one of its aliases; None if none does.

    An alias is held where it stands as whole words after normalization. Every text is normalized once, and only as
    far down as there are answers left to find.

    >>> answer_ranks([["Ann Lee"], ["1977"], ["the"]], ["It opened in 1977.", "By Lee, Ann.", "Ann Lee's play"])
    [None, 1, None]
    >>> answer_ranks([["Ann Lee"]], ["It opened in 1977.", "by ann lee, who"])
    [2]
    """
    ranks: list[int | None] = [None] * len(answers)
    forms = [
        [f" {form} " for alias in aliases if (form := normal_form(alias))]
        for aliases in answers
    ]
    missing = [i for i, aliases in enumerate(forms) if aliases]
    for rank, text in enumerate(texts, 1):
        if not missing:
            break
        padded = f" {normalize(text)} "
        for i in missing:
            if any(form in padded for form in forms[i]):
                ranks[i] = rank
        missing = [i for i in missing if ranks[i] is None]
    return ranks


def answer_recall(ranks: Sequence[int | None], k: int) -> float:
    """The share of gold answers found in the top k.

    >>> answer_recall([1, 7, None, 3], k=5)
    0.5
    """
    return (
        sum(rank is not None and rank <= k for rank in ranks) / len(ranks)
        if ranks
        else 0.0
    )


def any_answer_recall(ranks: Sequence[int | None], k: int) -> float:
    """Whether some gold answer is found in the top k.

    >>> any_answer_recall([None, 7], k=5), any_answer_recall([None, 7], k=10)
    (0.0, 1.0)
    """
    return float(any(rank is not None and rank <= k for rank in ranks))


def reciprocal_rank(ranks: Sequence[int | None]) -> float:
    """One over the rank of the first text with a gold answer; 0 if none has one. Its mean is MRR.

    >>> reciprocal_rank([4, 2, None])
    0.5
    """
    found = [rank for rank in ranks if rank is not None]
    return 1 / min(found) if found else 0.0


def all_answers_recall(ranks: Sequence[int | None], k: int) -> float:
    """Whether all gold answers are found in the top k, or, where there are more than k, k of them (JPR's MRECALL).

    >>> all_answers_recall([1, 7], k=5), all_answers_recall([1, 7], k=10), all_answers_recall([1, 2, None], k=2)
    (0.0, 1.0, 1.0)
    """
    found = sum(rank is not None and rank <= k for rank in ranks)
    return float(found >= min(len(ranks), k))
