"""DPR's dual encoder: a question is brought near its passage and away from all other passages of the batch."""

from __future__ import annotations

import hashlib
import random
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
from whichsense.train.tasks.encoders.bert import Model
from whichsense.train.tasks.encoders.reranker import Item, listed
from whichsense.train.tasks.encoders.retrieval_pool import pool_metrics, pooled
from whichsense.train.tasks.evidence import Data
from whichsense.types import Passage

TASK = dual_encoder.TASK
_MEASURED = 1000  # passages whose vectors tell how long vectors are


@dataclass(frozen=True, slots=True)
class Pairs:
    """What a batch is made of."""

    batch: int = 128
    hard: int = 1
    """Passages for each question that the index ranks high and that do not answer it."""
    depth: int = 100


@dataclass(frozen=True, slots=True)
class DualEncoderOptions:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    pairs: Pairs = field(default_factory=Pairs)


class DualEncoderTask(Task[DualEncoder, dict[str, Any]]):
    """In-batch and hard negatives. Chosen by how high dev questions rank their passage in the pool of all of theirs."""

    metric, higher_is_better = "pool_mrr", True

    def __init__(self, options: DualEncoderOptions) -> None:
        self.options, self.inputs = options, options.model.inputs()
        evidence = options.data.evidence(options.pairs.depth)
        self.items = listed(options.data.training(), evidence)
        self.dev = listed(options.data.development(), evidence)

    def build(self) -> DualEncoder:
        model = self.options.model
        return model.begun(DualEncoder(model.encoder(), model.encoder()), TASK)

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        size = self.options.pairs.batch
        places = shuffle_batches(len(self.items), size, epoch, seed)
        if (
            len(places) > 1
        ):  # processes share their passages, so that all batches must be of one size
            places = [batch for batch in places if len(batch) == size]
        return Lazy(
            places,
            lambda batch: self._collated(
                [self.items[place] for place in batch], f"{seed}/{epoch}"
            ),
        )

    def _collated(self, items: Sequence[Item], luck: str) -> dict[str, Any]:
        own, hard = [], []
        for item in items:
            dice = random.Random(f"{luck}/{item.question.id}")
            own.append(dice.choice(item.good))
            # A question with too few hard negatives repeats one: all bring equally many, so that processes can share.
            hard += [dice.choice(item.bad) for _ in range(self.options.pairs.hard)]
        pad = self.inputs.tokenizer.pad_token_id
        most = max(len(item.good) for item in items)
        good = torch.full((len(items), most), -1)
        for number, item in enumerate(items):
            good[number, : len(item.good)] = torch.tensor(
                [_number(passage) for passage in item.good]
            )
        return {
            "questions": padded(
                self.inputs.single([item.question.text for item in items]), pad
            ),
            "passages": padded(
                self.inputs.passages([(p.title, p.text) for p in (*own, *hard)]), pad
            ),
            "numbers": torch.tensor([_number(passage) for passage in (*own, *hard)]),
            "good": good,
        }

    def loss(self, model: DualEncoder, batch: dict[str, Any]) -> Tensor:
        """Passages of all processes count as negatives; one that also answers the question does not."""
        here = current_processes()
        questions, passages = model(batch)
        everything, numbers = (
            here.gather(passages),
            here.gather_constants(batch["numbers"]),
        )
        scores = similarity(questions, everything)
        own = torch.arange(len(questions), device=scores.device) + here.rank * len(
            passages
        )
        also = (numbers[None, :, None] == batch["good"][:, None, :]).any(-1)
        also[torch.arange(len(questions), device=scores.device), own] = False
        return functional.cross_entropy(scores.masked_fill(also, -torch.inf), own)

    def evaluate(self, model: DualEncoder) -> dict[str, float]:
        pad = self.inputs.tokenizer.pad_token_id
        pool = pooled(self.dev)
        passages = encode(
            model,
            "passage",
            self.inputs.passages([(p.title, p.text) for p in pool.values()]),
            pad,
        )
        questions = encode(
            model,
            "question",
            self.inputs.single([item.question.text for item in self.dev]),
            pad,
        )
        return pool_metrics(self.dev, pool, questions @ passages.T)

    def save(self, model: DualEncoder, folder: Path) -> None:
        passages = [
            (passage.title, passage.text)
            for item in self.items
            for passage in (*item.good, *item.bad)
        ]
        dual_encoder.save(
            folder, model, self.inputs, list(dict.fromkeys(passages))[:_MEASURED]
        )

    def data(self) -> list[Path]:
        return self.options.data.paths()


def _number(passage: Passage) -> int:
    """A passage's id as a number that is the same in every process."""
    return int.from_bytes(
        hashlib.blake2b(passage.id.encode(), digest_size=7).digest(), "big"
    )


SPEC = TaskSpec(DualEncoderOptions, DualEncoderTask)
