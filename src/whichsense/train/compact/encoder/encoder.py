"""Task compact-encoder: the small encoder learns to rank and to read lists of passages.

Four recipes train it one after another: compact-reader, compact-encoder (quantization-aware), compact-asked (with
synthetic questions) and compact-topics. They differ in the groups of lists that a batch is drawn from, in the soft
labels (of the teacher, or of the model that training started from), and in the weights that are frozen.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.models.bases import load_base
from whichsense.models.compact.encoder.net import (
    CompactConfig,
    CompactNet,
    from_bert,
    set_quantization,
)
from whichsense.train.compact.data.batch import (
    TEACHER_TOKENS,
    ListBatch,
    SoftLabels,
    TeacherScores,
    build_list_batch,
    sample_slots,
)
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.tokenizer import CachedTokenizer
from whichsense.train.compact.encoder import losses, verdicts
from whichsense.train.compact.encoder.base import encoder_shape, load_vocabulary
from whichsense.train.compact.encoder.calibration import calibrate, is_calibrated
from whichsense.train.compact.encoder.groups import (
    ListGroup,
    build_groups,
    group_probabilities,
    merge_lists,
    score_groups,
)
from whichsense.train.compact.encoder.list_task import (
    batch_rng,
    draw_numbers,
    load_training_lists,
)
from whichsense.train.compact.encoder.measures import evaluate_lists
from whichsense.train.compact.encoder.options import EncoderOptions
from whichsense.train.compact.encoder.start import Start, load_start, save_start
from whichsense.train.loop.batches import Lazy
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tiny.encoders import located

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


class EncoderTask(Task[CompactNet, EncoderBatch]):
    """The best model is the one whose best string of a list is most often a gold answer."""

    metric = "exact"
    higher_is_better = True

    def __init__(self, options: EncoderOptions) -> None:
        options.check()
        self.options = options
        model = options.model
        # A start brings its own vocabulary.
        self.start: Start | None = None
        if model.start:
            self.start = load_start(model.start)
            self.vocabulary = self.start.vocabulary
        else:
            self.vocabulary = load_vocabulary(model.base)
        self.tokenizer = CachedTokenizer.of(self.vocabulary)
        lists, self.dev = load_training_lists(
            options.data, options.lists, self.vocabulary, model.longest
        )
        self.groups = self.build_groups(lists)
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
            base = load_base(located(model.base))
            net = from_bert(base.state_dict(), self.shape)
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
        size = self.options.draw.lists
        numbers = draw_numbers(self.probabilities, size, epoch, seed)

        def build_batch(item: tuple[int, list[int]]) -> EncoderBatch:
            number, lists = item
            rng = batch_rng(seed, epoch, number)
            batch = self.sample_batch(lists, rng)
            itself = bool(rng.random() < self.options.teacher.itself)
            return EncoderBatch(batch, itself)

        return Lazy(numbers, build_batch)

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
        parts["verdict"] = verdicts.loss(model, output, lists, articles)
        total = parts["relevance"].new_zeros(())
        for name, part in parts.items():
            total = total + _LOSS_WEIGHTS[name] * part
        logged: dict[str, float | Tensor] = {}
        for name, part in parts.items():
            logged[name] = part.detach()
        return total, logged

    def with_own_labels(self, lists: ListBatch) -> ListBatch:
        """The batch with soft labels of the model that training started from (self-distillation)."""
        assert self._start_net is not None
        net = self._start_net.to(lists.valid.device)
        with torch.no_grad():
            output = net.read(*lists.pairs[:3])
            # Pairs × 2 × tokens
            first, last = losses.start_end(output["span"], lists.pairs.region)
            logs = torch.stack([first, last], 1)
            best = logs.topk(TEACHER_TOKENS, dim=2)
        relevance = output["relevance"].view_as(lists.valid)
        return lists._replace(
            taught=SoftLabels(relevance, best.indices, best.values.exp())
        )

    def evaluate(self, model: CompactNet) -> dict[str, float]:
        return evaluate_lists(
            lambda batch: model.read(*batch.pairs[:3]),
            self.dev,
            self.tokenizer,
            self.options.model.longest,
            model.span.weight.device,
        )

    def save(self, model: CompactNet, folder: Path) -> None:
        """What the next recipe starts from."""
        kept = self.options.model.kept
        # Averaging keeps what training on new data would forget.
        if self.start is not None and kept:
            model = self.start.averaged(model, kept)
        save_start(model, self.vocabulary, folder)

    def data(self) -> list[Path]:
        paths = self.options.data.paths()
        if self.options.topics.share:
            paths += self.options.data.topic_files
        return paths


SPEC = TaskSpec(EncoderOptions, EncoderTask)
