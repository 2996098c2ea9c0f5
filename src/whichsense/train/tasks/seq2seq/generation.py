"""What all sequence-to-sequence tasks share: a base model, a form of input, batches without padding, evaluation.

A task of this kind brings its examples, what each looks like to the model (`Pair`), and its own numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from whichsense.models.seq2seq import checkpoint
from whichsense.models.seq2seq.causal import network_of
from whichsense.models.seq2seq.codec import Codec, Form
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import Sequences
from whichsense.models.seq2seq.network import IGNORED, Batch, Network
from whichsense.models.seq2seq.ragged import Ragged
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.task import Task
from whichsense.train.tiny.encoders import located

Example = TypeVar("Example")


@dataclass(frozen=True, slots=True)
class Seq2SeqModel:
    """A recipe's `[model]`."""

    base: str = "facebook/bart-large"
    """A name on the hub, a folder (of an earlier run: its `model`), or a tiny base."""
    batch: int = 8
    """Examples in a batch; `train.accumulate` of them make a step."""
    beams: int = 4
    """For evaluation."""
    label_smoothing: float = 0.0


class Pair(NamedTuple):
    """An example as the model sees it."""

    inputs: Sequences
    target: list[int]
    weights: list[float] | None = None
    """How much each token of the target counts; None: one."""


@dataclass
class Generation(Task[Network, Batch], Generic[Example]):
    """A task of the training loop. `pair` may draw: it gets a generator that epoch, seed and place decide."""

    task: str
    model: Seq2SeqModel
    form: Form
    metric: str
    examples: Sequence[Example]
    pair: Callable[[Codec, Example, random.Random], Pair]
    measure: Callable[[Generator], Mapping[str, float]]
    paths: Sequence[Path]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Written beside the model: what a stage must know to use it."""
    higher_is_better: bool = True

    @cached_property
    def codec(self) -> Codec:
        return checkpoint.load_codec(located(self.model.base), self.form)

    def build(self) -> Network:
        network = network_of(
            checkpoint.load_model(located(self.model.base), self.codec)
        )
        network.label_smoothing = self.model.label_smoothing
        return network

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], Batch]:
        def made(places: list[int]) -> Batch:
            draws = [random.Random(f"{seed}/{epoch}/{place}") for place in places]
            return batched(
                [
                    self.pair(self.codec, self.examples[p], dice)
                    for p, dice in zip(places, draws, strict=True)
                ]
            )

        return Lazy(
            shuffle_batches(len(self.examples), self.model.batch, epoch, seed), made
        )

    def loss(self, model: Network, batch: Batch) -> Tensor:
        found: Tensor = model(batch)
        return found

    def evaluate(self, model: Network) -> Mapping[str, float]:
        generator = Generator.of(model, self.codec, self.form)
        generator.options = dict(self.options)
        return self.measure(generator)

    def save(self, model: Network, folder: Path) -> None:
        checkpoint.save(
            folder,
            model.model,
            self.codec,
            self.form,
            task=self.task,
            options=self.options,
        )

    def data(self) -> Sequence[Path]:
        return self.paths


def batched(pairs: Sequence[Pair]) -> Batch:
    """Examples end to end, and their targets in one table."""
    sequences = [one for pair in pairs for one in pair.inputs]
    ids = torch.tensor([token for one in sequences for token in one])
    passages = Ragged.of([len(one) for one in sequences])
    questions = Ragged.of([sum(map(len, pair.inputs)) for pair in pairs])
    longest = max(len(pair.target) for pair in pairs)
    labels = torch.full((len(pairs), longest), IGNORED)
    weights = (
        torch.ones(len(pairs), longest) if any(pair.weights for pair in pairs) else None
    )
    for row, pair in enumerate(pairs):
        labels[row, : len(pair.target)] = torch.tensor(pair.target)
        if weights is not None and pair.weights:
            weights[row, : len(pair.target)] = torch.tensor(pair.weights)
    return Batch(ids, passages, questions, labels, weights)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
