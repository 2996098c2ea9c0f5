"""The parts of a dataset's statistics: tables to print and bars to draw."""

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
    """What is counted in a dataset."""

    name: str
    release: str
    """Which release the file is: the numbers of a part differ from those of the whole."""
    tables: tuple[Table, ...]
    charts: tuple[Bars, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def mean(values: Iterable[float]) -> float:
    """The average; 0 where there are no values."""
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0


def percent(part: float, whole: float) -> float:
    """
    >>> percent(1, 8)
    12.5
    """
    return 100 * part / whole if whole else 0.0


def shares(counts: Sequence[int]) -> tuple[float, ...]:
    """Counts as percentages of their sum."""
    return tuple(percent(count, sum(counts)) for count in counts)


def format_cell(value: Cell) -> str:
    """A cell as people read it.

    >>> [format_cell(value) for value in (1003, 12.5, 0.8312, None, "dev")]
    ['1,003', '12.5', '0.83', '–', 'dev']
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) < 1:
        return f"{value:,.2f}"
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}"
