"""The joint reranker: passages picked one after another, so that together they hold different answers (JPR)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from whichsense.datasets import Question
from whichsense.metrics.retrieval import all_answers_recall, answer_ranks
from whichsense.models.bert import saved
from whichsense.models.bert.inputs import InputRow, padded
from whichsense.models.bert.joint import PassagePointer, picked_order
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tasks.encoders.bert import Model
from whichsense.train.tasks.encoders.reranker import Item, listed, recalls
from whichsense.train.tasks.evidence import Data, answers_held

TASK = "joint-reranker"


@dataclass(frozen=True, slots=True)
class Picking:
    """How passages are picked, and what is learnt from."""

    batch: int = 4
    depth: int = 100
    shown: int = 32
    """Passages of a question that are seen in training: the good ones, and others up to this many."""
    candidates: int = 100
    """Hits that are reranked when the model is measured."""
    picks: int = 10
    keep: int = 5
    """The first so many of which must hold all answers."""
    layers: int = 2
    heads: int = 8
    own: float = 0.5
    """How often in training a step follows what the model itself picked before, and not what it should have."""


@dataclass(frozen=True, slots=True)
class JointRerankerOptions:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    picking: Picking = field(default_factory=Picking)


class JointRerankerTask(Task[PassagePointer, dict[str, Any]]):
    """Trained with a dynamic oracle: at each step every passage is right that holds an answer not yet covered."""

    higher_is_better = True

    def __init__(self, options: JointRerankerOptions) -> None:
        self.options, self.inputs = options, options.model.inputs()
        self.metric = f"all_answers_at_{options.picking.keep}"
        self.items = listed(
            options.data.training(), options.data.evidence(options.picking.depth)
        )
        self.dev = options.data.development()
        self.dev_evidence = options.data.searched(self.dev, options.picking.candidates)

    def build(self) -> PassagePointer:
        picking = self.options.picking
        model = PassagePointer(
            self.options.model.encoder(), picking.layers, picking.heads, picking.picks
        )
        return self.options.model.begun(model, TASK)

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        places = shuffle_batches(
            len(self.items), self.options.picking.batch, epoch, seed
        )
        return Lazy(
            places,
            lambda batch: self._collated(
                [self.items[place] for place in batch], f"{seed}/{epoch}"
            ),
        )

    def _collated(self, items: Sequence[Item], luck: str) -> dict[str, Any]:
        rows: list[InputRow] = []
        shown = self.options.picking.shown
        most = max(len(item.question.answers) for item in items)
        present = torch.zeros(len(items), shown, dtype=torch.bool)
        held = torch.zeros(len(items), shown, most, dtype=torch.bool)
        for number, item in enumerate(items):
            dice = random.Random(f"{luck}/{item.question.id}")
            good = dice.sample(item.good, min(len(item.good), shown - 1))
            passages = [
                *good,
                *dice.sample(item.bad, min(len(item.bad), shown - len(good))),
            ]
            dice.shuffle(passages)
            rows += self.inputs.pairs(item.question.text, passages, places=False)
            present[number, : len(passages)] = True
            right = {passage.id for passage in good}
            for place, answers in enumerate(answers_held(item.question, passages)):
                if passages[place].id in right:
                    held[number, place, list(answers)] = True
        return {
            "rows": padded(rows, self.inputs.tokenizer.pad_token_id),
            "present": present,
            "held": held,
        }

    def loss(self, model: PassagePointer, batch: dict[str, Any]) -> Tensor:
        present, held = batch["present"], batch["held"]
        found, scores = model(batch["rows"])
        vectors = found.new_zeros(*present.shape, found.shape[-1])
        vectors[present] = found
        relevance = scores.new_zeros(present.shape)
        relevance[present] = scores
        steps = min(self.options.picking.picks, held.shape[-1])
        with torch.no_grad():
            seen, likely = vectors.detach(), relevance.detach()
            picked = self._rolled(
                lambda so_far: model.next_scores(seen, likely, present, so_far)[:, -1],
                held,
                steps,
            )
        logits = model.next_scores(vectors, relevance, present, picked[:, :-1])
        wanted = (
            torch.stack(
                [_wanted(held, picked[:, :step]) for step in range(steps)], dim=1
            )
            & logits.isfinite()
        )
        counts = wanted.any(
            -1
        )  # once all answers are covered there is nothing to learn
        good = logits.masked_fill(~wanted, -torch.inf)
        return (logits.logsumexp(-1) - good.logsumexp(-1))[counts].mean()

    def _rolled(
        self, scored: Callable[[Tensor], Tensor], held: Tensor, steps: int
    ) -> Tensor:
        """A history of picks to learn along: at each step the model's own best, or its best among the right ones."""
        picked = torch.zeros(len(held), 0, dtype=torch.long, device=held.device)
        for _ in range(steps):
            scores = scored(picked)
            right = _wanted(held, picked) & scores.isfinite()
            own = (
                torch.rand(len(held), 1, device=held.device) < self.options.picking.own
            )
            free = own | ~right.any(-1, keepdim=True)
            guided = torch.where(right, scores, scores.new_tensor(-1e9)).masked_fill(
                ~scores.isfinite(), -torch.inf
            )
            picked = torch.cat(
                [picked, torch.where(free, scores, guided).argmax(-1, keepdim=True)],
                dim=1,
            )
        return picked

    def evaluate(self, model: PassagePointer) -> dict[str, float]:
        picking = self.options.picking
        orders = []
        for question in self.dev:
            passages = [hit.passage for hit in self.dev_evidence.hits(question.text)]
            ranked = picked_order(
                model, self.inputs, question.text, passages, picking.picks
            )
            orders.append([passages[place] for place, _ in ranked])
        covered = [
            _all_found(question, order, picking.keep)
            for question, order in zip(self.dev, orders, strict=True)
        ]
        return {self.metric: sum(covered) / len(covered)} | recalls(
            self.dev, orders, picking.keep
        )

    def save(self, model: PassagePointer, folder: Path) -> None:
        picking = self.options.picking
        shape = {
            "layers": picking.layers,
            "heads": picking.heads,
            "most": picking.picks,
        }
        saved.save(
            folder,
            model,
            self.inputs,
            task=TASK,
            config=model.reader.config,
            options=shape,
        )

    def data(self) -> list[Path]:
        return self.options.data.paths()


def _wanted(held: Tensor, picked: Tensor) -> Tensor:
    """[questions, passages]: which passages hold an answer that none of the picked ones does."""
    taken = held.gather(1, picked[..., None].expand(*picked.shape, held.shape[-1]))
    return (held & ~taken.any(1, keepdim=True)).any(-1)


def _all_found(question: Question, order: Sequence[Any], keep: int) -> float:
    texts = [f"{passage.title} {passage.text}" for passage in order[:keep]]
    return all_answers_recall(answer_ranks(question.answers, texts), keep)


SPEC = TaskSpec(JointRerankerOptions, JointRerankerTask)
