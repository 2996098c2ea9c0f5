"""What asking is learnt from: questions of the lists with an answer, each beside the passage that supports it best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder.tokens import END
from whichsense.models.compact.writer.prompts import BAR, WAYS, Window, asking
from whichsense.train.compact.data.config import DataConfig
from whichsense.train.compact.data.conversion import REWRITES
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.writer.rewrite_examples import Example

_LONGEST_ANSWER = 14  # tokens
_RARITY_PASSAGES = 20_000  # by which the rarity of word pieces is counted
_OPEN, _READING = "nq_open", "squad/1"  # prefixes of datasets


@dataclass(frozen=True, slots=True)
class _AskedSpan:
    """A list's question, and an answer to it in one of the list's slots; tokens are counted as in spans."""

    way: str
    number: int
    slot: int
    first: int
    last: int


@dataclass(frozen=True)
class AskerExamples:
    """Builds examples of lists. `vocabulary`: the number of word pieces. `support`: by way of asking, how much of a
    question its passage must contain."""

    pack: Pack
    data: DataConfig
    vocabulary: int
    support: Mapping[str, float]

    @cached_property
    def spans(self) -> list[_AskedSpan]:
        spans: list[_AskedSpan] = []
        for number in range(len(self.pack)):
            spans += self._spans_of(number)
        return spans

    @cached_property
    def by_way(self) -> dict[str, list[_AskedSpan]]:
        """Without the ways in which no question is asked."""
        groups: dict[str, list[_AskedSpan]] = {way: [] for way in WAYS}
        for span in self.spans:
            groups[span.way].append(span)
        return {way: spans for way, spans in groups.items() if spans}

    def example(self, span: _AskedSpan) -> Example:
        """The passage is in the prompt; answer and question are to be written."""
        title, text = self.pack.passage(self.pack.passage_of(span.slot))
        first = span.first - len(title)
        end = span.last + 1 - len(title)
        window = Window(title, text, first, end) if first >= 0 else Window(title, text)
        answer = [*title, *text][span.first : span.last + 1]
        question = self.pack.questions[span.number].tolist()
        output = [*answer, BAR, *question, END]
        prompt = asking(WAYS[span.way], window)
        return Example(prompt, output, [1.0] * len(output))

    def _spans_of(self, number: int) -> list[_AskedSpan]:
        """One span for each answer in the passage with most support, if that is enough."""
        way = _way_of(self.pack.asked[number].source, self.data)
        support = {}
        for slot in self.pack.slot_range(number):
            if len(self.pack.spans[slot]):
                support[slot] = self._support(number, slot)
        if way is None or not support:
            return []
        best = max(support, key=support.__getitem__)
        # The answer is there by accident, if the passage is about something else.
        if support[best] < self.support.get(way, 0.0):
            return []
        spans = []
        answers = np.unique(self.pack.spans[best][:, 0])
        for answer in answers.tolist():
            first, last = self._best_place(best, answer)
            if last - first < _LONGEST_ANSWER:
                spans.append(_AskedSpan(way, number, best, first, last))
        return spans

    def _support(self, number: int, slot: int) -> float:
        """The share of a question's word pieces, weighted by rarity, that the passage contains."""
        row = self.pack.passage_of(slot)
        passage = np.concatenate([self.pack.titles[row], self.pack.texts[row]])
        pieces = np.unique(self.pack.questions[number])
        contained = pieces[np.isin(pieces, passage)]
        total = max(self._rarity[pieces].sum(), 1e-6)
        return float(self._rarity[contained].sum() / total)

    def _best_place(self, slot: int, answer: int) -> tuple[int, int]:
        """First and last token of an answer: in the text rather than the title, and the longest alias."""
        title = len(self.pack.titles[self.pack.passage_of(slot)])
        places = []
        for number, first, last in self.pack.spans[slot].tolist():
            if number == answer:
                places.append((first, last))

        def preference(place: tuple[int, int]) -> tuple[bool, int]:
            first, last = place
            return first >= title, last - first

        return max(places, key=preference)

    @cached_property
    def _rarity(self) -> NDArray[np.float64]:
        """The inverse document frequency of each word piece."""
        texts = self.pack.texts
        step = max(1, len(texts) // _RARITY_PASSAGES)
        rows = range(0, len(texts), step)
        pieces = np.concatenate([np.unique(texts[row]) for row in rows])
        counts = np.bincount(pieces.astype(np.int64), minlength=self.vocabulary)
        # One more than counted, so that an unseen piece is finite.
        ratio = len(rows) / (1 + counts)
        return np.asarray(np.log(ratio).clip(0))


def _way_of(source: str, data: DataConfig) -> str | None:
    """How the questions of a dataset are asked; None if it is not to be learnt.

    >>> data = DataConfig()
    >>> [_way_of(name, data) for name in ("squad/1.1", "ambignq/train", "rewrites of ambignq/train", "popqa/test")]
    ['reading', 'open', 'exact', None]
    """
    if source == REWRITES + data.train:
        return "exact"
    if source in (data.train, data.dev) or source.startswith(_OPEN):
        return "open"
    return "reading" if source.startswith(_READING) else None
