"""The compact model's decoder learns to put back what was taken out of sentences; its encoder stays as it is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from whichsense.errors import BadInput
from whichsense.models.compact.inputs import ANSWER
from whichsense.models.compact.net import CompactNet
from whichsense.models.compact.tokens import END
from whichsense.train.batches import Lazy
from whichsense.train.compact import losses
from whichsense.train.compact.batch import Pairs, Rows, Writing, padded_pairs, pair_ids, placed, written_rows
from whichsense.train.compact.cloze import Cloze, Clozes
from whichsense.train.compact.lists import Lists
from whichsense.train.compact.questions import Data
from whichsense.train.compact.student import Model, Student
from whichsense.train.compact.student import Options as StudentOptions
from whichsense.train.optimizer import to_device

_TRIES = 200
_ANSWERS = 0.25  # the share of sequences that write the answer instead of the edit
_ANSWER = 0.3  # how much they count


@dataclass(frozen=True, slots=True)
class Sentences:
    """A recipe's `[sentences]`."""

    batch: int = 192
    measured: int = 512


@dataclass(frozen=True, slots=True)
class Options:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    lists: Lists = field(default_factory=Lists)
    sentences: Sentences = field(default_factory=Sentences)


class SentenceBatch(NamedTuple):
    """A pair for each sentence, the tokens of its answer, and what is to be written of it: edits, and answers."""

    pairs: Pairs
    marks: Tensor
    edits: Rows
    answers: Rows | None


def make(options: Options) -> SentencesTask:
    return SentencesTask(options)


class SentencesTask(Student):
    """Chosen by the loss on sentences that are not among those it learns from."""

    metric, higher_is_better = "edits", False

    def __init__(self, options: Options) -> None:
        super().__init__(StudentOptions(model=options.model, data=options.data, lists=options.lists))
        self.sentences = options.sentences
        self.clozes = Clozes.over(self.train.texts.values, self.vocabulary)

    def build(self) -> nn.Module:
        net = super().build()
        for name, parameter in net.named_parameters():
            parameter.requires_grad_(name.startswith("decoder.") and not name.endswith(".scale"))
        return net

    def batches(self, epoch: int, seed: int) -> Any:
        size = self.sentences.batch
        count = max(1, len(self.train.texts) // size)
        return Lazy(range(count), lambda number: self.collated(f"{seed}/{epoch}/{number}", size))

    def collated(self, luck: str, size: int) -> SentenceBatch:
        dice = random.Random(luck)
        found: list[tuple[int, Cloze]] = []
        for _ in range(_TRIES * size):
            row = dice.randrange(len(self.train.texts))
            made = self.clozes.one(self.train.texts[row].tolist(), dice)
            if made is not None:
                found.append((row, made))
            if len(found) == size:
                break
        if not found:
            raise BadInput("No passage of the lists has a sentence to learn from.")
        return self._batch(found)

    def _batch(self, found: Sequence[tuple[int, Cloze]]) -> SentenceBatch:
        longest = self.options.model.longest
        texts, titles = self.train.texts, self.train.titles
        made = [pair_ids(one.question, titles[row].tolist(), texts[row].tolist(), longest) for row, one in found]
        heads = np.array([(len(one.question) + 2, len(titles[row])) for row, one in found])
        marks = np.zeros((len(found), longest), bool)
        for number, (_, one) in enumerate(found):
            first, last = placed(np.array([one.first, one.last]) + heads[number, 1], *heads[number])
            marks[number, first : last + 1] = True
        cut = len(found) - int(len(found) * _ANSWERS)
        edits = [Writing(one.prefix, one.output, number) for number, (_, one) in enumerate(found[:cut])]
        answers = [
            Writing([ANSWER, *one.question, END], [*one.answer, END], number)
            for number, (_, one) in enumerate(found[cut:], cut)
        ]
        places = self.shape.decoder_positions
        rows = written_rows(edits, places)
        assert rows is not None
        return SentenceBatch(
            padded_pairs(made, heads, longest), torch.from_numpy(marks), rows, written_rows(answers, places)
        )

    def loss(self, model: nn.Module, batch: SentenceBatch) -> tuple[Tensor, dict[str, float | Tensor]]:
        assert isinstance(model, CompactNet)
        model.encoder.eval()
        with torch.no_grad():
            early = model.encoder.early(*batch.pairs[:3])
            states = model.encoder.late(early, batch.pairs.mask)
        seen = losses.of_pairs(states, batch.pairs, batch.marks, batch.edits.owner)
        parts: dict[str, float | Tensor] = {}
        total = parts["edits"] = losses.written(model, seen, batch.edits)
        if batch.answers is not None:
            seen = losses.of_pairs(states, batch.pairs, torch.zeros_like(batch.marks), batch.answers.owner)
            parts["answers"] = losses.written(model, seen, batch.answers)
            total = total + _ANSWER * parts["answers"]
        return total, {name: part.detach() if isinstance(part, Tensor) else part for name, part in parts.items()}

    @cached_property
    def _measured(self) -> list[SentenceBatch]:
        """Other sentences, though of the same passages."""
        size = self.sentences.batch
        return [self.collated(f"measured/{number}", size) for number in range(max(1, self.sentences.measured // size))]

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        device = next(model.parameters()).device
        found = [self.loss(model, to_device(batch, device))[1] for batch in self._measured]
        return {name: float(np.mean([float(one[name]) for one in found])) for name in found[0]}
