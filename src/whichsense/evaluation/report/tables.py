"""What statistics are made of: tables to print and bars to draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Cell = str | int | float | None
"""None is a cell without a number: the paper does not print it, or the data cannot tell."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as a paper would print it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart: what, how much."""

    title: str
    bars: tuple[tuple[str, float], ...]
    unit: str = "%"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Statistics:
    """All that is counted about a dataset."""

    name: str
    release: str
    """Which release the file is, in words: numbers of a part do not equal those of the whole."""
    tables: tuple[Table, ...]
    charts: tuple[Bars, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def mean(values: Iterable[float]) -> float:
    """The average, 0 of nothing."""
    kept = list(values)
    return sum(kept) / len(kept) if kept else 0.0


def percent(part: float, whole: float) -> float:
    """
    >>> percent(1, 8)
    12.5
    """
    return 100 * part / whole if whole else 0.0


def shares(counts: Sequence[int]) -> tuple[float, ...]:
    """Counts as percentages of their sum."""
    return tuple(percent(count, sum(counts)) for count in counts)
