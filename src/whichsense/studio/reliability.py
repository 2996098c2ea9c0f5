"""Reliability: how far annotators agree beyond chance, with intervals over resampled items."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Weights = np.ndarray[Any, np.dtype[np.float64]]

Unit = Mapping[str, Hashable]
"""What each annotator said of an item."""
Statistic = Callable[["Weights"], float]
"""How often each item counts → a number; NaN where it is undefined."""
Likeness = Callable[[Any, Any], float]
_SAMPLES = 500
_SEED = 13
UNDEFINED = float("nan")


def mean_of(scores: Sequence[float]) -> Statistic:
    """The mean of a score of each item."""
    import numpy as np

    column = np.asarray(scores, dtype=np.float64)

    def statistic(weights: Weights) -> float:
        return float(weights @ column / weights.sum()) if weights.sum() else UNDEFINED

    return statistic


def cohen(units: Sequence[Unit]) -> Statistic:
    """Cohen's kappa: of every two annotators over the items that both have, then the mean by their number of items."""
    import numpy as np

    shared: dict[tuple[str, str], list[tuple[int, Hashable, Hashable]]] = {}
    for number, unit in enumerate(units):
        for one, other in combinations(sorted(unit), 2):
            row = (number, unit[one], unit[other])
            shared.setdefault((one, other), []).append(row)
    numbers = _numbers(units)
    pairs = [
        np.array([(n, numbers[a], numbers[b]) for n, a, b in rows]) for rows in shared.values()
    ]

    def statistic(weights: Weights) -> float:
        total = together = 0.0
        for rows in pairs:
            own = weights[rows[:, 0]]
            size = own.sum()
            if not size:
                continue
            first, second = (
                np.bincount(rows[:, side], own, len(numbers)) / size for side in (1, 2)
            )
            chance = first @ second
            if chance < 1 - 1e-12:
                agreed = own @ (rows[:, 1] == rows[:, 2]) / size
                together += size * (agreed - chance) / (1 - chance)
                total += size
        return float(together / total) if total else UNDEFINED

    return statistic


def fleiss(units: Sequence[Unit]) -> Statistic:
    """Fleiss' kappa over items that all have the same number of annotations."""
    import numpy as np

    numbers = _numbers(units)
    counts = np.zeros((len(units), len(numbers)))
    for row, unit in enumerate(units):
        for label in unit.values():
            counts[row, numbers[label]] += 1
    raters = counts.sum(axis=1)
    equal = (counts * (counts - 1)).sum(axis=1) / np.maximum(raters * (raters - 1), 1)

    def statistic(weights: Weights) -> float:
        shares = weights @ counts
        if not shares.sum():
            return UNDEFINED
        shares = shares / shares.sum()
        chance = shares @ shares
        if chance > 1 - 1e-12:
            return UNDEFINED
        return float((weights @ equal / weights.sum() - chance) / (1 - chance))

    return statistic


def krippendorff(units: Sequence[Unit], likeness: Likeness | None = None) -> Statistic:
    """Krippendorff's alpha; `likeness`, from 0 to 1, is of two different labels that share an element, such as MASI of
    two sets. Labels without a shared element are quite unlike.
    """
    import numpy as np

    numbers = _numbers(units)
    alike = _alike(list(numbers), likeness)
    places, labels, within = [], [], np.zeros(len(units))
    for place, unit in enumerate(units):
        own = [numbers[label] for label in unit.values()]
        if len(own) < 2:
            continue  # nothing to compare it with
        places += [place] * len(own)
        labels += own
        unlike = (
            0.0 if a == b else 1 - alike.get((a, b), 0.0) for a, b in combinations(sorted(own), 2)
        )
        within[place] = 2 * sum(unlike) / (len(own) - 1)
    item, value = np.array(places, dtype=int), np.array(labels, dtype=int)
    left, right = (np.array([key[side] for key in alike], dtype=int) for side in (0, 1))
    similar = np.array(list(alike.values()))

    def statistic(weights: Weights) -> float:
        counts = np.bincount(value, weights[item], minlength=len(numbers))
        size = counts.sum()
        if size < 2:
            return UNDEFINED
        same = counts @ counts + 2 * (counts[left] * counts[right]) @ similar
        expected = (size**2 - same) / (size - 1)
        if expected < 1e-9:
            return UNDEFINED
        return float(1 - weights @ within / expected)

    return statistic


def _numbers(units: Sequence[Unit]) -> dict[Hashable, int]:
    """A number for each distinct label."""
    labels = dict.fromkeys(label for unit in units for label in unit.values())
    return {label: number for number, label in enumerate(labels)}


def _alike(labels: Sequence[Any], likeness: Likeness | None) -> dict[tuple[int, int], float]:
    """How alike two labels are, for those that share an element, the lower number first."""
    if likeness is None:
        return {}
    holders: defaultdict[Any, list[int]] = defaultdict(list)
    for number, label in enumerate(labels):
        for element in label:
            holders[element].append(number)
    alike = {}
    for own in holders.values():
        for one, other in combinations(own, 2):
            alike[one, other] = likeness(labels[one], labels[other])
    return alike


def interval(statistic: Statistic, items: int) -> tuple[float, float] | None:
    """The 95% interval over resampled items; None where hardly a resample has a value."""
    import numpy as np

    from whichsense.lab.metrics.statistics import quantile

    rng = np.random.default_rng(_SEED)
    values = []
    for _ in range(_SAMPLES if items > 1 else 0):
        drawn = rng.integers(0, items, size=items)
        value = statistic(np.bincount(drawn, minlength=items).astype(np.float64))
        if not math.isnan(value):
            values.append(value)
    if len(values) < _SAMPLES / 2:
        return None
    table = np.array(values)
    return quantile(table, 0.025), quantile(table, 0.975)


def most_common_size(units: Sequence[Unit]) -> list[Unit]:
    """The items with the number of annotations that most have, at least two."""
    sizes = Counter(len(unit) for unit in units if len(unit) > 1)
    if not sizes:
        return []
    size = max(sizes, key=lambda one: (sizes[one], one))
    return [unit for unit in units if len(unit) == size]
