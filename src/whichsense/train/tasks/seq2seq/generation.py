"""What all sequence-to-sequence tasks share: a base model, a form of input, batches without padding, evaluation.

A task of this kind brings its examples, how each is encoded, and its own metrics.
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
from whichsense.models.seq2seq.batch import IGNORED, Batch
from whichsense.models.seq2seq.causal import network_of
from whichsense.models.seq2seq.codec import Codec, InputForm
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import TokenSequences
from whichsense.models.seq2seq.network import Network
from whichsense.models.seq2seq.ragged import RaggedRows
from whichsense.stages.read import SeqReader
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.task import Task
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.train.tiny.encoders import located
from whichsense.types import Case

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


class EncodedExample(NamedTuple):
    """An example as the model sees it, in token ids."""

    inputs: TokenSequences
    target: list[int]
    weights: list[float] | None = None
    """How much each token of the target counts; None: one."""


@dataclass
class Generation(Task[Network, Batch], Generic[Example]):
    """A task of the training loop that generates text."""

    task: str
    model: Seq2SeqModel
    form: InputForm
    metric: str
    examples: Sequence[Example]
    encode: Callable[[Codec, Example, random.Random], EncodedExample]
    """May draw at random: its generator is decided by epoch, seed and the example's place."""
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
        def collate(places: list[int]) -> Batch:
            encoded = []
            for place in places:
                rng = random.Random(f"{seed}/{epoch}/{place}")
                encoded.append(self.encode(self.codec, self.examples[place], rng))
            return collate_examples(encoded)

        size = self.model.batch
        return Lazy(shuffle_batches(len(self.examples), size, epoch, seed), collate)

    def loss(self, model: Network, batch: Batch) -> Tensor:
        loss: Tensor = model(batch)
        return loss

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


def collate_examples(examples: Sequence[EncodedExample]) -> Batch:
    """Inputs end to end, without padding; targets and their weights as [examples, longest target]."""
    ids: list[int] = []
    sequence_lengths = []
    example_lengths = []
    for example in examples:
        lengths = [len(sequence) for sequence in example.inputs]
        for sequence in example.inputs:
            ids += sequence
        sequence_lengths += lengths
        example_lengths.append(sum(lengths))
    longest = max(len(example.target) for example in examples)
    shape = (len(examples), longest)
    labels = torch.full(shape, IGNORED)
    has_weights = any(example.weights for example in examples)
    weights = torch.ones(shape) if has_weights else None
    for row, example in enumerate(examples):
        length = len(example.target)
        labels[row, :length] = torch.tensor(example.target)
        if weights is not None and example.weights:
            weights[row, :length] = torch.tensor(example.weights)
    passages = RaggedRows.of(sequence_lengths)
    questions = RaggedRows.of(example_lengths)
    return Batch(torch.tensor(ids), passages, questions, labels, weights)


def read_answers(
    reader: SeqReader, questions: Sequence[str], evidence: EvidenceSearch
) -> list[list[str]]:
    """A reader's answers to questions, over the hits of each."""
    cases = [Case(text, tuple(evidence.hits(text))) for text in questions]
    answers = []
    for case in reader.read(cases):
        answers.append([candidate.answer for candidate in case.answers])
    return answers


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
