"""The compact model's teacher: a large encoder that learns to rank the passages of a list and to point at answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from whichsense.errors import BadConfig
from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import saved
from whichsense.models.bert.inputs import Inputs
from whichsense.models.bert.running import compile_layers
from whichsense.models.compact.encoder.net import Score
from whichsense.models.compact.encoder.tokens import BEGIN, END, PAD
from whichsense.train.compact.data.batch import ListBatch, Pairs
from whichsense.train.compact.data.lists import Lists
from whichsense.train.compact.data.questions import Data
from whichsense.train.compact.encoder import losses
from whichsense.train.compact.encoder.measures import measured
from whichsense.train.compact.encoder.student import Draw, Student, vocabulary_of
from whichsense.train.compact.encoder.student import Model as StudentModel
from whichsense.train.compact.encoder.student import Options as StudentOptions
from whichsense.train.tiny.encoders import located

TASK = "compact-teacher"
_SPAN = 0.7  # how much spans count beside passages
_STRANGE = 0.01  # the share of word pieces that a teacher may not know


@dataclass(frozen=True, slots=True)
class Model:
    """Who learns to teach, and whose word pieces the lists are cut into."""

    base: str = "sentence-transformers/all-mpnet-base-v2"
    """Any encoder over BERT's uncased word pieces, whatever their numbers: BERT, MPNet, …"""
    pieces: str = "thenlper/gte-small"
    """The student's base."""
    longest: int = 160


@dataclass(frozen=True, slots=True)
class Options:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    lists: Lists = field(default_factory=Lists)
    draw: Draw = field(default_factory=lambda: Draw(24, 12))


class TeacherNet(nn.Module):
    """An encoder of transformers with the compact model's heads. `numbers`: its own number of each of BERT's pieces."""

    def __init__(self, encoder: nn.Module, numbers: Tensor) -> None:
        super().__init__()
        self.encoder = encoder
        self.numbers: Tensor
        self.register_buffer("numbers", numbers)
        config: Any = encoder.config
        self.typed = getattr(config, "type_vocab_size", 1) > 1
        self.relevance, self.span = (
            Score(config.hidden_size),
            nn.Linear(config.hidden_size, 2),
        )

    def compile(self, *arguments: Any, **options: Any) -> None:
        compile_layers(self.encoder, *arguments, **options)

    def forward(self, pairs: Pairs) -> dict[str, Tensor]:
        types = {"token_type_ids": pairs.types} if self.typed else {}
        ids = self.numbers[pairs.ids]
        states = self.encoder(
            input_ids=ids, attention_mask=pairs.mask.long(), **types
        ).last_hidden_state
        return {
            "relevance": self.relevance(states).float(),
            "span": self.span(states).float(),
        }


def own_numbers(tokenizer: Any, vocabulary: Sequence[str]) -> Tensor:
    """A tokenizer's number of every word piece: MPNet has BERT's pieces, at other places and with other signs."""
    known: dict[str, int] = tokenizer.get_vocab()
    strange = [
        piece
        for piece in vocabulary
        if piece not in known and not piece.startswith("[")
    ]
    if len(strange) > _STRANGE * len(vocabulary):
        raise BadConfig(
            f"The teacher does not know {len(strange):,} of BERT's uncased word pieces, such as '{strange[0]}'. "
            "Choose one with that vocabulary: all-mpnet-base-v2, bert-large-uncased, …"
        )
    numbers = torch.tensor(
        [known.get(piece, tokenizer.unk_token_id) for piece in vocabulary]
    )
    for place, own in (
        (PAD, "pad_token_id"),
        (BEGIN, "cls_token_id"),
        (END, "sep_token_id"),
    ):
        numbers[place] = getattr(tokenizer, own)
    return numbers


def make(options: Options) -> TeacherTask:
    return TeacherTask(options)


class TeacherTask(Student):
    """Chosen by how often the best string of a list is a gold answer."""

    asks_alone = False

    def __init__(self, options: Options) -> None:
        self.own = options
        model = StudentModel(base=options.model.pieces, longest=options.model.longest)
        super().__init__(
            StudentOptions(
                model=model, data=options.data, lists=options.lists, draw=options.draw
            )
        )
        self.tokens = load_tokenizer(located(options.model.base))

    def build(self) -> nn.Module:
        return TeacherNet(
            saved.encoder(located(self.own.model.base)),
            own_numbers(self.tokens, self.vocabulary),
        )

    def batches(self, epoch: int, seed: int) -> Any:
        return self.lazily(epoch, seed, self.list_batch)

    def loss(
        self, model: nn.Module, batch: ListBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        parts = losses.read(model(batch.pairs), batch)
        return parts["relevance"] + _SPAN * parts["span"], {
            name: part.detach() for name, part in parts.items()
        }

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        device = next(model.parameters()).device
        return measured(
            lambda batch: model(batch.pairs),
            self.dev,
            self.tokenizer,
            self.options.model.longest,
            device,
        )

    def save(self, model: nn.Module, folder: Path) -> None:
        assert isinstance(model, TeacherNet)
        config: Any = model.encoder.config
        inputs = Inputs(self.tokens, self.options.model.longest)
        saved.save(
            folder,
            model,
            inputs,
            task=TASK,
            config=config,
            options={"pieces": self.own.model.pieces},
        )


def opened(folder: Path) -> TeacherNet:
    """A trained teacher, ready to be asked."""
    about = saved.described(folder, TASK)
    vocabulary = vocabulary_of(str(about.options["pieces"]))
    net = TeacherNet(
        saved.empty_encoder(folder), own_numbers(load_tokenizer(folder), vocabulary)
    )
    saved.fill(net, folder)
    return net.eval()
