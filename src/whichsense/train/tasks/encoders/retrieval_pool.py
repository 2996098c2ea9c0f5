"""How an encoder is chosen: how high dev questions rank their passage in the pool of the passages of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whichsense.train.tasks.encoders.reranker import Item
from whichsense.types import Passage

_HARD = 10  # passages without an answer that each question brings


def pooled(items: Sequence[Item]) -> dict[str, Passage]:
    """The passages of all questions, by id."""
    return {
        passage.id: passage
        for item in items
        for passage in (*item.good, *item.bad[:_HARD])
    }


def pool_metrics(
    items: Sequence[Item], pool: Mapping[str, Passage], scores: Any
) -> dict[str, float]:
    """Scores are questions × passages of the pool, in its order. The best passage with an answer counts."""
    places = {key: place for place, key in enumerate(pool)}
    ranks = []
    for item, row in zip(items, scores, strict=True):
        good = [places[passage.id] for passage in item.good]
        ranks.append(1 + int((row > row[good].max()).sum()))
    return {
        "pool_mrr": sum(1 / rank for rank in ranks) / len(ranks),
        "pool_at_1": sum(rank == 1 for rank in ranks) / len(ranks),
        "pool_at_20": sum(rank <= 20 for rank in ranks) / len(ranks),
    }
