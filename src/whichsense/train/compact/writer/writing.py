"""What all tasks of a writer share: what it goes on from, its loss, batches, how it is kept."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from whichsense.errors import BadConfig, BadInput
from whichsense.models.bases import load_base
from whichsense.models.compact.encoder.net import from_bert as from_base
from whichsense.models.compact.writer.net import (
    WriterBatch,
    WriterConfig,
    WriterNet,
    from_bert,
)
from whichsense.models.compact.writer.prompts import LONGEST, LONGEST_OUTPUT, REWRITE
from whichsense.train.compact.data.examples import Example, Remembering
from whichsense.train.compact.encoder.base import encoder_shape, load_vocabulary
from whichsense.train.compact.encoder.start import (
    SHIPPED,
    Start,
    load_start,
    round_words,
)
from whichsense.train.tiny.encoders import located

WRITER = "writer.pt"


@dataclass(frozen=True, slots=True)
class Model:
    start: str = SHIPPED
    """The model whose words the writer shares: the folder of compact-encoder, a weights folder, or `shipped`. Empty:
    the base itself, which reads nothing yet: for trying things out."""
    writer: str = ""
    """What it goes on from: the model folder of compact-writer. Empty: the writer of `start`, or where that has none,
    some layers of the base."""
    base: str = "thenlper/gte-small"
    layers: tuple[int, ...] = ()
    """Which of the base's."""
    dropout: float = 0.1


class Writing:
    """A task in which a writer learns something: what it begins as, its loss, how it is kept."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.start = load_start(model.start) if model.start else _untrained(model.base)
        self.tokenizer = Remembering(
            {piece: number for number, piece in enumerate(self.start.vocabulary)}
        )

    @cached_property
    def shape(self) -> WriterConfig:
        own = self.start.shape
        layers = 1 + max(
            (
                int(name.split(".")[1])
                for name in self._before
                if name.startswith("layers.")
            ),
            default=-1,
        )
        layers = layers or len(self.model.layers)
        sizes = {
            name: getattr(own, name)
            for name in ("vocabulary", "width", "heads", "inner", "epsilon")
        }
        return WriterConfig(**sizes, layers=layers, dropout=self.model.dropout)

    def build(self) -> nn.Module:
        words, model = (
            round_words(self.start.state["encoder.words.weight"]),
            self.model,
        )
        if self._before:
            net = WriterNet(self.shape, words)
            net.load_state_dict(self._before)
            return net
        if not model.layers:
            raise BadConfig(
                "There is no writer to go on from: give model.layers, those of the base to begin with."
            )
        return from_bert(
            load_base(located(model.base)).state_dict(), model.layers, self.shape, words
        )

    @cached_property
    def _before(self) -> dict[str, Tensor]:
        """The writer that training goes on from, if there is one."""
        writer = self.model.writer
        return _opened(Path(writer)) if writer else self.start.writer

    def loss(
        self, model: nn.Module, batch: WriterBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        assert isinstance(model, WriterNet)
        loss, total, count = model.loss(batch)
        return loss, {"each": total / count.clamp(min=1)}

    def save(self, model: nn.Module, folder: Path) -> None:
        torch.save(
            {name: value.detach().cpu() for name, value in model.state_dict().items()},
            folder / WRITER,
        )


def _untrained(base: str) -> Start:
    """A base as the model that it would become."""
    shape = encoder_shape(base, early=1)
    state = from_base(load_base(located(base)).state_dict(), shape).state_dict()
    return Start(Path(base), shape, load_vocabulary(base), state)


def collated(examples: Sequence[Example], longest: int = LONGEST_OUTPUT) -> WriterBatch:
    """All of one size, for which layers are compiled. `longest`: tokens of what is written."""
    ids, kinds = (np.zeros((len(examples), LONGEST), np.int64) for _ in range(2))
    written, wanted = (np.zeros((len(examples), longest), np.int64) for _ in range(2))
    mask, weights = (
        np.zeros((len(examples), LONGEST), bool),
        np.zeros((len(examples), longest), np.float32),
    )
    for row, one in enumerate(examples):
        size, output = len(one.prompt.ids), one.output[:longest]
        ids[row, :size], kinds[row, :size], mask[row, :size] = (
            one.prompt.ids,
            one.prompt.kinds,
            True,
        )
        written[row, 0], written[row, 1 : len(output)] = REWRITE, output[:-1]
        wanted[row, : len(output)], weights[row, : len(output)] = (
            output,
            one.weights[: len(output)],
        )
    return WriterBatch(
        *map(torch.from_numpy, (ids, kinds, mask, written, wanted, weights))
    )


def _opened(folder: Path) -> dict[str, Tensor]:
    try:
        found: dict[str, Tensor] = torch.load(
            folder / WRITER, map_location="cpu", weights_only=True
        )
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        raise BadInput(
            f"'{folder}' holds no writer that can be read: {error}"
        ) from None
    return found
