"""Task compact-teacher: a large encoder learns to rank and read lists of passages, to give soft labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from whichsense.errors import BadConfig
from whichsense.lab.compact import losses
from whichsense.lab.compact.batches_of_lists import ListBatch, build_list_batch, sample_slots
from whichsense.lab.compact.list_task import (
    ListDraw,
    batch_rng,
    draw_numbers,
    list_probabilities,
    load_training_lists,
    load_vocabulary,
)
from whichsense.lab.compact.lists import CachedTokenizer
from whichsense.lab.compact.questions import DataConfig, ListConfig
from whichsense.lab.train.task import BatchT, Lazy, ModelT, Task, TaskSpec
from whichsense.lab.train.tiny import located
from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import inputs
from whichsense.models.bert.inputs import Inputs, compile_layers
from whichsense.models.compact.encoder import BEGIN, END, PAD
from whichsense.models.compact.nets import Score
from whichsense.types import frozen

# The teacher's network: a large encoder of transformers with the compact model's heads.

TASK = "compact-teacher"
_MAX_UNKNOWN = 0.01  # the share of word pieces that a teacher may lack


class TeacherNet(nn.Module):
    """`numbers` maps ids of BERT's uncased word pieces to the teacher's own ids."""

    def __init__(self, encoder: nn.Module, numbers: Tensor) -> None:
        super().__init__()
        config: Any = encoder.config
        self.encoder = encoder
        self.numbers: Tensor
        self.register_buffer("numbers", numbers)
        # MPNet has no token types.
        self.typed = getattr(config, "type_vocab_size", 1) > 1
        self.relevance = Score(config.hidden_size)
        self.span = nn.Linear(config.hidden_size, 2)

    def compile(self, *arguments: Any, **options: Any) -> None:
        compile_layers(self.encoder, *arguments, **options)

    def read(self, ids: Tensor, types: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Score passages (pairs) and their tokens as first and last of an answer (pairs × tokens × 2)."""
        inputs = {"input_ids": self.numbers[ids], "attention_mask": mask.long()}
        if self.typed:
            inputs["token_type_ids"] = types
        states = self.encoder(**inputs).last_hidden_state
        return {"relevance": self.relevance(states).float(), "span": self.span(states).float()}


def map_vocabulary(tokenizer: Any, vocabulary: Sequence[str]) -> Tensor:
    """Return a tokenizer's id of every word piece. MPNet has BERT's pieces under other ids, with other special
    tokens."""
    ids: dict[str, int] = tokenizer.get_vocab()
    unknown = [piece for piece in vocabulary if piece not in ids and not piece.startswith("[")]
    if len(unknown) > _MAX_UNKNOWN * len(vocabulary):
        raise BadConfig(
            f"The teacher does not know {len(unknown):,} of BERT's uncased word pieces, such as '{unknown[0]}'. "
            "Choose one with that vocabulary: all-mpnet-base-v2, bert-large-uncased, …"
        )
    numbers = torch.tensor([ids.get(piece, tokenizer.unk_token_id) for piece in vocabulary])
    # Special tokens have other names in other vocabularies.
    numbers[PAD] = tokenizer.pad_token_id
    numbers[BEGIN] = tokenizer.cls_token_id
    numbers[END] = tokenizer.sep_token_id
    return numbers


def load_teacher(folder: Path) -> TeacherNet:
    """Return a trained teacher, ready for inference."""
    vocabulary = load_vocabulary(str(inputs.described(folder, TASK).options["pieces"]))
    numbers = map_vocabulary(load_tokenizer(folder), vocabulary)
    net = TeacherNet(inputs.empty_encoder(folder), numbers)
    inputs.fill(net, folder)
    return net.eval()


# Task compact-teacher: a large encoder learns to rank the passages of a list and to mark answers in
# them.

_SPAN_WEIGHT = 0.7  # of the span loss; the loss of relevance counts 1


@frozen
class _TeacherModel:
    """The encoder to train, and the word pieces that the lists are tokenized with."""

    base: str = "sentence-transformers/all-mpnet-base-v2"
    """Any encoder over BERT's uncased word pieces, whatever their ids: BERT, MPNet, …"""
    pieces: str = "thenlper/gte-small"
    """The student's base."""
    longest: int = 160
    """Tokens of a pair."""


@frozen
class _TeacherOptions:
    model: _TeacherModel = _TeacherModel()
    data: DataConfig = DataConfig()
    lists: ListConfig = ListConfig()
    draw: ListDraw = ListDraw(24, 12)


class ListTask(Task[ModelT, BatchT]):
    """A task over lists of passages. The best model's best string of a list is most often a gold answer."""

    metric = "exact"
    higher_is_better = True

    def __init__(self, options: Any, vocabulary: list[str]) -> None:
        self.options = options
        self.vocabulary = vocabulary
        self.tokenizer = CachedTokenizer.of(vocabulary)
        self.train, self.dev = load_training_lists(
            options.data, options.lists, vocabulary, options.model.longest
        )

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """How often each list is drawn."""
        return list_probabilities(self.train, self.options.data.weights)

    def make_batch(self, numbers: Sequence[int], rng: np.random.Generator) -> BatchT:
        """Make a batch of some slots of these lists."""
        raise NotImplementedError

    def batches(self, epoch: int, seed: int) -> Any:
        size = self.options.draw.lists
        return Lazy(
            draw_numbers(self.probabilities, size, epoch, seed),
            lambda item: self.make_batch(item[1], batch_rng(seed, epoch, item[0])),
        )

    def evaluate(self, model: ModelT) -> dict[str, float]:
        return losses.evaluate_lists(
            model,
            self.dev,
            self.tokenizer,
            self.options.model.longest,
            next(model.parameters()).device,
        )


class TeacherTask(ListTask[TeacherNet, ListBatch]):
    def __init__(self, options: _TeacherOptions) -> None:
        super().__init__(options, load_vocabulary(options.model.pieces))
        # Lists have BERT's ids; the teacher's tokenizer is saved beside its weights.
        self.own_tokenizer = load_tokenizer(located(options.model.base))

    def build(self) -> TeacherNet:
        encoder = inputs.encoder(located(self.options.model.base))
        return TeacherNet(encoder, map_vocabulary(self.own_tokenizer, self.vocabulary))

    def make_batch(self, numbers: Sequence[int], rng: np.random.Generator) -> ListBatch:
        count, longest = self.options.draw.passages, self.options.model.longest
        slots = [sample_slots(self.train, one, count, rng) for one in numbers]
        return build_list_batch(self.train, numbers, slots, longest)

    def loss(self, model: TeacherNet, batch: ListBatch) -> tuple[Tensor, dict[str, float | Tensor]]:
        # The teacher has no early exit and no head for ambiguity: it learns two parts.
        parts = losses.read(model.read(*batch.pairs[:3]), batch)
        total = parts["relevance"] + _SPAN_WEIGHT * parts["span"]
        logged: dict[str, float | Tensor] = {name: part.detach() for name, part in parts.items()}
        return total, logged

    def save(self, model: TeacherNet, folder: Path) -> None:
        config: Any = model.encoder.config
        inputs.save(
            folder,
            model,
            Inputs(self.own_tokenizer, self.options.model.longest),
            task=TASK,
            config=config,
            options={"pieces": self.options.model.pieces},
        )


SPEC = TaskSpec(_TeacherOptions, TeacherTask)
