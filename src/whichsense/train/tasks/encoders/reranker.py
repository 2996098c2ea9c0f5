"""The reranker: a cross encoder that tells the one good passage of a list from the others (REFUEL, appendix A)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.metrics.retrieval import (
    answer_ranks,
    answer_recall,
    any_answer_recall,
    reciprocal_rank,
)
from whichsense.models.bert import saved
from whichsense.models.bert.cross_encoder import CrossEncoder, relevances
from whichsense.models.bert.inputs import InputRow, padded
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tasks.encoders.bert import Model
from whichsense.train.tasks.evidence import Data, Evidence, gold_ids, holders
from whichsense.types import Passage

TASK = "reranker"


@dataclass(frozen=True, slots=True)
class Lists:
    """What a list of passages is made of."""

    batch: int = 16
    negatives: int = 31
    depth: int = 100
    """Hits that passages to learn from are drawn from."""
    candidates: int = 1000
    """Hits that are reranked when the model is measured: the paper's N."""
    keep: int = 100
    """The best so many of which must hold the answers: the paper's K."""


@dataclass(frozen=True, slots=True)
class RerankerOptions:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    lists: Lists = field(default_factory=Lists)


@dataclass(frozen=True, slots=True)
class Item:
    """A question with passages that answer it and passages that do not."""

    question: Question
    good: tuple[Passage, ...]
    bad: tuple[Passage, ...]


def listed(questions: Sequence[Question], evidence: Evidence) -> list[Item]:
    """Questions whose hits, or annotated evidence, hold both kinds of passages; the others teach nothing."""
    evidence.search([question.text for question in questions])
    items = []
    for question in questions:
        passages = [hit.passage for hit in evidence.hits(question.text)]
        flags = holders(question, passages)
        good = {
            passage.id: passage
            for passage, flag in zip(passages, flags, strict=True)
            if flag
        }
        good |= {
            key: evidence.passage(key)
            for key in sorted(gold_ids(question))
            if key not in good
        }
        bad = tuple(
            passage for passage, flag in zip(passages, flags, strict=True) if not flag
        )
        if good and bad:
            items.append(Item(question, tuple(good.values()), bad))
    if not items:
        raise BadInput(
            "For no training question the index found a passage that answers it beside others that do not."
        )
    return items


class RerankerTask(Task[CrossEncoder, dict[str, Any]]):
    """Listwise: one good passage and `negatives` others, the likelihood of the good one is raised."""

    higher_is_better = True

    def __init__(self, options: RerankerOptions) -> None:
        self.options, self.inputs = options, options.model.inputs()
        self.metric = f"answers_at_{options.lists.keep}"
        self.items = listed(
            options.data.training(), options.data.evidence(options.lists.depth)
        )
        self.dev = options.data.development()
        self.dev_evidence = options.data.searched(self.dev, options.lists.candidates)

    def build(self) -> CrossEncoder:
        return self.options.model.begun(
            CrossEncoder(self.options.model.encoder(), reads=False), TASK
        )

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        places = shuffle_batches(len(self.items), self.options.lists.batch, epoch, seed)
        return Lazy(
            places,
            lambda batch: self._collated(
                [self.items[place] for place in batch], f"{seed}/{epoch}"
            ),
        )

    def _collated(self, items: Sequence[Item], luck: str) -> dict[str, Any]:
        rows: list[InputRow] = []
        sizes = []
        for item in items:
            dice = random.Random(f"{luck}/{item.question.id}")
            bad = dice.sample(
                item.bad, min(len(item.bad), self.options.lists.negatives)
            )
            rows += self.inputs.pairs(
                item.question.text, [dice.choice(item.good), *bad], places=False
            )
            sizes.append(1 + len(bad))
        return {
            "rows": padded(rows, self.inputs.tokenizer.pad_token_id),
            "sizes": sizes,
        }

    def loss(self, model: CrossEncoder, batch: dict[str, Any]) -> Tensor:
        return listwise(model(batch["rows"]).relevance, batch["sizes"])

    def evaluate(self, model: CrossEncoder) -> dict[str, float]:
        orders = []
        for question in self.dev:
            passages = [hit.passage for hit in self.dev_evidence.hits(question.text)]
            scores = relevances(model, self.inputs, question.text, passages)
            orders.append(
                [
                    passages[place]
                    for place in sorted(
                        range(len(scores)), key=lambda place: -scores[place]
                    )
                ]
            )
        return recalls(self.dev, orders, self.options.lists.keep)

    def save(self, model: CrossEncoder, folder: Path) -> None:
        saved.save(
            folder, model, self.inputs, task=TASK, config=model.config, options={}
        )

    def data(self) -> list[Path]:
        return self.options.data.paths()


def listwise(scores: Tensor, sizes: Sequence[int]) -> Tensor:
    """The mean over lists of minus the log likelihood of the first entry among its list."""
    lists = torch.split(scores, list(sizes))
    return torch.stack([one.logsumexp(0) - one[0] for one in lists]).mean()


def recalls(
    questions: Sequence[Question], orders: Sequence[Sequence[Passage]], keep: int
) -> dict[str, float]:
    """Gold answers among the first `keep` passages, any gold answer in the first, and the mean reciprocal rank."""
    ranks = [
        answer_ranks(
            question.answers, [f"{passage.title} {passage.text}" for passage in order]
        )
        for question, order in zip(questions, orders, strict=True)
    ]
    every = [rank for found in ranks for rank in found]
    return {
        f"answers_at_{keep}": answer_recall(every, keep),
        "any_at_1": sum(any_answer_recall(found, 1) for found in ranks) / len(ranks),
        "mrr": sum(map(reciprocal_rank, ranks)) / len(ranks),
    }


SPEC = TaskSpec(RerankerOptions, RerankerTask)
