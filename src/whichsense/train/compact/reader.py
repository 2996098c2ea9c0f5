"""The compact model's encoder learns to rank and to read: from gold answers, and from what the teacher says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from whichsense.models.compact.net import CompactNet
from whichsense.train.compact import losses
from whichsense.train.compact.batch import ListBatch
from whichsense.train.compact.measures import measured
from whichsense.train.compact.student import Options, Student

WEIGHTS = {
    "relevance": 0.4,
    "span": 0.4,
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

    def loss(self, model: nn.Module, batch: ListBatch) -> tuple[Tensor, dict[str, float | Tensor]]:
        assert isinstance(model, CompactNet)
        parts = losses.read(model.read(*batch.pairs[:3]), batch)
        return weighted(parts, WEIGHTS), {name: part.detach() for name, part in parts.items()}

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        assert isinstance(model, CompactNet)
        device, longest = model.span.weight.device, self.options.model.longest
        return measured(lambda batch: model.read(*batch.pairs[:3]), self.dev, self.tokenizer, longest, device)


def weighted(parts: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    found = next(iter(parts.values())).new_zeros(())
    for name, part in parts.items():
        found = found + weights[name] * part
    return found
