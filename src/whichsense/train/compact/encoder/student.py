"""What the recipes of the compact model share: options, the network that they start from, how lists are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from whichsense.errors import BadConfig, BadInput
from whichsense.models.bases import load_base, load_config, load_tokenizer
from whichsense.models.compact.encoder.inputs import LONGEST_QUESTION, LONGEST_TITLE
from whichsense.models.compact.encoder.net import CompactConfig, CompactNet, from_bert
from whichsense.models.compact.encoder.tokens import BEGIN, END, PAD, UNKNOWN
from whichsense.train.compact.data.batch import ListBatch, Scores, list_batch, sampled
from whichsense.train.compact.data.examples import Remembering
from whichsense.train.compact.data.lists import Lists, prepared
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.questions import Data
from whichsense.train.compact.encoder.scores import detected, taught_scores
from whichsense.train.compact.encoder.start import keep, opened
from whichsense.train.loop.batches import Lazy
from whichsense.train.tiny.encoders import located

_SHORTEST = LONGEST_QUESTION + LONGEST_TITLE + 5
_UNANSWERED = 0.25  # how often a list is drawn in which no passage answers


@dataclass(frozen=True, slots=True)
class Model:
    """What learns."""

    base: str = "thenlper/gte-small"
    """A plain BERT with BERT's uncased vocabulary: a name on the hub, a folder, or `tiny-bert-uncased`."""
    start: str = ""
    """What training goes on from: the model folder of another recipe, any weights folder, or `shipped`, the model that
    comes with the package. Its vocabulary and sizes are taken, and no base is needed. Empty: the base."""
    kept: float = 0.0
    """How much of what training goes on from stays in what compact-encoder writes: the weights are a mean of both."""
    early: int = 4
    """Layers that all passages go through; the best go through the others too."""
    dropout: float = 0.1
    longest: int = 160
    """Tokens of a pair."""
    words_stay: bool = False
    """Whether word vectors are left as they are: a writer that shares them then goes on fitting."""
    early_stays: bool = False
    """Whether what all passages go through is left as it is, with its score: then the same ones are read to the end."""


@dataclass(frozen=True, slots=True)
class Teacher:
    """Whom it learns from."""

    model: str = ""
    """The model folder of compact-teacher; empty: nobody."""
    detectors: tuple[str, ...] = ()
    """Model folders of ambiguity-detector-question, whose mean says what is ambiguous; empty: annotators alone do."""
    itself: float = 0.0
    """How often compact-encoder is taught by the model that it goes on from, in place of the teacher."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What a batch is made of."""

    lists: int = 40
    passages: int = 16


@dataclass(frozen=True, slots=True)
class Options:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    lists: Lists = field(default_factory=Lists)
    teacher: Teacher = field(default_factory=Teacher)
    draw: Draw = field(default_factory=Draw)


def vocabulary_of(base: str) -> list[str]:
    """BERT's uncased word pieces, whose unused ones are the writer's signs."""
    known: dict[str, int] = load_tokenizer(located(base)).get_vocab()
    found = sorted(known, key=known.__getitem__)
    wanted = {
        PAD: "[PAD]",
        UNKNOWN: "[UNK]",
        BEGIN: "[CLS]",
        END: "[SEP]",
        1: "[unused0]",
        99: "[unused98]",
    }
    if len(found) <= max(wanted) or any(
        found[place] != piece for place, piece in wanted.items()
    ):
        raise BadConfig(
            f"'{base}' does not have BERT's uncased vocabulary, whose unused word pieces are needed here."
        )
    return found


def shape_of(base: str, early: int) -> CompactConfig:
    """The shape of a compact model from this BERT."""
    config = load_config(located(base))
    if config.model_type != "bert":
        raise BadConfig(
            f"model.base is a {config.model_type}; the compact model's encoder is a BERT."
        )
    return CompactConfig(
        vocabulary=config.vocab_size,
        width=config.hidden_size,
        heads=config.num_attention_heads,
        inner=config.intermediate_size,
        positions=config.max_position_embeddings,
        layers=config.num_hidden_layers,
        early=min(early, config.num_hidden_layers - 1),
        epsilon=config.layer_norm_eps,
    )


