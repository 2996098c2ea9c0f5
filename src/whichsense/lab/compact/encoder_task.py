"""Task compact-encoder: the encoder learns to rank and read lists of passages."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.errors import BadConfig
from whichsense.files import sha256
from whichsense.lab.compact import losses
from whichsense.lab.compact import losses as compact_losses
from whichsense.lab.compact.batches_of_lists import (
    SYNTHETIC_FILE,
    TEACHER_TOKENS,
    ListBatch,
    SoftLabels,
    SyntheticQuestions,
    TeacherScores,
    build_list_batch,
    build_synthetic_lists,
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
from whichsense.lab.compact.teacher import ListTask, score_lists
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
    kept: float = 0.0
    """The share of the weights that training started from in the weights that are saved: a mean of both."""
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
    """The source of soft labels (distillation)."""

    model: str = ""
    """The model folder of compact-teacher; empty: no teacher."""
    itself: float = 0.0
    """The share of batches whose soft labels come from the model that training started from (self-distillation)."""


@frozen
class SyntheticLists:
    """A recipe's `[made]`: lists of synthetic questions."""

    folder: str = ""
    """The model folder of compact-asker, which wrote questions for the same lists; empty: there are none."""
    share: float = 0.5
    """Of the lists that are drawn."""
    emptied: float = 0.2
    """How often the passages that hold the answer are left out, so that the list has no answer."""


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
    made: SyntheticLists = SyntheticLists()
    topics: _TopicLists = _TopicLists()

    def check(self) -> None:
        """Raise BadConfig for values that contradict each other."""
        if not _is_share(self.made.share) or not 0 <= self.made.emptied <= 1:
            raise BadConfig(
                "made.share must be at least 0 and less than 1; made.emptied must be between 0 and 1."
            )
        if not _is_share(self.topics.share) or not 0 <= self.topics.thinned <= 1:
            raise BadConfig(
                "topics.share must be at least 0 and less than 1; topics.thinned must be between 0 and 1."
            )
        # A share without topics would silently draw nothing.
        if self.topics.share and not self.data.topics:
            raise BadConfig(
                "data.topics is empty: give a folder with topics, or 'topics', which ships with the recipes."
            )
        needs_start = self.model.kept or self.teacher.itself
        if needs_start and not self.model.start:
            raise BadConfig(
                "model.kept and teacher.itself refer to the model that training starts from: give model.start."
            )


def _is_share(value: float) -> bool:
    """Something must be left for the lists of datasets."""
    return 0 <= value < 1


# Groups of lists that the encoder learns from: datasets, synthetic questions, topics.

# Of a passage that holds an answer, in a list of a topic that is thinned.
_TOPIC_SURVIVAL = 0.5


@frozen
class ListGroup:
    """Lists of one origin, and how they take part in training."""

    lists: Pack
    share: float = 1.0
    """The group's share of the lists that are drawn."""
    score_folder: str | None = ""
    """Where the teacher's scores of these lists are stored; empty: nowhere. None: the teacher is not asked."""
    thinning: float | None = None
    """How often passages that hold an answer are left out of a list; None: never."""
    survival: float = 0.0
    """The probability that such a passage stays in a list that is thinned."""
    same_passages: bool = False
    """Whether the lists refer to the passages of the groups before."""

    def thin(self, slots: list[int], lists: Pack, rng: np.random.Generator) -> list[int]:
        """Slots without some that hold an answer, unless no slot would be left."""
        if self.thinning is None or rng.random() >= self.thinning:
            return slots
        remaining = []
        for slot in slots:
            answers = len(lists.spans[slot]) > 0
            if not answers or (self.survival and rng.random() < self.survival):
                remaining.append(slot)
        return remaining or slots


def build_groups(
    options: EncoderOptions, lists: Pack, vocabulary: Sequence[str]
) -> list[ListGroup]:
    """The groups that a recipe learns from: lists of datasets, of synthetic questions, of topics."""
    made = options.made
    topics = options.topics
    groups = [ListGroup(lists, score_folder=options.lists.folder)]
    if made.folder:
        synthetic = SyntheticQuestions.load(Path(made.folder), lists)
        if len(synthetic):
            groups = [
                replace(groups[0], share=1 - made.share),
                _synthetic_group(made, lists, synthetic, vocabulary),
            ]
    if topics.share:
        # The other groups share what topics leave.
        others = 1 - topics.share
        groups = [replace(group, share=group.share * others) for group in groups]
        groups.append(_topic_group(options, vocabulary))
    return groups


