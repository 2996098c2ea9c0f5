"""Task compact-verifier: a second late half of the encoder learns to ask rewrites again.

It starts from the encoder, shares its first layers and its word vectors, and learns from ordinary lists, from topics,
from true and false rewrites of topics' questions, and what is fluent English. The head that gives the encoder's
ambiguity gives the verifier's fluency: it reads a rewrite beside its question, which takes the place of a title.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from whichsense.errors import BadConfig
from whichsense.models.compact.encoder.inputs import (
    LONGEST_QUESTION,
    LONGEST_TITLE,
    pair,
)
from whichsense.models.compact.encoder.net import CompactNet
from whichsense.train.compact.data.batch import ListBatch, build_list_batch
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.topics import Topics, split_topics
from whichsense.train.compact.encoder import losses
from whichsense.train.compact.encoder.encoder import EncoderBatch, EncoderTask
from whichsense.train.compact.encoder.groups import ListGroup, build_groups
from whichsense.train.compact.encoder.options import EncoderOptions
from whichsense.train.compact.verifier.fluency import FluentText, break_text
from whichsense.train.compact.verifier.rewrite_lists import (
    BROKEN,
    build_judged_lists,
    build_rewrite_lists,
)
from whichsense.train.loop.batches import Lazy
from whichsense.train.loop.optimizer import to_device
from whichsense.train.loop.task import TaskSpec

_FLUENCY_WEIGHT = 0.5
_LONGEST_TEXT = LONGEST_QUESTION + LONGEST_TITLE + 4  # tokens, with four special ones
_JUDGED_TEXTS = 0.5  # of the texts of a batch: rewrites whose fluency a reader judged
_EVALUATED_LISTS = 16
_EVALUATED_TEXTS = 512


@dataclass(frozen=True, slots=True)
class _RewriteLists:
    """A recipe's `[rewrites]`: lists of the topics' rewrites."""

    share: float = 0.4
    """Of the lists that are drawn."""
    emptied: float = 0.15
    """How often the passages that answer are left out, so that the rewrite has no answer."""
    judged: float = 0.25
    """The share of the rewrites that readers judged, if there are any."""
    texts: int = 96
    """Texts of a batch whose fluency is learnt; half of them are broken."""


@dataclass(frozen=True, slots=True)
class VerifierOptions(EncoderOptions):
    rewrites: _RewriteLists = field(default_factory=_RewriteLists)


class FluencyBatch(NamedTuple):
    """Texts as pairs without a passage (texts × tokens), and whether each is fluent."""

    ids: Tensor
    types: Tensor
    mask: Tensor
    fluent: Tensor


class VerifierBatch(NamedTuple):
    """Lists as the encoder learns them, and texts."""

    lists: EncoderBatch
    texts: FluencyBatch


class VerifierTask(EncoderTask):
    """The best model tells true rewrites of held-out topics from false ones best (area under the curve)."""

    metric = "asked_again"

    options: VerifierOptions

    def __init__(self, options: VerifierOptions) -> None:
        if not options.data.topics:
            raise BadConfig(
                "compact-verifier learns from the rewrites of topics: give data.topics."
            )
        self.topics, self.held_out = split_topics(options.data)
        super().__init__(options)
        self.true_or_false = build_rewrite_lists(self.held_out, self.vocabulary)
        self.fluent, self.judged_texts = _collect_texts(self.topics)
        self.fluent += _gold_rewrites(self.groups[0].lists)

    def build_groups(self, lists: Pack) -> list[ListGroup]:
        """The encoder's groups, and the rewrites of the topics that are learnt from."""
        settings = self.options.rewrites
        groups = []
        for group in build_groups(self.options, lists, self.vocabulary):
            share = group.share * (1 - settings.share)
            groups.append(replace(group, share=share))
        rewrites = ListGroup(
            build_rewrite_lists(self.topics, self.vocabulary),
            share=settings.share,
            score_folder=None,
            thinning=settings.emptied,
        )
        judged = build_judged_lists(self.topics, self.vocabulary)
        if not len(judged):
            return [*groups, rewrites]
        share = settings.judged * settings.share
        return [
            *groups,
            replace(rewrites, share=settings.share - share),
            ListGroup(judged, share, score_folder=None),
        ]

    def build(self) -> CompactNet:
        """The encoder, whose tables and first layers stay as they are."""
        net = super().build()
        for part in net.first_half:
            part.requires_grad_(False)
        return net

    def batches(self, epoch: int, seed: int) -> Any:
        lists = super().batches(epoch, seed)

        def build_batch(number: int) -> VerifierBatch:
            rng = random.Random(f"{seed}/{epoch}/{number}/texts")
            texts = self._draw_texts(self.options.rewrites.texts, rng)
            return VerifierBatch(lists[number], texts)

        return Lazy(range(len(lists)), build_batch)

    def _draw_texts(self, count: int, rng: random.Random) -> FluencyBatch:
        """Texts that readers judged, and written ones, every other of which is broken."""
        texts: list[tuple[FluentText, bool]] = []
        while len(texts) < count:
            if self.judged_texts and rng.random() < _JUDGED_TEXTS:
                texts.append(rng.choice(self.judged_texts))
                continue
            one = rng.choice(self.fluent)
            if len(texts) % 2:
                texts.append((one, True))
                continue
            broken = break_text(one, self.fluent, rng)
            if broken is not None:
                texts.append((replace(one, text=broken), False))
        return self._fluency_batch(texts)

    def _fluency_batch(self, texts: Sequence[tuple[FluentText, bool]]) -> FluencyBatch:
        shape = (len(texts), _LONGEST_TEXT)
        ids = np.zeros(shape, np.int64)
        types = np.zeros(shape, np.int64)
        mask = np.zeros(shape, bool)
        for row, (one, _) in enumerate(texts):
            pieces = self.tokenizer.ids(one.text, LONGEST_QUESTION)
            beside = pair(self.tokenizer, pieces, one.prompt, "")
            size = len(beside)
            ids[row, :size] = beside.ids
            types[row, :size] = beside.types
            mask[row, :size] = True
        fluent = torch.tensor([float(label) for _, label in texts])
        return FluencyBatch(
            torch.from_numpy(ids),
            torch.from_numpy(types),
            torch.from_numpy(mask),
            fluent,
        )

    # `batches` gives batches of this task's own type, which hold the encoder's.
    def loss(  # type: ignore[override]
        self, model: CompactNet, batch: VerifierBatch
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        total, logged = super().loss(model, batch.lists)
        texts = batch.texts
        logits = model.read(texts.ids, texts.types, texts.mask)["ambiguity"]
        fluency = F.binary_cross_entropy_with_logits(logits, texts.fluent)
        return total + _FLUENCY_WEIGHT * fluency, logged | {"fluent": fluency.detach()}

    @torch.no_grad()
    def evaluate(self, model: CompactNet) -> dict[str, float]:
        """Areas under the curve: of asking held-out rewrites again, and of fluency; and the encoder's own measures."""
        device = model.span.weight.device
        # Few topics may leave none that is held out.
        mass = [np.zeros(0, np.float32)]
        for prepared in self._held_out_batches():
            batch = to_device(prepared, device)
            output = model.read(*batch.pairs[:3])
            logs = losses.shares(output["relevance"], batch.valid)
            first, last = losses.start_end(output["span"], batch.pairs.region)
            mass.append(losses.answer_mass(batch, logs, first, last).cpu().numpy())
        refuted = np.array([one.refuted for one in self.true_or_false.asked], bool)
        texts = self._draw_texts(_EVALUATED_TEXTS, random.Random(0))
        texts = to_device(texts, device)
        logits = model.read(texts.ids, texts.types, texts.mask)["ambiguity"]
        fluent = texts.fluent.cpu().numpy() > 0
        measures = super().evaluate(model)
        measures["asked_again"] = area_under_curve(np.concatenate(mass), ~refuted)
        measures["fluency"] = area_under_curve(logits.cpu().numpy(), fluent)
        return measures

    def _held_out_batches(self) -> Iterator[ListBatch]:
        pack = self.true_or_false
        for start in range(0, len(pack), _EVALUATED_LISTS):
            numbers = range(start, min(start + _EVALUATED_LISTS, len(pack)))
            slots = [pack.slot_range(number) for number in numbers]
            yield build_list_batch(pack, numbers, slots, self.options.model.longest)

    def data(self) -> list[Path]:
        return [*self.options.data.paths(), *self.options.data.topic_files]


def _collect_texts(
    topics: Topics,
) -> tuple[list[FluentText], list[tuple[FluentText, bool]]]:
    """The rewrites of topics, and those that were judged, with their marks; the ones called broken are among these."""
    fluent = []
    judged = []
    for question in topics.questions:
        for rewrite in topics.rewrites.get(question.id, ()):
            text = FluentText(rewrite.question, question.text)
            if rewrite.kind == BROKEN:
                judged.append((text, False))
            else:
                fluent.append(text)
    for line in topics.judged:
        judged.append((FluentText(line.rewrite, line.question), line.fluent))
    return fluent, judged


def _gold_rewrites(lists: Pack) -> Iterator[FluentText]:
    """The rewrites that annotators wrote for the questions of lists."""
    for question in lists.asked:
        for reading in question.rewritings:
            for rewrite in reading.rewrites:
                yield FluentText(rewrite, question.text)


def area_under_curve(scores: NDArray[Any], labels: NDArray[Any]) -> float:
    """The probability that a positive has a higher score than a negative; ties count half."""
    positives = np.sort(scores[labels])
    negatives = scores[~labels]
    if not len(positives) or not len(negatives):
        return 0.5
    below = np.searchsorted(positives, negatives, "left")
    up_to = np.searchsorted(positives, negatives, "right")
    wins = len(positives) - (below + up_to) / 2
    return float(wins.mean() / len(positives))


SPEC = TaskSpec(VerifierOptions, VerifierTask)
