"""Passages that several shards found, as one table: which of them may be among the best of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.index.shards.shard import Answer, ByMeaning, ByWords


@dataclass(frozen=True, slots=True)
class Found:
    """Passages of all shards, one place each: shard, row, key, and further columns of numbers."""

    shards: NDArray[np.int64]
    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    numbers: tuple[NDArray[Any], ...] = ()

    @classmethod
    def of(cls, answers: Mapping[int, ByWords | ByMeaning | None]) -> Found:
        shards = [np.empty(0, np.int64)]
        found = []
        for number, answer in answers.items():
            if answer is not None:
                shards.append(np.full(len(answer.rows), number))
                found.append(answer)
        columns = []
        for column in zip(*found, strict=True):
            columns.append(np.concatenate(column))
        # Where no shard answers, nothing was found.
        rows, keys, *numbers = columns or [np.empty(0, np.int64)] * 4
        return cls(np.concatenate(shards), rows, keys, tuple(numbers))

    def take(self, places: NDArray[np.intp] | slice) -> Found:
        numbers = tuple([column[places] for column in self.numbers])
        return Found(self.shards[places], self.rows[places], self.keys[places], numbers)


def head_by_words(answers: Mapping[int, Answer], k: int, slack: float) -> Found:
    """What may be among BM25's best k of all shards: those of the best k scores, and what is within `slack` of them."""
    found = Found.of({number: one.by_words for number, one in answers.items()})
    scores = found.numbers[0]
    order = np.lexsort((found.keys, -scores))
    if len(order) > k:
        lowest = scores[order[k - 1]] * (1 - slack)
        order = order[scores[order] >= lowest]
    return found.take(order)


def nearest(answers: Mapping[int, Answer], k: int) -> Found:
    from whichsense.index.dense.vectors import (
        nearest_of,  # loaded only where it is used
    )

    found = Found.of({number: one.by_meaning for number, one in answers.items()})
    rough, cosines = found.numbers[:2]
    return found.take(nearest_of(found.keys, rough, cosines, k))


def beside(union: Found, near: Found, best: NDArray[np.intp]) -> list[int]:
    """Places in `union`: BM25's best, then the other near passages, nearest first."""
    places: list[int] = best.tolist()
    listed = set(places)
    place_of = {key: place for place, key in enumerate(union.keys.tolist())}
    for key in near.keys.tolist():
        place = place_of.get(key)  # None where its shard is gone by now
        if place is not None and place not in listed:
            places.append(place)
    return places