def _synthetic_group(
    made: SyntheticLists, lists: Pack, synthetic: SyntheticQuestions, vocabulary: Sequence[str]
) -> ListGroup:
    """Synthetic questions over the passages of the datasets' lists."""
    folder = Path(made.folder)
    digest = sha256(folder / SYNTHETIC_FILE)[:12]
    return ListGroup(
        build_synthetic_lists(lists, synthetic, vocabulary),
        share=made.share,
        score_folder=str(folder / f"of-{digest}"),
        thinning=made.emptied,
        same_passages=True,
    )


def _topic_group(options: EncoderOptions, vocabulary: Sequence[str]) -> ListGroup:
    """Topics, whose gold answers are complete: the teacher is not asked."""
    topics, _ = split_topics(options.data)
    lists = build_topic_lists(topics, vocabulary)
    return ListGroup(
        lists,
        share=options.topics.share,
        score_folder=None,
        thinning=options.topics.thinned,
        survival=_TOPIC_SURVIVAL,
    )


def merge_lists(groups: Sequence[ListGroup]) -> Pack:
    """The lists of all groups, in their order."""
    merged = groups[0].lists
    for group in groups[1:]:
        # Synthetic questions refer to rows of the datasets' passages.
        if group.same_passages:
            merged = merged.extended_with(group.lists)
        else:
            merged = Pack.concatenate([merged, group.lists])
    return merged


def group_probabilities(
    groups: Sequence[ListGroup], lists: Pack, weights: Mapping[str, float]
) -> NDArray[np.float64]:
    """How often each list is drawn: together the lists of a group have the group's share."""
    # Weights hold within a group; between groups, shares do.
    ends = np.cumsum([len(group.lists) for group in groups])
    parts = np.split(list_probabilities(lists, weights), ends[:-1])
    scaled = [
        normalize_weights(group.share, part) for group, part in zip(groups, parts, strict=True)
    ]
    return np.concatenate(scaled)


def score_groups(groups: Sequence[ListGroup], teacher: Path, longest: int) -> TeacherScores:
    """The teacher's scores of all slots; zeros where it is not asked.

    Groups are scored one by one: the stored scores of a group stay valid whatever the others are.
    """
    parts = []
    for group in groups:
        if group.score_folder is None:
            parts.append(TeacherScores.zeros(len(group.lists.slots.values)))
        else:
            parts.append(score_lists(teacher, group.lists, group.score_folder, longest))
    return TeacherScores.concatenate(parts)


# Task compact-encoder: the small encoder learns to rank and to read lists of passages.
#
# Four recipes train it one after another: compact-reader, compact-encoder (quantization-aware),
# compact-asked (with synthetic questions) and compact-topics. They differ in the groups of lists that
# a batch is drawn from, in the soft labels (of the teacher, or of the model that training started
# from), and in the weights that are frozen.

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


class EncoderBatch(NamedTuple):
    """Lists, and whether their soft labels come from the model that training started from."""

    lists: ListBatch
    itself: bool = False


