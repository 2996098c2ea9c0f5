"""Task compact-encoder: the encoder learns to rank and read lists of passages."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.errors import BadConfig
from whichsense.lab.compact import losses
from whichsense.lab.compact.batches_of_lists import (
    ListBatch,
    SoftLabels,
    build_list_batch,
    sample_slots,
)
from whichsense.lab.compact.list_task import (
    ListDraw,
    Start,
    calibrate,
    encoder_shape,
    is_calibrated,
    list_probabilities,
    load_start,
    load_vocabulary,
    normalize_weights,
    save_start,
)
from whichsense.lab.compact.lists import Pack
from whichsense.lab.compact.questions import DataConfig, ListConfig
from whichsense.lab.compact.teacher import ListTask, TeacherNet, load_teacher
from whichsense.lab.compact.topics import build_topic_lists, split_topics
from whichsense.lab.train.task import TaskSpec
from whichsense.lab.train.tiny import located
from whichsense.models.bases import load_base
from whichsense.models.compact.nets import CompactConfig, CompactNet, from_bert, set_quantization
from whichsense.types import frozen

# The options of task compact-encoder: what its recipes may say besides `[train]`.


@frozen
class _StudentModel:
    """The network to train."""

    base: str = "thenlper/gte-small"
    """A plain BERT with BERT's uncased vocabulary: a name on the hub, a folder, or `tiny-bert-uncased`."""
    start: str = ""
    """The model that training starts from: the model folder of another recipe, any weights folder, or `shipped`, the
    model that comes with the package. Its vocabulary and sizes are used, and no base is needed. Empty: the base."""
    early: int = 4
    """Layers that all passages go through; the best go through the others too."""
    dropout: float = 0.1
    longest: int = 160
    """Tokens of a pair."""
    int8: bool = False
    """Quantization-aware training: the forward pass has the arithmetic of the exported int8 model."""
    words_stay: bool = False
    """Freeze the word vectors: a writer that shares them still fits."""
    early_stays: bool = False
    """Freeze the early layers and their score: the same passages are then read to the end."""


@frozen
class _EncoderTeacher:
    """A recipe's `[teacher]`: the source of soft labels (distillation)."""

    model: str = ""
    """The model folder of compact-teacher; empty: no teacher."""
    itself: bool = False
    """Whether the model that training started from gives them in a teacher's place (self-distillation)."""


@frozen
class _TopicLists:
    """A recipe's `[topics]`: lists of the topics of `data.topics`."""

    share: float = 0.0
    """Of the lists that are drawn; 0: topics are not used."""
    thinned: float = 0.3
    """How often half of the passages that answer are left out, so that one of several answers remains, or none."""


@frozen
class EncoderOptions:
    model: _StudentModel = _StudentModel()
    data: DataConfig = DataConfig()
    lists: ListConfig = ListConfig()
    teacher: _EncoderTeacher = _EncoderTeacher()
    draw: ListDraw = ListDraw()
    topics: _TopicLists = _TopicLists()

    def check(self) -> None:
        """Raise BadConfig for values that contradict each other."""
        # Something must be left for the lists of datasets.
        if not 0 <= self.topics.share < 1 or not 0 <= self.topics.thinned <= 1:
            raise BadConfig(
                "topics.share must be at least 0 and less than 1; topics.thinned must be between 0 and 1."
            )
        # A share without topics would silently draw nothing.
        if self.topics.share and not self.data.topics:
            raise BadConfig(
                "data.topics is empty: give a folder with topics, or 'topics', which ships with the recipes."
            )
        if self.teacher.itself and not self.model.start:
            raise BadConfig(
                "teacher.itself refers to the model that training starts from: give model.start."
            )


# Groups of lists that the encoder learns from: datasets, topics.

# Of a passage that holds an answer, in a list of a topic that is thinned.
_TOPIC_SURVIVAL = 0.5


@frozen
class ListGroup:
    """Lists of one origin, and how they take part in training."""

    lists: Pack
    share: float = 1.0
    """The group's share of the lists that are drawn."""
    thinning: float = 0.0
    """How often passages that hold an answer are left out of a list."""
    survival: float = 0.0
    """The probability that such a passage stays in a list that is thinned."""

    def thin(self, slots: list[int], lists: Pack, rng: np.random.Generator) -> list[int]:
        """Leave out some slots that hold an answer, unless no slot would be left."""
        if rng.random() >= self.thinning:
            return slots
        remaining = []
        for slot in slots:
            if not len(lists.spans[slot]) or rng.random() < self.survival:
                remaining.append(slot)
        return remaining or slots


def build_groups(
    options: EncoderOptions, lists: Pack, vocabulary: Sequence[str]
) -> list[ListGroup]:
    """Return the groups that a recipe learns from: lists of datasets, and of topics."""
    topics = options.topics
    if not topics.share:
        return [ListGroup(lists)]
    own = build_topic_lists(split_topics(options.data)[0], vocabulary)
    return [
        ListGroup(lists, 1 - topics.share),
        ListGroup(own, topics.share, topics.thinned, _TOPIC_SURVIVAL),
    ]


def group_probabilities(
    groups: Sequence[ListGroup], weights: Mapping[str, float]
) -> NDArray[np.float64]:
    """Return how often each list is drawn: together the lists of a group have the group's share."""
    # Weights hold within a group; between groups, shares do.
    parts = []
    for group in groups:
        own = list_probabilities(group.lists, weights)
        parts.append(normalize_weights(group.share, own))
    return np.concatenate(parts)