class Student:
    """Lists and a network; the recipes add what is learnt from them."""

    metric, higher_is_better = "exact", True
    asks_alone = True
    """Whether it learns what a question says without a passage, too."""

    def __init__(self, options: Options) -> None:
        self.options = options
        if options.model.longest < _SHORTEST:
            raise BadConfig(
                f"model.longest must be {_SHORTEST} or more: question and title alone may need so many."
            )
        if options.teacher.detectors and not options.teacher.model:
            raise BadConfig(
                "teacher.detectors teach beside teacher.model, which is missing: give it, too, or neither."
            )
        self.start = opened(options.model.start) if options.model.start else None
        self.vocabulary = (
            vocabulary_of(options.model.base)
            if self.start is None
            else self.start.vocabulary
        )
        self.tokenizer = Remembering(
            {piece: number for number, piece in enumerate(self.vocabulary)}
        )
        self.train, self.dev = prepared(options.data, options.lists, self.vocabulary)
        if not self.train.answered.any():
            raise BadInput(
                "For no training question the index found a passage with its answer. Is it the right index?"
            )

    @cached_property
    def scores(self) -> Scores | None:
        return self.said_of(self.train) if self.options.teacher.model else None

    def said_of(self, pack: Pack) -> Scores:
        """What the teacher says of lists, and where there are detectors, what they do."""
        options, teacher = self.options, self.options.teacher
        found = taught_scores(
            Path(teacher.model), pack, options.lists.folder, options.model.longest
        )
        return (
            found._replace(ambiguous=detected(teacher.detectors, pack))
            if teacher.detectors
            else found
        )

    @cached_property
    def shape(self) -> CompactConfig:
        model = self.options.model
        if self.start is not None:
            return replace(self.start.shape, dropout=model.dropout)
        return replace(shape_of(model.base, model.early), dropout=model.dropout)

    def build(self) -> nn.Module:
        """The base with new heads, or what training goes on from."""
        model = self.options.model
        if self.start is not None:
            net = self.start.net(self.shape)
        else:
            net = from_bert(load_base(located(model.base)).state_dict(), self.shape)
        net.encoder.words.weight.requires_grad_(not model.words_stay)
        if model.early_stays:
            for part in net.first_half:
                part.requires_grad_(False)
        return net

    @cached_property
    def likelihood(self) -> NDArray[np.float64]:
        """How often each list is drawn."""
        weights = self.options.data.weights
        each = np.array([weight_of(one.source, weights) for one in self.train.asked])
        each = each * np.where(self.train.answered, 1.0, _UNANSWERED)
        return shared_out(1.0, each)

    def drawn(self, epoch: int, seed: int) -> Sequence[tuple[int, list[int]]]:
        """The lists of each batch: a batch's number and its lists. As many batches as would hold all of them once."""
        luck = np.random.default_rng([seed, epoch])
        size = self.options.draw.lists
        count = max(1, len(self.train) // size)
        chosen = luck.choice(len(self.train), (count, size), p=self.likelihood)
        return list(enumerate(chosen.tolist()))

    def lazily(
        self, epoch: int, seed: int, make: Any
    ) -> Lazy[tuple[int, list[int]], Any]:
        """Batches that are made when they are needed, each with a generator of its own."""
        _ = self.scores  # before a thread or another process needs them
        return Lazy(
            self.drawn(epoch, seed),
            lambda item: make(
                item[1], np.random.default_rng([seed, epoch, item[0], 1])
            ),
        )

    def list_batch(
        self, numbers: Sequence[int], luck: np.random.Generator, *, taught: bool = True
    ) -> ListBatch:
        """Some slots of each list, as a batch."""
        slots = [self.slots(number, luck) for number in numbers]
        scores = self.scores if taught else None
        return list_batch(
            self.train,
            numbers,
            slots,
            self.options.model.longest,
            scores,
            alone=self.asks_alone,
        )

    def slots(self, number: int, luck: np.random.Generator) -> list[int]:
        """Those of a list that are drawn."""
        return sampled(self.train, number, self.options.draw.passages, luck)

    def save(self, model: nn.Module, folder: Path) -> None:
        """What the next recipe starts from."""
        assert isinstance(model, CompactNet)
        keep(model, self.vocabulary, folder)

    def data(self) -> list[Path]:
        return self.options.data.paths()


def shared_out(share: float, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """A share of what is drawn, among lists of these weights."""
    if weights.min() < 0 or (share and not weights.any()):
        raise BadConfig(
            "data.weights: 0 or more for each dataset, and not 0 for all from which something is drawn."
        )
    return share * weights / (weights.sum() or 1.0)


def weight_of(source: str, weights: Mapping[str, float]) -> float:
    return weights.get(fitting(source, weights), 1.0)


def fitting(source: str, keys: Iterable[str]) -> str:
    """The longest key that a dataset's name begins with, or that of a file without its folder; else the name itself.

    >>> fitting("situatedqa/geo.dev", ["situatedqa", "squad"]), fitting("data/silver.json", ["silver"])
    ('situatedqa', 'silver')
    """
    fits = [
        key
        for key in keys
        if source.startswith(key) or Path(source).name.startswith(key)
    ]
    return max(fits, key=len, default=source)
