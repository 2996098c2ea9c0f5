"""The joint reranker: passages picked one after another, so that together they hold different answers (JPR)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from whichsense.metrics.retrieval import all_answers_recall, answer_ranks
from whichsense.models.bert import saved
from whichsense.models.bert.inputs import InputRow, padded
from whichsense.models.bert.joint import PassagePointer, picked_order
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.encoders.bert import EncoderModel
from whichsense.train.tasks.encoders.passage_lists import PassageList, build_lists
from whichsense.train.tasks.encoders.retrieval_metrics import (
    passage_texts,
    ranking_metrics,
)
from whichsense.train.tasks.evidence import answers_held

_TASK = "joint-reranker"


@dataclass(frozen=True, slots=True)
class _PickingSettings:
    """A recipe's `[picking]`: how passages are picked, and what is learnt from."""

    batch: int = 4
    depth: int = 100
    shown: int = 32
    """Passages of a question that are seen in training: the good ones, and others up to this many."""
    candidates: int = 100
    """Hits that are reranked in evaluation."""
    picks: int = 10
    keep: int = 5
    """The first `keep` passages must hold all answers."""
    layers: int = 2
    heads: int = 8
    own: float = 0.5
    """How often in training a step follows the model's own pick before it, and not the right one."""


@dataclass(frozen=True, slots=True)
class _JointRerankerOptions:
    model: EncoderModel = field(default_factory=EncoderModel)
    data: TrainingData = field(default_factory=TrainingData)
    picking: _PickingSettings = field(default_factory=_PickingSettings)


class _JointRerankerTask(Task[PassagePointer, dict[str, Any]]):
    """Trained with a dynamic oracle: at each step every passage is right that holds an answer not yet covered."""

    higher_is_better = True

    def __init__(self, options: _JointRerankerOptions) -> None:
        data, picking = options.data, options.picking
        self.options = options
        self.inputs = options.model.inputs()
        self.metric = f"all_answers_at_{picking.keep}"
        self.lists = build_lists(data.training(), data.evidence(picking.depth))
        self.dev = data.development()
        self.dev_evidence = data.searched(self.dev, picking.candidates)

    def build(self) -> PassagePointer:
        picking = self.options.picking
        encoder = self.options.model.encoder()
        model = PassagePointer(encoder, picking.layers, picking.heads, picking.picks)
        return self.options.model.load_start(model, _TASK)

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        def collate(places: list[int]) -> dict[str, Any]:
            lists = [self.lists[place] for place in places]
            return self._collate(lists, f"{seed}/{epoch}")

        size = self.options.picking.batch
        return Lazy(shuffle_batches(len(self.lists), size, epoch, seed), collate)

    def _collate(self, lists: Sequence[PassageList], seed: str) -> dict[str, Any]:
        """`present`: [questions, shown], where there is a passage; `held`: [questions, shown, answers], which answers
        a passage holds."""
        rows: list[InputRow] = []
        shown = self.options.picking.shown
        most = max(len(one.question.answers) for one in lists)
        present = torch.zeros(len(lists), shown, dtype=torch.bool)
        held = torch.zeros(len(lists), shown, most, dtype=torch.bool)
        for number, one in enumerate(lists):
            rng = one.rng(seed)
            # At most shown - 1 good ones, so that there is something to tell them from.
            good = rng.sample(one.good, min(len(one.good), shown - 1))
            bad = rng.sample(one.bad, min(len(one.bad), shown - len(good)))
            passages = [*good, *bad]
            rng.shuffle(passages)
            rows += self.inputs.pairs(one.question.text, passages, places=False)
            present[number, : len(passages)] = True
            good_ids = {passage.id for passage in good}
            for place, answers in enumerate(answers_held(one.question, passages)):
                if passages[place].id in good_ids:
                    held[number, place, list(answers)] = True
        pad = self.inputs.tokenizer.pad_token_id
        return {"rows": padded(rows, pad), "present": present, "held": held}

    def loss(self, model: PassagePointer, batch: dict[str, Any]) -> Tensor:
        present, held = batch["present"], batch["held"]
        passages, scores = model(batch["rows"])
        # From one row a passage to [questions, shown, …].
        vectors = passages.new_zeros(*present.shape, passages.shape[-1])
        vectors[present] = passages
        relevance = scores.new_zeros(present.shape)
        relevance[present] = scores
        steps = min(self.options.picking.picks, held.shape[-1])
        with torch.no_grad():
            fixed_vectors, fixed_relevance = vectors.detach(), relevance.detach()

            def score_next(picked: Tensor) -> Tensor:
                scores = model.next_scores(
                    fixed_vectors, fixed_relevance, present, picked
                )
                return scores[:, -1]

            picked = self._roll_out(score_next, held, steps)
        logits = model.next_scores(vectors, relevance, present, picked[:, :-1])
        right = []  # for each step: [questions, passages]
        for step in range(steps):
            right.append(_uncovered(held, picked[:, :step]))
        wanted = torch.stack(right, dim=1) & logits.isfinite()
        # Once all answers are covered there is nothing to learn.
        counts = wanted.any(-1)
        good = logits.masked_fill(~wanted, -torch.inf)
        return (logits.logsumexp(-1) - good.logsumexp(-1))[counts].mean()

    def _roll_out(
        self, score_next: Callable[[Tensor], Tensor], held: Tensor, steps: int
    ) -> Tensor:
        """A history of picks to learn along: at each step the model's own best, or its best among the right ones."""
        picked = torch.zeros(len(held), 0, dtype=torch.long, device=held.device)
        for _ in range(steps):
            scores = score_next(picked)
            allowed = scores.isfinite()
            right = _uncovered(held, picked) & allowed
            chance = torch.rand(len(held), 1, device=held.device)
            is_own = chance < self.options.picking.own
            is_free = is_own | ~right.any(-1, keepdim=True)
            # Wrong passages far below, but above those that cannot be picked (-inf).
            guided = torch.where(right, scores, scores.new_tensor(-1e9))
            guided = guided.masked_fill(~allowed, -torch.inf)
            best = torch.where(is_free, scores, guided).argmax(-1, keepdim=True)
            picked = torch.cat([picked, best], dim=1)
        return picked

    def evaluate(self, model: PassagePointer) -> dict[str, float]:
        picks, keep = self.options.picking.picks, self.options.picking.keep
        orders = []
        covered = []
        for question in self.dev:
            hits = self.dev_evidence.hits(question.text)
            passages = [hit.passage for hit in hits]
            ranked = picked_order(model, self.inputs, question.text, passages, picks)
            order = [passages[place] for place, _ in ranked]
            ranks = answer_ranks(question.answers, passage_texts(order[:keep]))
            orders.append(order)
            covered.append(all_answers_recall(ranks, keep))
        metrics = {self.metric: sum(covered) / len(covered)}
        return metrics | ranking_metrics(self.dev, orders, keep)

    def save(self, model: PassagePointer, folder: Path) -> None:
        picking = self.options.picking
        shape = {
            "layers": picking.layers,
            "heads": picking.heads,
            "most": picking.picks,
        }
        config = model.reader.config
        saved.save(folder, model, self.inputs, task=_TASK, config=config, options=shape)

    def data(self) -> list[Path]:
        return self.options.data.paths()


def _uncovered(held: Tensor, picked: Tensor) -> Tensor:
    """[questions, passages]: which passages hold an answer that none of the picked ones does."""
    index = picked[..., None].expand(*picked.shape, held.shape[-1])
    covered = held.gather(1, index).any(1, keepdim=True)
    return (held & ~covered).any(-1)


SPEC = TaskSpec(_JointRerankerOptions, _JointRerankerTask)