# Task compact-encoder: the small encoder learns to rank and to read lists of passages.
#
# Three recipes train it one after another: compact-reader, compact-encoder (quantization-aware) and
# compact-topics. They differ in the groups of lists that a batch is drawn from, in the soft labels (of
# the teacher, or of the model that training started from), and in the weights that are frozen.

_LOSS_WEIGHTS = {
    "relevance": 0.4,
    "span": 0.4,
    "refuted": 0.6,
    "verdict": 1.0,
    "exit": 0.3,
    "ambiguity": 0.15,
    "alone": 0.3,
    "taught": 1.0,
    "taught_exit": 0.7,
    "taught_span": 0.7,
}
_CALIBRATION_LISTS = 16


class EncoderTask(ListTask[CompactNet, ListBatch]):
    def __init__(self, options: EncoderOptions) -> None:
        options.check()
        model = options.model
        # A start brings its own vocabulary.
        self.start: Start | None = load_start(model.start) if model.start else None
        own = self.start.vocabulary if self.start else load_vocabulary(model.base)
        super().__init__(options, own)
        self.groups = self.build_groups(self.train)
        self.train = Pack.concatenate([group.lists for group in self.groups])
        self._teacher: TeacherNet | CompactNet | None = None  # set by `build`

    def build_groups(self, lists: Pack) -> list[ListGroup]:
        """Return the groups of lists that a batch is drawn from."""
        return build_groups(self.options, lists, self.vocabulary)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """How often each list is drawn."""
        return group_probabilities(self.groups, self.options.data.weights)

    @cached_property
    def _articles(self) -> list[int]:
        """Word pieces that an answer may begin with or not."""
        articles = []
        for word in ("the", "a", "an"):
            articles += self.tokenizer.ids(word)
        return articles

    @cached_property
    def shape(self) -> CompactConfig:
        model = self.options.model
        if self.start is not None:
            return replace(self.start.shape, dropout=model.dropout)
        return replace(encoder_shape(model.base, model.early), dropout=model.dropout)

    def build(self) -> CompactNet:
        """Return the base with new heads, or the model that training starts from; with int8 arithmetic if that is
        wanted."""
        model = self.options.model
        if self.start is not None:
            net = self.start.net(self.shape)
        else:
            net = from_bert(load_base(located(model.base)).state_dict(), self.shape)
        net.encoder.words.weight.requires_grad_(not model.words_stay)
        # Also the early score, which decides what is read to the end.
        if model.early_stays:
            for part in net.first_half:
                part.requires_grad_(False)
        if model.int8:
            self._quantize(net)
        teacher = self.options.teacher
        if teacher.itself:
            self._teacher = copy.deepcopy(net)
        elif teacher.model:
            self._teacher = load_teacher(Path(teacher.model))
        if self._teacher is not None:
            self._teacher.eval().requires_grad_(False)
        return net

    def _quantize(self, net: CompactNet) -> None:
        """Turn int8 arithmetic on. Scales that were never learnt begin as a batch of lists suggests."""
        if not is_calibrated(net):
            # The same lists in each run.
            rng = np.random.default_rng(0)
            count = min(_CALIBRATION_LISTS, len(self.train))
            numbers = rng.choice(len(self.train), count, p=self.probabilities)
            calibrate(net, self.make_batch(numbers.tolist(), rng).pairs)
        set_quantization(net, weights=True, activations=True)

    def make_batch(self, numbers: Sequence[int], rng: np.random.Generator) -> ListBatch:
        # All lists of a batch share one generator: their order matters.
        slots = [self.sample_slots(number, rng) for number in numbers]
        return build_list_batch(self.train, numbers, slots, self.options.model.longest, alone=True)

    def sample_slots(self, number: int, rng: np.random.Generator) -> list[int]:
        """Return the slots of a list that a batch holds."""
        slots = sample_slots(self.train, number, self.options.draw.passages, rng)
        return self._group_of(number).thin(slots, self.train, rng)

    def _group_of(self, number: int) -> ListGroup:
        for group in self.groups:
            if number < len(group.lists):
                return group
            number -= len(group.lists)
        raise IndexError(number)

    def loss(self, model: CompactNet, batch: ListBatch) -> tuple[Tensor, dict[str, float | Tensor]]:
        lists = self.with_soft_labels(batch)
        output = model.read(*lists.pairs[:3])
        # An answer with and without its article is the same.
        articles = torch.tensor(self._articles, device=lists.valid.device)
        parts = losses.read(output, lists)
        parts["verdict"] = losses.loss(model, output, lists, articles)
        total = parts["relevance"].new_zeros(())
        for name, part in parts.items():
            total = total + _LOSS_WEIGHTS[name] * part
        logged: dict[str, float | Tensor] = {name: part.detach() for name, part in parts.items()}
        return total, logged

    def with_soft_labels(self, lists: ListBatch) -> ListBatch:
        """Return the batch with what the teacher says of it; as it is without a teacher."""
        if self._teacher is None:
            return lists
        net = self._teacher.to(lists.valid.device)
        with torch.no_grad():
            output = net.read(*lists.pairs[:3])
            first, last = losses.start_end(output["span"], lists.pairs.region)
        relevance = output["relevance"].view_as(lists.valid)
        return lists._replace(taught=SoftLabels(relevance, first.exp(), last.exp()))

    def save(self, model: CompactNet, folder: Path) -> None:
        """Write what the next recipe starts from."""
        save_start(model, self.vocabulary, folder)

    def data(self) -> list[Path]:
        paths: list[Path] = self.options.data.paths()
        if self.options.topics.share:
            paths += self.options.data.topic_files
        return paths


SPEC = TaskSpec(EncoderOptions, EncoderTask)
