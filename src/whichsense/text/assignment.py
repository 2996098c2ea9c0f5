"""The best one-to-one assignment (Hungarian algorithm), for the small tables of options and answers."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf


def best_assignment(scores: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """(row, column) pairs whose scores have the largest sum; each row and each column at most once.

    >>> best_assignment([[0.25, 1.0], [1.0, 1.0]])
    [(0, 1), (1, 0)]
    """
    if not scores or not scores[0]:
        return []
    rows, columns = len(scores), len(scores[0])
    if rows > columns:
        transposed = list(zip(*scores, strict=True))
        swapped = best_assignment(transposed)
        return sorted((row, column) for column, row in swapped)
    # Shortest augmenting paths with potentials. Rows and columns count from 1: a path starts at column 0.
    row_potentials = [0.0] * (rows + 1)
    column_potentials = [0.0] * (columns + 1)
    row_at = [0] * (columns + 1)  # the row that a column is assigned to; 0 for none
    for row in range(1, rows + 1):
        row_at[0] = row
        column, previous = _shortest_path(
            scores, row_potentials, column_potentials, row_at
        )
        while column:
            row_at[column] = row_at[previous[column]]
            column = previous[column]
    pairs = []
    for column in range(1, columns + 1):
        if row_at[column]:
            pairs.append((row_at[column] - 1, column - 1))
    return sorted(pairs)


def _shortest_path(
    scores: Sequence[Sequence[float]],
    row_potentials: list[float],
    column_potentials: list[float],
    row_at: list[int],
) -> tuple[int, list[int]]:
    """The nearest free column from column 0, and for each column the previous one on the path.

    Updates the potentials.
    """
    columns = len(column_potentials)
    slack = [inf] * columns
    previous = [0] * columns
    free = set(range(1, columns))
    visited = [0]
    column = 0
    while row := row_at[column]:
        for other in free:
            cost = -scores[row - 1][other - 1] - row_potentials[row]
            cost -= column_potentials[other]
            if cost < slack[other]:
                slack[other] = cost
                previous[other] = column
        column = min(free, key=slack.__getitem__)
        step = slack[column]
        for other in visited:
            row_potentials[row_at[other]] += step
            column_potentials[other] -= step
        for other in free:
            slack[other] -= step
        free.discard(column)
        visited.append(column)
    return column, previous


def best_total(scores: Sequence[Sequence[float]]) -> float:
    """The sum of the best assignment's scores.

    >>> best_total([[0.5, 0.2, 0.1]])
    0.5
    """
    chosen = []
    for row, column in best_assignment(scores):
        chosen.append(scores[row][column])
    return _pairwise_sum(chosen)


def _pairwise_sum(values: Sequence[float]) -> float:
    """The sum in the order in which numpy adds up to 128 numbers, so that the last bit agrees, too.

    >>> _pairwise_sum([0.1] * 3), _pairwise_sum([0.1] * 10), sum([0.1] * 10)
    (0.30000000000000004, 1.0, 0.9999999999999999)
    """
    whole = len(values) // 8 * 8
    if not whole:
        return sum(values)
    # eight running sums, one for each position modulo 8
    a, b, c, d, e, f, g, h = (sum(values[i:whole:8]) for i in range(8))
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    return sum(values[whole:], total)
