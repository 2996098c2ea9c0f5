"""Task compact-teacher: a large encoder learns to rank the passages of a list and to mark answers in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import saved
from whichsense.models.bert.inputs import Inputs
from whichsense.train.compact.data.batch import (
    ListBatch,
    build_list_batch,
    sample_slots,
)
from whichsense.train.compact.data.config import DataConfig, ListConfig
from whichsense.train.compact.data.tokenizer import CachedTokenizer
from whichsense.train.compact.encoder import losses
from whichsense.train.compact.encoder.base import load_vocabulary
from whichsense.train.compact.encoder.list_task import (
    ListDraw,
    batch_rng,
    draw_numbers,
    list_probabilities,
    load_training_lists,
)
from whichsense.train.compact.encoder.measures import evaluate_lists
from whichsense.train.compact.encoder.teacher_net import (
    TASK,
    TeacherNet,
    map_vocabulary,
)
from whichsense.train.loop.batches import Lazy
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tiny.encoders import located

_SPAN_WEIGHT = 0.7  # of the span loss; the loss of relevance counts 1


@dataclass(frozen=True, slots=True)
class _TeacherModel:
    """The encoder to train, and the word pieces that the lists are tokenized with."""

    base: str = "sentence-transformers/all-mpnet-base-v2"
    """Any encoder over BERT's uncased word pieces, whatever their ids: BERT, MPNet, …"""
    pieces: str = "thenlper/gte-small"
    """The student's base."""
    longest: int = 160
    """Tokens of a pair."""


@dataclass(frozen=True, slots=True)
class _TeacherOptions:
    model: _TeacherModel = field(default_factory=_TeacherModel)
    data: DataConfig = field(default_factory=DataConfig)
    lists: ListConfig = field(default_factory=ListConfig)
    draw: ListDraw = field(default_factory=lambda: ListDraw(24, 12))


class TeacherTask(Task[TeacherNet, ListBatch]):
    """The best model is the one whose best string of a list is most often a gold answer."""

    metric = "exact"
    higher_is_better = True

    def __init__(self, options: _TeacherOptions) -> None:
        self.options = options
        model = options.model
        self.vocabulary = load_vocabulary(model.pieces)
        self.tokenizer = CachedTokenizer.of(self.vocabulary)
        self.train, self.dev = load_training_lists(
            options.data, options.lists, self.vocabulary, model.longest
        )
        # Lists have BERT's ids; the teacher's tokenizer is saved beside its weights.
        self.own_tokenizer = load_tokenizer(located(model.base))

    def build(self) -> TeacherNet:
        encoder = saved.encoder(located(self.options.model.base))
        return TeacherNet(encoder, map_vocabulary(self.own_tokenizer, self.vocabulary))

    @cached_property
    def _probabilities(self) -> NDArray[np.float64]:
        return list_probabilities(self.train, self.options.data.weights)

    def batches(self, epoch: int, seed: int) -> Any:
        draw = self.options.draw
        longest = self.options.model.longest
        numbers = draw_numbers(self._probabilities, draw.lists, epoch, seed)

        def build_batch(item: tuple[int, list[int]]) -> ListBatch:
            number, lists = item
            rng = batch_rng(seed, epoch, number)
            slots = [sample_slots(self.train, one, draw.passages, rng) for one in lists]
            return build_list_batch(self.train, lists, slots, longest)

        return Lazy(numbers, build_batch)

    def loss(
        self, model: TeacherNet, batch: ListBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        # The teacher has no early exit and no head for ambiguity: it learns two parts.
        parts = losses.read(model(batch.pairs), batch)
        total = parts["relevance"] + _SPAN_WEIGHT * parts["span"]
        logged: dict[str, float | Tensor] = {}
        for name, part in parts.items():
            logged[name] = part.detach()
        return total, logged

    def evaluate(self, model: TeacherNet) -> dict[str, float]:
        return evaluate_lists(
            lambda batch: model(batch.pairs),
            self.dev,
            self.tokenizer,
            self.options.model.longest,
            next(model.parameters()).device,
        )

    def save(self, model: TeacherNet, folder: Path) -> None:
        config: Any = model.encoder.config
        saved.save(
            folder,
            model,
            Inputs(self.own_tokenizer, self.options.model.longest),
            task=TASK,
            config=config,
            options={"pieces": self.options.model.pieces},
        )

    def data(self) -> list[Path]:
        return self.options.data.paths()


SPEC = TaskSpec(_TeacherOptions, TeacherTask)
