"""Joining the lexical and the dense ranking into one."""

from __future__ import annotations

from collections.abc import Sequence

Ranked = Sequence[tuple[int, float]]

_RANK_OFFSET = 60


def fuse(lexical: Ranked, dense: Ranked) -> list[tuple[int, float]]:
    """Reciprocal rank fusion: a row counts by how high it stands in each ranking.

    >>> [row for row, _ in fuse([(1, 9.0), (2, 8.0)], [(2, 0.9), (3, 0.8)])]
    [2, 1, 3]
    """
    scores: dict[int, float] = {}
    for ranking in (lexical, dense):
        for rank, (row, _) in enumerate(ranking):
            scores[row] = scores.get(row, 0.0) + 1 / (_RANK_OFFSET + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
