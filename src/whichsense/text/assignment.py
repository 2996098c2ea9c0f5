"""The best one-to-one assignment (Hungarian algorithm), for the small tables of options and answers."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf


def best_assignment(scores: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """(row, column) pairs whose scores add up to the most; each row and each column at most once.

    >>> best_assignment([[0.25, 1.0], [1.0, 1.0]])
    [(0, 1), (1, 0)]
    """
    if not scores or not scores[0]:
        return []
    if len(scores) > len(scores[0]):
        return sorted(
            (row, column)
            for column, row in best_assignment(list(zip(*scores, strict=True)))
        )
    rows, columns = len(scores), len(scores[0])
    # Shortest augmenting paths with potentials. Rows and columns count from 1: column 0 is where a path starts.
    of_row, of_column, row_at = (
        [0.0] * (rows + 1),
        [0.0] * (columns + 1),
        [0] * (columns + 1),
    )
    for row in range(1, rows + 1):
        row_at[0] = row
        column, before = _shortest_path(scores, of_row, of_column, row_at)
        while column:
            row_at[column] = row_at[before[column]]
            column = before[column]
    return sorted(
        (row_at[column] - 1, column - 1)
        for column in range(1, columns + 1)
        if row_at[column]
    )


def _shortest_path(
    scores: Sequence[Sequence[float]],
    of_row: list[float],
    of_column: list[float],
    row_at: list[int],
) -> tuple[int, list[int]]:
    """The nearest free column from column 0, and for each column the one before it on the way."""
    columns = len(of_column)
    column, slack, before, free = (
        0,
        [inf] * columns,
        [0] * columns,
        set(range(1, columns)),
    )
    done = [0]
    while row := row_at[column]:
        for other in free:
            cost = -scores[row - 1][other - 1] - of_row[row] - of_column[other]
            if cost < slack[other]:
                slack[other], before[other] = cost, column
        column = min(free, key=slack.__getitem__)
        step = slack[column]
        for other in done:
            of_row[row_at[other]] += step
            of_column[other] -= step
        for other in free:
            slack[other] -= step
        free.discard(column)
        done.append(column)
    return column, before


def best_total(scores: Sequence[Sequence[float]]) -> float:
    """The sum of the best assignment's scores.

    >>> best_total([[0.5, 0.2, 0.1]])
    0.5
    """
    return paired_sum([scores[row][column] for row, column in best_assignment(scores)])


def paired_sum(values: Sequence[float]) -> float:
    """The sum in the order in which numpy adds up to 128 numbers, so that the last bit agrees too.

    >>> paired_sum([0.1] * 3), paired_sum([0.1] * 10), sum([0.1] * 10)
    (0.30000000000000004, 1.0, 0.9999999999999999)
    """
    whole = len(values) // 8 * 8
    if not whole:
        return sum(values)
    a, b, c, d, e, f, g, h = (sum(values[i:whole:8]) for i in range(8))
    return sum(values[whole:], ((a + b) + (c + d)) + ((e + f) + (g + h)))
