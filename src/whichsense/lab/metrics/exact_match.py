"""Answers as benchmarks compare them: one answer, sets of answers, and passages that hold one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from whichsense.text.words import normalize
from whichsense.types import frozen

# Short answers: exact match by any alias, by the first one, and by any of several predictions.

# Gold aliases recur for every prediction, so their normal forms are cached.
normal_form = lru_cache(maxsize=2**16)(normalize)


def matches(prediction: str, aliases: Iterable[str]) -> bool:
    """Tell whether an answer equals one of its gold aliases after normalization.

    >>> matches("The Beatles", ["Beatles", "Fab Four"])
    True
    """
    return normal_form(prediction) in map(normal_form, aliases)


def exact_match(prediction: str, aliases: Sequence[str]) -> float:
    """Return EM against any alias: what NQ-open and TriviaQA report.

    >>> exact_match("14 December 1972", ["December 14, 1972", "14 december 1972"])
    1.0
    """
    return float(matches(prediction, aliases))


def exact_match_first(prediction: str, aliases: Sequence[str]) -> float:
    """Return EM against the first alias only (AmbigQA, table 8).

    >>> exact_match_first("B", ["A", "B"])
    0.0
    """
    return float(matches(prediction, aliases[:1]))  # none where there is no alias


def oracle_exact_match(predictions: Iterable[str], aliases: Sequence[str]) -> float:
    """Return EM that is right if any predicted answer is (REFUEL's Oracle EM).

    >>> oracle_exact_match(["A", "B"], ["b"])
    1.0
    """
    return float(any(matches(prediction, aliases) for prediction in predictions))


def token_f1(prediction: str, gold: str) -> float:
    """Return F1 over normalized words, as SQuAD's; two empty answers agree.

    >>> round(token_f1("the French Open", "2017 French Open"), 3)
    0.8
    """
    predicted_words = normal_form(prediction).split()
    gold_words = normal_form(gold).split()
    size = len(predicted_words) + len(gold_words)
    if not predicted_words or not gold_words:
        return float(size == 0)
    return 2 * (Counter(predicted_words) & Counter(gold_words)).total() / size


# Answers as a set: all right ones and no other. RAMDocs asks for that.


@frozen
class SetScores:
    """Precision: the share of given answers that are right. Recall: the share of right answers that are given."""

    precision: float
    recall: float
    exact: float
    """1 where both are 1."""


def contains_answer(one: str, other: str) -> bool:
    """Tell whether two answers are the same, or one holds all words of the other in a row.

    >>> contains_answer("3,559 people", "3,559"), contains_answer("Ann", "Annabel"), contains_answer("", "Ann")
    (True, False, False)
    """
    short, long = sorted((normal_form(one), normal_form(other)), key=len)
    return bool(short) and f" {short} " in f" {long} "


def set_scores(gold: Sequence[str], predicted: Sequence[str], strict: bool = False) -> SetScores:
    """Compare answers with gold ones; `strict` wants them equal after normalization.

    >>> set_scores(["1902", "3,559 people"], ["1902", "3,559"])
    SetScores(precision=1.0, recall=1.0, exact=1.0)
    >>> set_scores(["1902"], ["1885", "1902"])
    SetScores(precision=0.5, recall=1.0, exact=0.0)
    >>> set_scores(["3,559 people"], ["3,559"], strict=True)
    SetScores(precision=0.0, recall=0.0, exact=0.0)
    """
    right = sum(any(_matches(answer, one, strict) for one in gold) for answer in predicted)
    covered = sum(any(_matches(answer, one, strict) for answer in predicted) for one in gold)
    precision = right / len(predicted) if predicted else 0.0
    recall = covered / len(gold) if gold else 0.0
    return SetScores(precision, recall, float(precision == recall == 1.0))


def _matches(one: str, other: str, strict: bool) -> bool:
    if strict:
        return normal_form(one) == normal_form(other)
    return contains_answer(one, other)


# Retrieval: recall at k over gold answers and over questions, and reciprocal rank.


def answer_ranks(answers: Sequence[Sequence[str]], texts: Sequence[str]) -> list[int | None]:
    """Return for each gold answer the rank, from 1, of the first text that holds one of its aliases; None if none does.

    A text holds an alias where it occurs as whole words after normalization. Every text is normalized once, and only
    as far down as answers are missing.

    >>> answer_ranks([["Ann Lee"], ["1977"], ["the"]], ["It opened in 1977.", "By Lee, Ann.", "Ann Lee's play"])
    [None, 1, None]
    >>> answer_ranks([["Ann Lee"]], ["It opened in 1977.", "by ann lee, who"])
    [2]
    """
    ranks: list[int | None] = [None] * len(answers)
    # Blanks around an alias and around a text make a substring a match of whole words.
    forms = list(map(_padded_forms, answers))
    missing = {number for number, own in enumerate(forms) if own}
    for rank, text in enumerate(texts, 1):
        if not missing:
            break
        padded = f" {normalize(text)} "
        found = {number for number in missing if any(form in padded for form in forms[number])}
        missing -= found
        for number in found:
            ranks[number] = rank
    return ranks


def _padded_forms(aliases: Sequence[str]) -> list[str]:
    return [f" {form} " for form in map(normal_form, aliases) if form]


def _found_within(ranks: Sequence[int | None], k: int) -> int:
    """Return how many gold answers are in the top k."""
    return sum(rank is not None and rank <= k for rank in ranks)


def answer_recall(ranks: Sequence[int | None], k: int) -> float:
    """Return the share of gold answers in the top k.

    >>> answer_recall([1, 7, None, 3], k=5)
    0.5
    """
    return _found_within(ranks, k) / len(ranks) if ranks else 0.0


def any_answer_recall(ranks: Sequence[int | None], k: int) -> float:
    """Tell whether a gold answer is in the top k.

    >>> any_answer_recall([None, 7], k=5), any_answer_recall([None, 7], k=10)
    (0.0, 1.0)
    """
    return float(_found_within(ranks, k) > 0)


def reciprocal_rank(ranks: Sequence[int | None]) -> float:
    """Return one over the rank of the first text with a gold answer; 0 if none has one. Its mean is MRR.

    >>> reciprocal_rank([4, 2, None])
    0.5
    """
    present = [rank for rank in ranks if rank is not None]
    return 1 / min(present) if present else 0.0
