"""The compact model's encoder learns to rank and to read: from gold answers, and from what the teacher says."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from whichsense.models.compact.encoder.net import CompactNet
from whichsense.train.compact.data.batch import ListBatch
from whichsense.train.compact.encoder import losses, verdicts
from whichsense.train.compact.encoder.measures import measured
from whichsense.train.compact.encoder.student import Options, Student

WEIGHTS = {
    "relevance": 0.4,
    "span": 0.4,
    "verdict": 1.0,
    "exit": 0.3,
    "ambiguity": 0.15,
    "alone": 0.3,
    "taught": 1.0,
    "taught_exit": 0.7,
    "taught_span": 0.7,
}
"""How much each part of the loss counts."""


def make(options: Options) -> ReaderTask:
    return ReaderTask(options)


class ReaderTask(Student):
    """Chosen by how often the best string of a list is a gold answer."""

    def batches(self, epoch: int, seed: int) -> Any:
        return self.lazily(epoch, seed, self.list_batch)

    def loss(
        self, model: nn.Module, batch: ListBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        assert isinstance(model, CompactNet)
        return self.read_loss(model, batch)

    def read_loss(
        self, model: CompactNet, batch: ListBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        """Of a batch of lists, and each part of it."""
        output = model.read(*batch.pairs[:3])
        articles = torch.tensor(self.articles, device=batch.valid.device)
        parts = losses.read(output, batch) | {
            "verdict": verdicts.loss(model, output, batch, articles)
        }
        return weighted(parts, WEIGHTS), {
            name: part.detach() for name, part in parts.items()
        }

    @cached_property
    def articles(self) -> list[int]:
        """Word pieces that an answer may begin with or not."""
        return [
            piece for word in ("the", "a", "an") for piece in self.tokenizer.ids(word)
        ]

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, CompactNet)
        device, longest = model.span.weight.device, self.options.model.longest
        return measured(
            lambda batch: model.read(*batch.pairs[:3]),
            self.dev,
            self.tokenizer,
            longest,
            device,
        )


def weighted(parts: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    found = next(iter(parts.values())).new_zeros(())
    for name, part in parts.items():
        found = found + weights[name] * part
    return found
