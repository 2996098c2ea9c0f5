"""Task compact-writer: the writer learns to rewrite, to restore and to answer; the encoder, whose words it shares, is
not changed.

Two recipes: compact-writer, mostly restoring, of which there is no end; then compact, mostly rewrites, of which there
are few.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch

from whichsense.errors import BadConfig, BadInput
from whichsense.metrics.ambignq import question_scores
from whichsense.models.compact.encoder.tokens import END, joined
from whichsense.models.compact.writer.net import WriterBatch, WriterNet
from whichsense.models.compact.writer.prompts import LONGEST_OUTPUT, REWRITE
from whichsense.train.compact.data.config import DataConfig, ListConfig
from whichsense.train.compact.data.lists import load_lists
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.encoder.list_task import longest_prefix
from whichsense.train.compact.writer.base_task import (
    BaseWriterTask,
    WriterModel,
    collate,
)
from whichsense.train.compact.writer.rewrite_examples import (
    Example,
    ListReading,
    RewriteExamples,
)
from whichsense.train.loop.batches import Lazy
from whichsense.train.loop.optimizer import to_device
from whichsense.train.loop.task import TaskSpec

_KINDS = ("rewrites", "questions", "sentences", "answers")
_TRIES = 50  # for each example of a batch: not every list gives one
_EVALUATION_BATCH = 256


@dataclass(frozen=True, slots=True)
class _WriterDraw:
    """A recipe's `[draw]`: what a batch holds."""

    batch: int = 512
    kinds: dict[str, float] = field(
        default_factory=lambda: {"rewrites": 0.75, "answers": 0.15, "questions": 0.1}
    )
    """Shares of rewrites, of questions and sentences to be restored, and of answers."""
    shares: dict[str, float] = field(default_factory=dict)
    """Shares of the rewrites by a prefix of a dataset's or a file's name; 1 for all others."""
    inserted: float = 1.5
    """The weight of an inserted token beyond the others."""


@dataclass(frozen=True, slots=True)
class WriterOptions:
    model: WriterModel = field(default_factory=WriterModel)
    data: DataConfig = field(default_factory=DataConfig)
    lists: ListConfig = field(default_factory=ListConfig)
    draw: _WriterDraw = field(default_factory=_WriterDraw)


