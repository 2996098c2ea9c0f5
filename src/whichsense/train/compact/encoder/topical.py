"""The compact model's encoder learns on from topics whose questions have all their answers told, beside other lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from whichsense.errors import BadConfig
from whichsense.train.compact.data.batch import Scores
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.topics import lists_of, parted
from whichsense.train.compact.encoder.int8 import Int8Task
from whichsense.train.compact.encoder.int8 import Options as Int8Options


@dataclass(frozen=True, slots=True)
class TopicLists:
    """A recipe's `[topics]`."""

    share: float = 1 / 3
    """Of the lists that are drawn."""
    thinned: float = 0.3
    """How often half of the passages that answer are left out: of several answers one may be left, or none."""


@dataclass(frozen=True, slots=True)
class Options(Int8Options):
    topics: TopicLists = field(default_factory=TopicLists)


def make(options: Options) -> TopicTask:
    return TopicTask(options)


class TopicTask(Int8Task):
    """Chosen by how often the best string of a list is a gold answer."""

    def __init__(self, options: Options) -> None:
        self.mixing = options.topics
        if not 0 < self.mixing.share < 1 or not 0 <= self.mixing.thinned <= 1:
            raise BadConfig(
                "topics.share is more than 0 and less than 1; topics.thinned is a share, too."
            )
        if not options.data.topics:
            raise BadConfig(
                "data.topics is empty: give a folder with topics, or 'topics', which ships with the recipes."
            )
        super().__init__(options)
        self.others = self.train
        self.train = Pack.joined([self.others, self._lists()])

    def _lists(self) -> Pack:
        learnt, _ = parted(self.options.data)
        with TemporaryDirectory() as folder:
            return lists_of(learnt.corpora(Path(folder)), self.vocabulary)

    @property
    def groups(self) -> list[tuple[int, float]]:
        share = self.mixing.share
        before = [(count, own * (1 - share)) for count, own in super().groups]
        return [*before, (len(self.train) - len(self.others), share)]

    def said_of(self, pack: Pack) -> Scores:
        """Of topics no teacher is asked: their answers are complete."""
        found = super().said_of(self.others)
        slots = len(pack.slots.values) - len(self.others.slots.values)
        relevance, places, chances = (
            np.concatenate([part, np.zeros((slots, *part.shape[1:]), part.dtype)])
            for part in found[:3]
        )
        unsaid = np.full(len(pack) - len(self.others), -1, np.float32)
        ambiguous = (
            None
            if found.ambiguous is None
            else np.concatenate([found.ambiguous, unsaid])
        )
        return Scores(relevance, places, chances, ambiguous)

    def slots(self, number: int, luck: np.random.Generator) -> list[int]:
        found = super().slots(number, luck)
        if number < len(self.others) or luck.random() >= self.mixing.thinned:
            return found
        return [
            slot
            for slot in found
            if not len(self.train.spans[slot]) or luck.random() < 0.5
        ] or found

    def data(self) -> list[Path]:
        return [*super().data(), *self.options.data.topic_files]
