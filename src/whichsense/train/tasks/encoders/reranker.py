"""The reranker: a cross encoder that tells the one good passage of a list from the others (REFUEL, appendix A)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from whichsense.models.bert import saved
from whichsense.models.bert.cross_encoder import CrossEncoder, relevances
from whichsense.models.bert.inputs import InputRow, padded
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.encoders.bert import EncoderModel
from whichsense.train.tasks.encoders.passage_lists import PassageList, build_lists
from whichsense.train.tasks.encoders.retrieval_metrics import ranking_metrics
from whichsense.types import Passage

_TASK = "reranker"


@dataclass(frozen=True, slots=True)
class _RerankerLists:
    """A recipe's `[lists]`: what a list of passages is made of."""

    batch: int = 16
    negatives: int = 31
    depth: int = 100
    """Hits that passages to learn from are drawn from."""
    candidates: int = 1000
    """Hits that are reranked in evaluation: the paper's N."""
    keep: int = 100
    """The first `keep` passages must hold the answers: the paper's K."""


@dataclass(frozen=True, slots=True)
class _RerankerOptions:
    model: EncoderModel = field(default_factory=EncoderModel)
    data: TrainingData = field(default_factory=TrainingData)
    lists: _RerankerLists = field(default_factory=_RerankerLists)


class _RerankerTask(Task[CrossEncoder, dict[str, Any]]):
    """Listwise: the likelihood of one good passage is raised beside `negatives` others."""

    higher_is_better = True

    def __init__(self, options: _RerankerOptions) -> None:
        data, lists = options.data, options.lists
        self.options = options
        self.inputs = options.model.inputs()
        self.metric = f"answers_at_{lists.keep}"
        self.lists = build_lists(data.training(), data.evidence(lists.depth))
        self.dev = data.development()
        self.dev_evidence = data.searched(self.dev, lists.candidates)

    def build(self) -> CrossEncoder:
        model = CrossEncoder(self.options.model.encoder(), reads=False)
        return self.options.model.load_start(model, _TASK)

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        def collate(places: list[int]) -> dict[str, Any]:
            lists = [self.lists[place] for place in places]
            return self._collate(lists, f"{seed}/{epoch}")

        size = self.options.lists.batch
        return Lazy(shuffle_batches(len(self.lists), size, epoch, seed), collate)

    def _collate(self, lists: Sequence[PassageList], seed: str) -> dict[str, Any]:
        """`rows`: one for each passage; `sizes`: the length of each list, the good passage first."""
        rows: list[InputRow] = []
        sizes = []
        for one in lists:
            rng = one.rng(seed)
            count = min(len(one.bad), self.options.lists.negatives)
            negatives = rng.sample(one.bad, count)
            passages = [rng.choice(one.good), *negatives]
            rows += self.inputs.pairs(one.question.text, passages, places=False)
            sizes.append(len(passages))
        pad = self.inputs.tokenizer.pad_token_id
        return {"rows": padded(rows, pad), "sizes": sizes}

    def loss(self, model: CrossEncoder, batch: dict[str, Any]) -> Tensor:
        """The mean over lists of minus the log likelihood of the first passage."""
        losses = []
        for scores in torch.split(model(batch["rows"]).relevance, batch["sizes"]):
            losses.append(scores.logsumexp(0) - scores[0])
        return torch.stack(losses).mean()

    def evaluate(self, model: CrossEncoder) -> dict[str, float]:
        orders = []
        for question in self.dev:
            passages = [hit.passage for hit in self.dev_evidence.hits(question.text)]
            scores = relevances(model, self.inputs, question.text, passages)
            orders.append(_sort_by_score(passages, scores))
        return ranking_metrics(self.dev, orders, self.options.lists.keep)

    def save(self, model: CrossEncoder, folder: Path) -> None:
        saved.save(
            folder, model, self.inputs, task=_TASK, config=model.config, options={}
        )

    def data(self) -> list[Path]:
        return self.options.data.paths()


def _sort_by_score(
    passages: Sequence[Passage], scores: Sequence[float]
) -> list[Passage]:
    """The highest score first; equal ones keep their order."""
    places = sorted(range(len(passages)), key=lambda place: -scores[place])
    return [passages[place] for place in places]


SPEC = TaskSpec(_RerankerOptions, _RerankerTask)