class EncoderTask(ListTask[CompactNet, EncoderBatch]):
    def __init__(self, options: EncoderOptions) -> None:
        options.check()
        model = options.model
        # A start brings its own vocabulary.
        self.start: Start | None = load_start(model.start) if model.start else None
        own = self.start.vocabulary if self.start else load_vocabulary(model.base)
        super().__init__(options, own)
        self.groups = self.build_groups(self.train)
        self.train = merge_lists(self.groups)
        self._start_net: CompactNet | None = None  # set by `build`

    def build_groups(self, lists: Pack) -> list[ListGroup]:
        """The groups of lists that a batch is drawn from."""
        return build_groups(self.options, lists, self.vocabulary)

    @cached_property
    def scores(self) -> TeacherScores | None:
        """The teacher's scores of all slots; None without a teacher."""
        teacher = self.options.teacher.model
        if not teacher:
            return None
        return score_groups(self.groups, Path(teacher), self.options.model.longest)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """How often each list is drawn."""
        return group_probabilities(self.groups, self.train, self.options.data.weights)

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
        """The base with new heads, or the model that training starts from; with int8 arithmetic if that is wanted."""
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
        # A frozen copy gives the soft labels of self-distillation.
        if self.options.teacher.itself:
            self._start_net = copy.deepcopy(net).eval().requires_grad_(False)
        return net

    def _quantize(self, net: CompactNet) -> None:
        """Turn int8 arithmetic on. Scales that were never learnt begin as a batch of lists suggests."""
        if not is_calibrated(net):
            # The same lists in each run.
            rng = np.random.default_rng(0)
            count = min(_CALIBRATION_LISTS, len(self.train))
            numbers = rng.choice(len(self.train), count, p=self.probabilities)
            calibrate(net, self.sample_batch(numbers.tolist(), rng).pairs)
        set_quantization(net, weights=True, activations=True)

    def batches(self, epoch: int, seed: int) -> Any:
        _ = self.scores  # computed before a thread or another process needs them
        return super().batches(epoch, seed)

    def make_batch(self, numbers: Sequence[int], rng: np.random.Generator) -> EncoderBatch:
        batch = self.sample_batch(numbers, rng)
        return EncoderBatch(batch, bool(rng.random() < self.options.teacher.itself))

    def sample_batch(
        self, numbers: Sequence[int], rng: np.random.Generator, *, taught: bool = True
    ) -> ListBatch:
        """A batch of some slots of each list; `taught`: with the teacher's scores, if there are any."""
        # All lists of a batch share one generator: their order matters.
        slots = [self.sample_slots(number, rng) for number in numbers]
        return build_list_batch(
            self.train,
            numbers,
            slots,
            self.options.model.longest,
            self.scores if taught else None,
            alone=True,
        )

    def sample_slots(self, number: int, rng: np.random.Generator) -> list[int]:
        """The slots of a list that a batch holds."""
        slots = sample_slots(self.train, number, self.options.draw.passages, rng)
        return self._group_of(number).thin(slots, self.train, rng)

    def _group_of(self, number: int) -> ListGroup:
        for group in self.groups:
            if number < len(group.lists):
                return group
            number -= len(group.lists)
        raise IndexError(number)

    def loss(
        self, model: CompactNet, batch: EncoderBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        lists = self.with_own_labels(batch.lists) if batch.itself else batch.lists
        output = model.read(*lists.pairs[:3])
        # An answer with and without its article is the same.
        articles = torch.tensor(self._articles, device=lists.valid.device)
        parts = losses.read(output, lists)
        parts["verdict"] = compact_losses.loss(model, output, lists, articles)
        total = parts["relevance"].new_zeros(())
        for name, part in parts.items():
            total = total + _LOSS_WEIGHTS[name] * part
        logged: dict[str, float | Tensor] = {name: part.detach() for name, part in parts.items()}
        return total, logged

    def with_own_labels(self, lists: ListBatch) -> ListBatch:
        """The batch with soft labels of the model that training started from (self-distillation)."""
        assert self._start_net is not None
        net = self._start_net.to(lists.valid.device)
        with torch.no_grad():
            output = net.read(*lists.pairs[:3])
            # Pairs × 2 × tokens
            first, last = losses.start_end(output["span"], lists.pairs.region)
            best = torch.stack([first, last], 1).topk(TEACHER_TOKENS, dim=2)
        relevance = output["relevance"].view_as(lists.valid)
        return lists._replace(taught=SoftLabels(relevance, best.indices, best.values.exp()))

    def read(self, model: CompactNet, batch: ListBatch) -> dict[str, Tensor]:
        return model.read(*batch.pairs[:3])

    def save(self, model: CompactNet, folder: Path) -> None:
        """What the next recipe starts from."""
        kept = self.options.model.kept
        # Averaging keeps what training on new data would forget.
        if self.start is not None and kept:
            model = self.start.averaged(model, kept)
        save_start(model, self.vocabulary, folder)

    def data(self) -> list[Path]:
        paths: list[Path] = self.options.data.paths()
        if self.options.topics.share:
            paths += self.options.data.topic_files
        return paths


SPEC = TaskSpec(EncoderOptions, EncoderTask)
