"""DPR's dual encoder: a question is brought near its passage and away from all other passages of the batch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from whichsense.models.bert import dual_encoder
from whichsense.models.bert.dual_encoder import DualEncoder, encode, similarity
from whichsense.models.bert.inputs import padded
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.processes import current_processes
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.encoders.bert import EncoderModel
from whichsense.train.tasks.encoders.passage_lists import (
    PassageList,
    build_lists,
    draw_pairs,
)
from whichsense.train.tasks.encoders.retrieval_metrics import passage_pool, pool_metrics
from whichsense.types import Passage

_MEASURED = 1000  # passages by which the length of vectors is measured


@dataclass(frozen=True, slots=True)
class _DualEncoderPairs:
    """A recipe's `[pairs]`: what a batch is made of."""

    batch: int = 128
    hard: int = 1
    """Passages for each question that the index ranks high and that do not answer it."""
    depth: int = 100


@dataclass(frozen=True, slots=True)
class _DualEncoderOptions:
    model: EncoderModel = field(default_factory=EncoderModel)
    data: TrainingData = field(default_factory=TrainingData)
    pairs: _DualEncoderPairs = field(default_factory=_DualEncoderPairs)


class _DualEncoderTask(Task[DualEncoder, dict[str, Any]]):
    """In-batch and hard negatives. Selected by the rank of dev questions' passages in the pool of all of them."""

    metric, higher_is_better = "pool_mrr", True

    def __init__(self, options: _DualEncoderOptions) -> None:
        self.options = options
        self.inputs = options.model.inputs()
        evidence = options.data.evidence(options.pairs.depth)
        self.lists = build_lists(options.data.training(), evidence)
        self.dev = build_lists(options.data.development(), evidence)

    def build(self) -> DualEncoder:
        model = self.options.model
        network = DualEncoder(model.encoder(), model.encoder())
        return model.load_start(network, dual_encoder.TASK)

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        def collate(places: list[int]) -> dict[str, Any]:
            lists = [self.lists[place] for place in places]
            return self._collate(lists, f"{seed}/{epoch}")

        size = self.options.pairs.batch
        batches = shuffle_batches(len(self.lists), size, epoch, seed)
        if len(batches) > 1:
            # Processes share their passages, so that all batches must be of one size.
            batches = [batch for batch in batches if len(batch) == size]
        return Lazy(batches, collate)

    def _collate(self, lists: Sequence[PassageList], seed: str) -> dict[str, Any]:
        """`passages`: one for each question, then the hard negatives; `numbers`: their ids; `good`: those of all
        passages that answer each question, [questions, most], -1 where there are fewer."""
        positives, negatives = draw_pairs(lists, self.options.pairs.hard, seed)
        passages = [*positives, *negatives]
        good_counts = [len(one.good) for one in lists]
        most = max(good_counts)
        good = torch.full((len(lists), most), -1)
        for row, one in enumerate(lists):
            good[row, : len(one.good)] = _passage_numbers(one.good)
        pad = self.inputs.tokenizer.pad_token_id
        questions = self.inputs.single([one.question.text for one in lists])
        texts = self.inputs.passages(_title_and_text(passages))
        return {
            "questions": padded(questions, pad),
            "passages": padded(texts, pad),
            "numbers": _passage_numbers(passages),
            "good": good,
        }

    def loss(self, model: DualEncoder, batch: dict[str, Any]) -> Tensor:
        """Passages of all processes are negatives, except those that also answer the question."""
        processes = current_processes()
        questions, passages = model(batch)
        all_passages = processes.gather(passages)
        numbers = processes.gather_constants(batch["numbers"])
        scores = similarity(questions, all_passages)
        rows = torch.arange(len(questions), device=scores.device)
        own = rows + processes.rank * len(passages)  # columns of each question's own
        # [questions, passages]: other passages that answer the question, too.
        also_good = (numbers[None, :, None] == batch["good"][:, None, :]).any(-1)
        also_good[rows, own] = False
        return functional.cross_entropy(scores.masked_fill(also_good, -torch.inf), own)

    def evaluate(self, model: DualEncoder) -> dict[str, float]:
        pad = self.inputs.tokenizer.pad_token_id
        pool = passage_pool(self.dev)
        texts = self.inputs.passages(_title_and_text(list(pool.values())))
        passages = encode(model, "passage", texts, pad)
        asked = self.inputs.single([one.question.text for one in self.dev])
        questions = encode(model, "question", asked, pad)
        return pool_metrics(self.dev, pool, questions @ passages.T)

    def save(self, model: DualEncoder, folder: Path) -> None:
        texts: dict[tuple[str, str], None] = {}
        for one in self.lists:
            texts |= dict.fromkeys(_title_and_text((*one.good, *one.bad)))
        dual_encoder.save(folder, model, self.inputs, list(texts)[:_MEASURED])

    def data(self) -> list[Path]:
        return self.options.data.paths()


def _title_and_text(passages: Sequence[Passage]) -> list[tuple[str, str]]:
    return [(passage.title, passage.text) for passage in passages]


def _passage_numbers(passages: Sequence[Passage]) -> Tensor:
    """The ids of passages as numbers that are the same in every process."""
    numbers = []
    for passage in passages:
        digest = hashlib.blake2b(passage.id.encode(), digest_size=7).digest()
        numbers.append(int.from_bytes(digest, "big"))
    return torch.tensor(numbers)


SPEC = TaskSpec(_DualEncoderOptions, _DualEncoderTask)
