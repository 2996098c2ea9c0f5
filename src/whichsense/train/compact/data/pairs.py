"""What asking is learnt from: questions of the lists with an answer, each beside the passage that says most of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder.tokens import END
from whichsense.models.compact.writer.prompts import BAR, WAYS, Window, asking
from whichsense.train.compact.data.examples import Example
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.questions import REWRITES, Data

_LONGEST_ANSWER = 14
_WEIGHED = 20_000  # passages by which the rarity of word pieces is counted
_OPEN, _READING = "nq_open", "squad/1"  # datasets, by the beginning of their names


@dataclass(frozen=True, slots=True)
class Pair:
    """A list's question, and an answer to it in one of the list's slots: its tokens, counted as spans are."""

    way: str
    number: int
    slot: int
    first: int
    last: int


@dataclass(frozen=True)
class Pairs:
    """Makes them of lists. `vocabulary`: how many word pieces there are. `said`: how much of a question its passage
    must say, for each way of asking."""

    pack: Pack
    data: Data
    vocabulary: int
    said: Mapping[str, float]

    @cached_property
    def every(self) -> list[Pair]:
        return [pair for number in range(len(self.pack)) for pair in self._of(number)]

    @cached_property
    def by_way(self) -> dict[str, list[Pair]]:
        """Only ways in which somebody asks."""
        found = {way: [pair for pair in self.every if pair.way == way] for way in WAYS}
        return {way: pairs for way, pairs in found.items() if pairs}

    def example(self, pair: Pair) -> Example:
        """The passage is told, answer and question are to be written."""
        row = int(self.pack.slots.values[pair.slot])
        title, text = self.pack.titles[row].tolist(), self.pack.texts[row].tolist()
        first, end = pair.first - len(title), pair.last + 1 - len(title)
        window = Window(title, text, first, end) if first >= 0 else Window(title, text)
        answer = [*title, *text][pair.first : pair.last + 1]
        output = [*answer, BAR, *self.pack.questions[pair.number].tolist(), END]
        return Example(asking(WAYS[pair.way], window), output, [1.0] * len(output))

    def _of(self, number: int) -> list[Pair]:
        """One for each answer in the passage that says most of the question, if that is enough."""
        asked = self.pack.asked[number]
        way = way_of(asked.source, self.data)
        slots = [
            slot for slot in self.pack.slots_of(number) if len(self.pack.spans[slot])
        ]
        if way is None or not slots:
            return []
        said = {slot: self._said(number, slot) for slot in slots}
        best = max(slots, key=said.__getitem__)
        if said[best] < self.said.get(way, 0.0):
            return []
        places = [
            self._place(best, answer)
            for answer in np.unique(self.pack.spans[best][:, 0]).tolist()
        ]
        return [
            Pair(way, number, best, first, last)
            for first, last in places
            if last - first < _LONGEST_ANSWER
        ]

    def _said(self, number: int, slot: int) -> float:
        """How much of a question stands in a passage, by the rarity of its word pieces."""
        row = self.pack.slots.values[slot]
        pieces = np.unique(self.pack.questions[number])
        there = np.isin(
            pieces, np.concatenate([self.pack.titles[row], self.pack.texts[row]])
        )
        return float(
            self._rarity[pieces[there]].sum() / max(self._rarity[pieces].sum(), 1e-6)
        )

    def _place(self, slot: int, answer: int) -> tuple[int, int]:
        """Where an answer stands: rather in the text than in the title, and rather in full."""
        title = len(self.pack.titles[int(self.pack.slots.values[slot])])
        own = [span[1:] for span in self.pack.spans[slot].tolist() if span[0] == answer]
        first, last = max(
            own, key=lambda place: (place[0] >= title, place[1] - place[0])
        )
        return first, last

    @cached_property
    def _rarity(self) -> NDArray[np.float64]:
        texts = self.pack.texts
        some = range(0, len(texts), max(1, len(texts) // _WEIGHED))
        pieces = np.concatenate([np.unique(texts[row]) for row in some]).astype(
            np.int64
        )
        found: NDArray[np.float64] = np.log(
            len(some) / (1 + np.bincount(pieces, minlength=self.vocabulary))
        ).clip(0)
        return found


def way_of(source: str, data: Data) -> str | None:
    """How the questions of a dataset are asked; None where nobody should learn it.

    >>> [way_of(name, Data()) for name in ("squad/1.1", "ambignq/train", "rewrites of ambignq/train", "popqa/test")]
    ['reading', 'open', 'exact', None]
    """
    if source == REWRITES + data.train:
        return "exact"
    if source in (data.train, data.dev) or source.startswith(_OPEN):
        return "open"
    return "reading" if source.startswith(_READING) else None
