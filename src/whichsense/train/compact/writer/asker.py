"""A writer learns to ask: for a passage it writes an answer that stands there, and a question.

When training is over it writes questions for passages of the lists. What the teacher answers otherwise than it was
meant, and what repeats a question that is kept for measuring, is thrown away; compact-encoder learns from the rest.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from whichsense.errors import BadConfig, BadInput
from whichsense.models.bert.running import best_device
from whichsense.models.compact.writer.net import WriterNet
from whichsense.models.compact.writer.prompts import LONGEST_ASKED, WAYS
from whichsense.train.compact.data.examples import Example
from whichsense.train.compact.data.lists import Lists, prepared
from whichsense.train.compact.data.pairs import Pairs
from whichsense.train.compact.data.questions import Data, copies
from whichsense.train.compact.data.synthetic import (
    SYNTHETIC_FILE,
    SyntheticQuestions,
    build_synthetic_lists,
    own_slots,
)
from whichsense.train.compact.encoder.teacher_net import load_teacher
from whichsense.train.compact.writer.generate import Making, made_questions
from whichsense.train.compact.writer.roundtrip_filter import teacher_agrees
from whichsense.train.compact.writer.writing import WRITER, Model, Writing, collated
from whichsense.train.loop.batches import Lazy
from whichsense.train.loop.optimizer import to_device

_MEASURED = 256  # in one batch


@dataclass(frozen=True, slots=True)
class Draw:
    """What a batch is made of."""

    batch: int = 512
    ways: dict[str, float] = field(
        default_factory=lambda: {"reading": 0.35, "open": 0.4, "exact": 0.25}
    )
    """Shares of the ways of asking: SQuAD's, open questions, rewrites; one that the lists lack is left out."""
    said: dict[str, float] = field(
        default_factory=lambda: {"reading": 0.4, "open": 0.55, "exact": 0.55}
    )
    """How much of a question its passage must say, by the rarity of its word pieces. Those who asked without a passage
    may have their answer in another one by accident."""


@dataclass(frozen=True, slots=True)
class Teacher:
    """Who must answer a question as it was meant."""

    model: str = ""
    """The model folder of compact-teacher; empty: nobody, and all are kept whose answers stand in their passages."""
    longest: int = 160
    """Tokens of a pair."""
    agreed: float = 0.6
    """How much its answer must share with the one that was meant: F1 of tokens."""
    relevance: float = -1.0
    """It must score the passage higher."""


@dataclass(frozen=True, slots=True)
class Options:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    lists: Lists = field(default_factory=Lists)
    teacher: Teacher = field(default_factory=Teacher)
    draw: Draw = field(default_factory=Draw)
    made: Making = field(default_factory=Making)


def make(options: Options) -> AskerTask:
    return AskerTask(options)


class AskerTask(Writing):
    """Chosen by the loss of a token of answers and questions that are not learnt from."""

    metric, higher_is_better = "asked", False

    def __init__(self, options: Options) -> None:
        self.options = options
        for name, ways in (("draw", options.draw.ways), ("made", options.made.ways)):
            if set(ways) - set(WAYS) or not sum(ways.values()) > 0:
                raise BadConfig(
                    f"{name}.ways are shares of {', '.join(WAYS)}, and not all are 0."
                )
        super().__init__(options.model)
        train, dev = prepared(options.data, options.lists, self.start.vocabulary)
        about = options.data, len(self.start.vocabulary), options.draw.said
        self.pairs, self.measured = Pairs(train, *about), Pairs(dev, *about)
        if not self.ways or not self.measured.every:
            raise BadInput(
                "No question to learn from, or none of data.dev, has a passage that says most of it."
            )

    @property
    def ways(self) -> list[str]:
        """Those that are learnt."""
        return [
            way for way in self.pairs.by_way if self.options.draw.ways.get(way, 0.0) > 0
        ]

    def batches(self, epoch: int, seed: int) -> Any:
        count = max(1, len(self.pairs.every) // self.options.draw.batch)
        return Lazy(
            range(count),
            lambda number: collated(
                self.drawn(random.Random(f"{seed}/{epoch}/{number}")), LONGEST_ASKED
            ),
        )

    def drawn(self, dice: random.Random) -> list[Example]:
        draw, by_way = self.options.draw, self.pairs.by_way
        ways = dice.choices(
            self.ways, [draw.ways[way] for way in self.ways], k=draw.batch
        )
        return [self.pairs.example(dice.choice(by_way[way])) for way in ways]

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, WriterNet)
        sums, every = np.zeros(2), self.measured.every
        for start in range(0, len(every), _MEASURED):
            some = [
                self.measured.example(pair) for pair in every[start : start + _MEASURED]
            ]
            batch = to_device(collated(some, LONGEST_ASKED), model.out_bias.device)
            sums += [float(one) for one in model.loss(batch)[1:]]
        return {"asked": float(sums[0] / sums[1])}

    def data(self) -> list[Path]:
        return self.options.data.paths()

    def finish(self, folder: Path) -> None:
        """The questions that it makes."""
        if (folder / SYNTHETIC_FILE).exists():
            return
        net = self.build()
        assert isinstance(net, WriterNet)
        net.load_state_dict(
            torch.load(folder / WRITER, map_location="cpu", weights_only=True)
        )
        made = made_questions(
            net.to(best_device()).eval(), self.pairs.pack, self.options.made, self.ways
        )
        self._kept(made).save(folder, self.pairs.pack)

    def _kept(self, made: SyntheticQuestions) -> SyntheticQuestions:
        """Without copies of what is kept for measuring, and without what nobody would answer like that."""
        vocabulary, teacher = self.start.vocabulary, self.options.teacher
        repeated = copies(made.texts(vocabulary), self.options.data)
        made = made.take(
            np.array([row for row in range(len(made)) if row not in repeated], np.int64)
        )
        lists = build_synthetic_lists(self.pairs.pack, made, vocabulary)
        slots = own_slots(lists, made)
        good = lists.holds[slots]
        if teacher.model:
            net = load_teacher(Path(teacher.model)).to(best_device())
            limits = {"agreed": teacher.agreed, "relevance": teacher.relevance}
            good = good & teacher_agrees(net, lists, slots, teacher.longest, **limits)
        return made.take(np.flatnonzero(good))
