"""The compact model's writer learns to rewrite, to restore and to answer; the encoder, whose words it shares, stays.

Two recipes: compact-writer, mostly restoring, of which there is no end; then compact, mostly rewrites, of which there
are few: people's, and in files of `data.more` such as a larger model wrote for other questions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from whichsense.errors import BadConfig, BadInput
from whichsense.metrics.ambignq import question_scores
from whichsense.models.compact.encoder.tokens import END, joined
from whichsense.models.compact.writer.net import WriterBatch, WriterNet
from whichsense.models.compact.writer.prompts import LONGEST_OUTPUT, REWRITE
from whichsense.train.compact.data.examples import Example, Examples
from whichsense.train.compact.data.lists import Lists, prepared
from whichsense.train.compact.data.questions import Data
from whichsense.train.compact.encoder.list_task import longest_prefix
from whichsense.train.compact.writer.writing import Model, Writing, collated
from whichsense.train.loop.batches import Lazy
from whichsense.train.loop.optimizer import to_device

KINDS = ("rewrites", "questions", "sentences", "answers")
_TRIES = 50
_MEASURED = 256  # in one batch


@dataclass(frozen=True, slots=True)
class Draw:
    """What a batch is made of."""

    batch: int = 512
    kinds: dict[str, float] = field(
        default_factory=lambda: {"rewrites": 0.75, "answers": 0.15, "questions": 0.1}
    )
    """Shares of rewrites, of questions and sentences to be restored, and of answers."""
    shares: dict[str, float] = field(default_factory=dict)
    """How many of the rewrites come from where, by the beginning of a dataset's or a file's name; 1 where nothing is
    said."""
    inserted: float = 1.5
    """What an inserted token counts beyond the others."""


@dataclass(frozen=True, slots=True)
class Options:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    lists: Lists = field(default_factory=Lists)
    draw: Draw = field(default_factory=Draw)


def make(options: Options) -> WriterTask:
    return WriterTask(options)


class WriterTask(Writing):
    """Chosen by the EDIT-F1 of the likeliest rewrites of questions that are not learnt from: their loss is lowest long
    before they are best."""

    metric, higher_is_better = "edit_f1", True

    def __init__(self, options: Options) -> None:
        self.options = options
        odd = set(options.draw.kinds) - set(KINDS)
        if odd or not sum(options.draw.kinds.values()) > 0:
            raise BadConfig(
                f"draw.kinds are shares of {', '.join(KINDS)}, and not all are 0."
            )
        super().__init__(options.model)
        train, dev = prepared(options.data, options.lists, self.start.vocabulary)
        self.examples = Examples(train, self.tokenizer, options.draw.inserted)
        self.measured = Examples(dev, self.tokenizer)
        if not self.examples.readings or not self.measured.readings:
            raise BadInput(
                "No question to learn from, or none of data.dev, has a rewrite with an answer."
            )

    @cached_property
    def _shares(self) -> list[float]:
        """For each reading, how much of the rewrites it and those before it are."""
        shares, asked = self.options.draw.shares, self.examples.pack.asked
        keys = [
            longest_prefix(asked[one.number].source, shares)
            for one in self.examples.readings
        ]
        counts = {key: keys.count(key) for key in set(keys)}
        return list(accumulate(shares.get(key, 1.0) / counts[key] for key in keys))

    def batches(self, epoch: int, seed: int) -> Any:
        count = max(1, len(self.examples.pack) // self.options.draw.batch)
        return Lazy(
            range(count),
            lambda number: collated(
                self.drawn(random.Random(f"{seed}/{epoch}/{number}"))
            ),
        )

    def drawn(self, dice: random.Random) -> list[Example]:
        kinds, size = self.options.draw.kinds, self.options.draw.batch
        found: list[Example] = []
        for _ in range(_TRIES * size):
            one = self._one(dice.choices(list(kinds), list(kinds.values()))[0], dice)
            if one is not None:
                found.append(one)
            if len(found) == size:
                return found
        raise BadInput("The lists hold too little that the writer could learn from.")

    def _one(self, kind: str, dice: random.Random) -> Example | None:
        if kind == "rewrites":
            return self.examples.rewritten(
                dice.choices(self.examples.readings, cum_weights=self._shares)[0], dice
            )
        if kind == "sentences":
            return self.examples.sentence(
                dice.randrange(len(self.examples.pack.texts)), dice
            )
        number = dice.randrange(len(self.examples.pack))
        return (
            self.examples.restored(number, dice)
            if kind == "questions"
            else self.examples.answered(number, dice)
        )

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Of rewrites: EDIT-F1 and BLEU-4 of the likeliest tokens one by one, and the loss of a token."""
        assert isinstance(model, WriterNet)
        device, readings = model.out_bias.device, self.measured.readings
        made = [self.measured.rewritten(reading, None) for reading in readings]
        pairs = [
            (reading, one)
            for reading, one in zip(readings, made, strict=True)
            if one is not None
        ]
        scores: list[tuple[float, ...]] = []
        sums = np.zeros(2)
        for start in range(0, len(pairs), _MEASURED):
            some = pairs[start : start + _MEASURED]
            batch = to_device(collated([one for _, one in some]), device)
            sums += [float(one) for one in model.loss(batch)[1:]]
            for (reading, _), tokens in zip(some, likeliest(model, batch), strict=True):
                text = joined([self.start.vocabulary[token] for token in tokens])
                asked, wanted = (
                    self.measured.pack.asked[reading.number].text,
                    "|".join(reading.rewriting.rewrites),
                )
                scores.append(question_scores(asked, wanted, text))
        *_, order, edits = np.mean(scores, axis=0).tolist()
        return {
            "edit_f1": edits,
            "bleu4": order,
            "rewrites": float(sums[0] / max(sums[1], 1)),
        }

    def data(self) -> list[Path]:
        return self.options.data.paths()

    def finish(self, folder: Path) -> None:
        """Nothing is left to do."""


@torch.inference_mode()
def likeliest(model: WriterNet, batch: WriterBatch) -> list[list[int]]:
    """What is written where the likeliest token is taken each time, without its end."""
    written = torch.zeros_like(batch.written)
    written[:, 0] = REWRITE
    for place in range(LONGEST_OUTPUT):
        scores = model.scores(model(batch._replace(written=written))[:, place])
        scores[:, :END] = float("-inf")
        found = scores.argmax(-1)
        if place + 1 < LONGEST_OUTPUT:
            written[:, place + 1] = found
    rows = written[:, 1:].tolist()
    return [row[: row.index(END)] if END in row else row for row in rows]
