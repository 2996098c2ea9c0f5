"""What all tasks of the writer share: the model that training starts from, the loss, batches, and saving."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from whichsense.errors import BadConfig, BadInput
from whichsense.models.bases import load_base
from whichsense.models.compact.encoder.net import from_bert as encoder_from_bert
from whichsense.models.compact.writer.net import (
    WriterBatch,
    WriterConfig,
    WriterNet,
    from_bert,
)
from whichsense.models.compact.writer.prompts import LONGEST, LONGEST_OUTPUT, REWRITE
from whichsense.train.compact.data.tokenizer import CachedTokenizer
from whichsense.train.compact.encoder.base import encoder_shape, load_vocabulary
from whichsense.train.compact.encoder.start import (
    SHIPPED,
    Start,
    load_start,
    round_words,
)
from whichsense.train.compact.writer.rewrite_examples import Example
from whichsense.train.loop.task import Task
from whichsense.train.tiny.encoders import located

WRITER = "writer.pt"


@dataclass(frozen=True, slots=True)
class WriterModel:
    """A recipe's `[model]`."""

    start: str = SHIPPED
    """The model whose word vectors the writer shares: the folder of compact-encoder, a weights folder, or `shipped`.
    Empty: the base itself, which cannot read yet: for experiments."""
    writer: str = ""
    """The writer that training starts from: the model folder of compact-writer. Empty: the writer of `start`, or, if
    that has none, some layers of the base."""
    verifier: str = ""
    """The model folder of compact-verifier, which is exported beside the writer. Empty: the verifier of `start`, if
    that has one."""
    base: str = "thenlper/gte-small"
    layers: tuple[int, ...] = ()
    """Which layers of the base."""
    dropout: float = 0.1


class BaseWriterTask(Task[WriterNet, WriterBatch]):
    """Subclasses add batches and evaluation."""

    def __init__(self, model: WriterModel) -> None:
        self.model = model
        if model.start:
            self.start = load_start(model.start)
        else:
            self.start = _untrained(model.base)
        self.tokenizer = CachedTokenizer.of(self.start.vocabulary)

    @cached_property
    def shape(self) -> WriterConfig:
        encoder = self.start.shape
        layers = _layer_count(self._start_weights) or len(self.model.layers)
        return WriterConfig(
            vocabulary=encoder.vocabulary,
            width=encoder.width,
            heads=encoder.heads,
            inner=encoder.inner,
            epsilon=encoder.epsilon,
            layers=layers,
            dropout=self.model.dropout,
        )

    @cached_property
    def _start_weights(self) -> dict[str, Tensor]:
        """The weights that training starts from; empty if there is no writer yet."""
        if self.model.writer:
            return load_writer(Path(self.model.writer))
        return self.start.writer

    def build(self) -> WriterNet:
        model = self.model
        # The exported writer will look them up in int8.
        words = round_words(self.start.state["encoder.words.weight"])
        # A writer that was trained before brings its own number of layers.
        if self._start_weights:
            net = WriterNet(self.shape, words)
            net.load_state_dict(self._start_weights)
            return net
        if not model.layers:
            raise BadConfig(
                "There is no writer to start from: give model.layers, those of the base to begin with."
            )
        base = load_base(located(model.base)).state_dict()
        return from_bert(base, model.layers, self.shape, words)

    def loss(
        self, model: WriterNet, batch: WriterBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        loss, total, count = model.loss(batch)
        return loss, {"each": total / count.clamp(min=1)}

    def save(self, model: WriterNet, folder: Path) -> None:
        state = model.state_dict()
        weights = {}
        for name, value in state.items():
            weights[name] = value.detach().cpu()
        torch.save(weights, folder / WRITER)


def _layer_count(weights: dict[str, Tensor]) -> int:
    """The number of layers that these weights belong to."""
    count = 0
    for name in weights:
        if name.startswith("layers."):
            count = max(count, 1 + int(name.split(".")[1]))
    return count


def _untrained(base: str) -> Start:
    """A base as the compact encoder that it would become."""
    shape = encoder_shape(base, early=1)
    net = encoder_from_bert(load_base(located(base)).state_dict(), shape)
    return Start(Path(base), shape, load_vocabulary(base), net.state_dict())


def load_writer(folder: Path) -> dict[str, Tensor]:
    try:
        weights: dict[str, Tensor] = torch.load(
            folder / WRITER, map_location="cpu", weights_only=True
        )
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise BadInput(
            f"'{folder}' holds no writer that can be read: {error}"
        ) from None
    return weights


def collate(examples: Sequence[Example], longest: int = LONGEST_OUTPUT) -> WriterBatch:
    """A batch of one size, for which layers are compiled. `longest`: tokens of the output."""
    rows = len(examples)
    # Prompts: rows × LONGEST
    ids = np.zeros((rows, LONGEST), np.int64)
    kinds = np.zeros((rows, LONGEST), np.int64)
    mask = np.zeros((rows, LONGEST), bool)
    # Outputs: rows × longest. `written` is `wanted` one place further on, behind a sign.
    written = np.zeros((rows, longest), np.int64)
    wanted = np.zeros((rows, longest), np.int64)
    weights = np.zeros((rows, longest), np.float32)
    for row, example in enumerate(examples):
        size = len(example.prompt.ids)
        ids[row, :size] = example.prompt.ids
        kinds[row, :size] = example.prompt.kinds
        mask[row, :size] = True
        output = example.output[:longest]
        size = len(output)
        written[row, 0] = REWRITE
        written[row, 1:size] = output[:-1]
        wanted[row, :size] = output
        weights[row, :size] = example.weights[:size]
    arrays = (ids, kinds, mask, written, wanted, weights)
    return WriterBatch(*map(torch.from_numpy, arrays))