class WriterTask(BaseWriterTask):
    """The best model has the best EDIT-F1 of the likeliest rewrites of `data.dev`.

    Their loss is lowest long before they are best.
    """

    metric = "edit_f1"
    higher_is_better = True

    def __init__(self, options: WriterOptions) -> None:
        self.options = options
        unknown = set(options.draw.kinds) - set(_KINDS)
        if unknown or not sum(options.draw.kinds.values()) > 0:
            raise BadConfig(
                f"draw.kinds are shares of {', '.join(_KINDS)}, and not all are 0."
            )
        super().__init__(options.model)
        train, dev = self.load_lists()
        self.examples = RewriteExamples(train, self.tokenizer, options.draw.inserted)
        self.dev_examples = RewriteExamples(dev, self.tokenizer)
        if not self.examples.readings or not self.dev_examples.readings:
            raise BadInput(
                "No question to learn from, or none of data.dev, has a rewrite with an answer."
            )

    def load_lists(self) -> tuple[Pack, Pack]:
        """The lists whose rewrites are learnt, and those to evaluate on."""
        options = self.options
        return load_lists(options.data, options.lists, self.start.vocabulary)

    @cached_property
    def cumulative_shares(self) -> list[float]:
        """For each reading, the share of rewrites that it and the readings before it have."""
        shares = self.options.draw.shares
        asked = self.examples.pack.asked
        keys = []
        for reading in self.examples.readings:
            keys.append(longest_prefix(asked[reading.number].source, shares))
        counts = Counter(keys)
        # The share of a key is divided among its readings.
        each = [shares.get(key, 1.0) / counts[key] for key in keys]
        return list(accumulate(each))

    def batches(self, epoch: int, seed: int) -> Any:
        # As many batches as would hold an example of every list.
        size = self.options.draw.batch
        count = max(1, len(self.examples.pack) // size)

        def build_batch(number: int) -> WriterBatch:
            rng = random.Random(f"{seed}/{epoch}/{number}")
            return collate(self.draw_examples(rng))

        return Lazy(range(count), build_batch)

    def draw_examples(self, rng: random.Random) -> list[Example]:
        """The examples of a batch."""
        shares = self.options.draw.kinds
        size = self.options.draw.batch
        kinds = list(shares)
        weights = list(shares.values())
        examples: list[Example] = []
        for _ in range(_TRIES * size):
            kind = rng.choices(kinds, weights)[0]
            example = self._draw_example(kind, rng)
            if example is not None:
                examples.append(example)
            if len(examples) == size:
                return examples
        raise BadInput("The lists hold too little that the writer could learn from.")

    def _draw_example(self, kind: str, rng: random.Random) -> Example | None:
        examples = self.examples
        if kind == "rewrites":
            weights = self.cumulative_shares
            reading = rng.choices(examples.readings, cum_weights=weights)[0]
            return examples.rewrite(reading, rng)
        if kind == "sentences":
            row = rng.randrange(len(examples.pack.texts))
            return examples.restored_sentence(row, rng)
        number = rng.randrange(len(examples.pack))
        if kind == "questions":
            return examples.restored_question(number, rng)
        return examples.answer(number, rng)

    def evaluate(self, model: WriterNet) -> dict[str, float]:
        """EDIT-F1 and BLEU-4 of greedily decoded rewrites, and the loss of a token of the gold ones."""
        pairs = []
        for reading in self.dev_examples.readings:
            example = self.dev_examples.rewrite(reading, None)
            # A rewrite without any word gives no example.
            if example is not None:
                pairs.append((reading, example))
        scores: list[tuple[float, ...]] = []
        sums = np.zeros(2)  # loss, tokens
        for start in range(0, len(pairs), _EVALUATION_BATCH):
            part = pairs[start : start + _EVALUATION_BATCH]
            examples = [example for _, example in part]
            batch = to_device(collate(examples), model.out_bias.device)
            _, loss, count = model.loss(batch)
            sums += [float(loss), float(count)]
            outputs = _greedy(model, batch)
            for (reading, _), tokens in zip(part, outputs, strict=True):
                scores.append(self._score_rewrite(reading, tokens))
        *_, bleu4, edit_f1 = np.mean(scores, axis=0).tolist()
        loss_of_token = float(sums[0] / max(sums[1], 1))
        return {"edit_f1": edit_f1, "bleu4": bleu4, "rewrites": loss_of_token}

    def _score_rewrite(
        self, reading: ListReading, tokens: list[int]
    ) -> tuple[float, ...]:
        rewrite = joined([self.start.vocabulary[token] for token in tokens])
        question = self.dev_examples.pack.asked[reading.number].text
        references = "|".join(reading.rewriting.rewrites)
        return question_scores(question, references, rewrite)

    def data(self) -> list[Path]:
        return self.options.data.paths()


@torch.inference_mode()
def _greedy(model: WriterNet, batch: WriterBatch) -> list[list[int]]:
    """The likeliest tokens one by one, without the end."""
    written = torch.zeros_like(batch.written)
    written[:, 0] = REWRITE
    for place in range(LONGEST_OUTPUT):
        states = model(batch._replace(written=written))[:, place]
        scores = model.scores(states)
        # Padding, unused and unknown pieces and [CLS] are never written.
        scores[:, :END] = float("-inf")
        best = scores.argmax(-1)
        if place + 1 < LONGEST_OUTPUT:
            written[:, place + 1] = best
    return [_until_end(row) for row in written[:, 1:].tolist()]


def _until_end(tokens: list[int]) -> list[int]:
    return tokens[: tokens.index(END)] if END in tokens else tokens


SPEC = TaskSpec(WriterOptions, WriterTask)
