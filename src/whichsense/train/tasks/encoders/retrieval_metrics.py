"""How well passages are ranked: in the list of each question, or in the pool of the passages of all questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whichsense.datasets import Question
from whichsense.metrics.retrieval import (
    answer_ranks,
    answer_recall,
    any_answer_recall,
    reciprocal_rank,
)
from whichsense.train.tasks.encoders.passage_lists import PassageList
from whichsense.types import Passage

_HARD = 10  # passages without an answer that each question brings into the pool


def ranking_metrics(
    questions: Sequence[Question], orders: Sequence[Sequence[Passage]], keep: int
) -> dict[str, float]:
    """Gold answers among the first `keep` passages, any gold answer in the first, and the mean reciprocal rank."""
    all_ranks = []
    any_at_1 = []
    reciprocal = []
    for question, passages in zip(questions, orders, strict=True):
        ranks = answer_ranks(question.answers, passage_texts(passages))
        all_ranks += ranks
        any_at_1.append(any_answer_recall(ranks, 1))
        reciprocal.append(reciprocal_rank(ranks))
    return {
        f"answers_at_{keep}": answer_recall(all_ranks, keep),
        "any_at_1": sum(any_at_1) / len(questions),
        "mrr": sum(reciprocal) / len(questions),
    }


def passage_texts(passages: Sequence[Passage]) -> list[str]:
    """Titles and texts, as answers are looked for in them."""
    texts = []
    for passage in passages:
        texts.append(f"{passage.title} {passage.text}")
    return texts


def passage_pool(lists: Sequence[PassageList]) -> dict[str, Passage]:
    """The passages of all questions, by id."""
    pool = {}
    for one in lists:
        for passage in (*one.good, *one.bad[:_HARD]):
            pool[passage.id] = passage
    return pool


def pool_metrics(
    lists: Sequence[PassageList], pool: Mapping[str, Passage], scores: Any
) -> dict[str, float]:
    """`scores`: [questions, passages of the pool, in its order]. The best passage with an answer counts."""
    columns = {key: column for column, key in enumerate(pool)}
    reciprocal = []
    at_1 = []
    at_20 = []
    for one, row in zip(lists, scores, strict=True):
        good = [columns[passage.id] for passage in one.good]
        higher = int((row > row[good].max()).sum())
        rank = 1 + higher
        reciprocal.append(1 / rank)
        at_1.append(rank == 1)
        at_20.append(rank <= 20)
    count = len(reciprocal)
    return {
        "pool_mrr": sum(reciprocal) / count,
        "pool_at_1": sum(at_1) / count,
        "pool_at_20": sum(at_20) / count,
    }
