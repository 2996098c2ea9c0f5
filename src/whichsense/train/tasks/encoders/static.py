"""The static encoder: token vectors learn from a sentence encoder, then from questions and passages that answer them.

Two recipes make it. `static-distil` is distillation: it brings the sums of token vectors near the teacher's vectors
(`[objective] regress`). `static` goes on from there with questions: in-batch and hard negatives, the teacher's scores,
and two small layers that only questions pass through.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from whichsense.errors import BadConfig
from whichsense.models.vectors import minilm
from whichsense.models.vectors.static import Static, VectorTable, WeightedVectors
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.encoders.passage_lists import (
    PassageList,
    build_lists,
    draw_pairs,
)
from whichsense.train.tasks.encoders.retrieval_metrics import passage_pool, pool_metrics
from whichsense.train.tasks.encoders.static_net import StaticNet, TokenBags
from whichsense.train.tasks.encoders.static_teacher import StaticTeacher
from whichsense.train.tiny.encoders import located
from whichsense.types import Passage

FILE = "static.npz"
_NET = "net.pt"
_COUNTED = 20_000  # passages by which the frequencies of tokens are estimated
_SEEN = 2000  # passages by which the directions of vectors are chosen
_MASKED = -1e4  # the score of passages that are not negatives


@dataclass(frozen=True, slots=True)
class _StaticModel:
    """A recipe's `[model]`: what learns, and from which teacher."""

    teacher: str = minilm.NAME
    """`minilm`, a folder or a name on the hub: a BERT sentence encoder with mean pooling. Or `tiny-bert`."""
    dimensions: int = 256
    layers: int = 2
    """Of attention, for questions; 0: none."""
    longest: int = 24
    """Tokens of a question that those layers read."""
    start: str = ""
    """The model folder of an earlier run to start from."""


@dataclass(frozen=True, slots=True)
class _StaticObjective:
    """A recipe's `[objective]`: how much each part of the loss counts, and what a batch is made of."""

    regress: float = 0.0
    """Vectors of passages and questions near the teacher's."""
    contrast: float = 1.0
    """A question nearer to its passage than to all others of the batch."""
    scores: float = 0.5
    """The teacher's scores of the batch's passages."""
    bridge: float = 1.0
    """A matrix for the teacher's questions, and questions near what it makes of them."""
    batch: int = 256
    hard: int = 7
    depth: int = 100
    temperature: float = 0.05


@dataclass(frozen=True, slots=True)
class _StaticOptions:
    model: _StaticModel = field(default_factory=_StaticModel)
    data: TrainingData = field(default_factory=TrainingData)
    objective: _StaticObjective = field(default_factory=_StaticObjective)


class StaticTask(Task[StaticNet, dict[str, Any]]):
    """Selected by the rank of dev questions' passages in the pool of all of them."""

    metric, higher_is_better = "pool_mrr", True

    def __init__(self, options: _StaticOptions) -> None:
        self.options = options
        base = options.model.teacher
        if base == minilm.NAME:
            base = str(minilm.find(base))
        self.teacher = StaticTeacher(located(base))
        vocabulary = self.teacher.vocabulary
        # A table without weights: only its tokens are needed here.
        ones = np.ones(len(vocabulary), np.float32)
        no_vectors = np.zeros((len(vocabulary), 1), np.int8)
        self.words = WeightedVectors(
            VectorTable(vocabulary, no_vectors, ones, ones, ones, 1.0), ones
        )
        self.evidence = options.data.evidence(options.objective.depth)
        self.lists = build_lists(options.data.training(), self.evidence)
        self.dev = build_lists(options.data.development(), self.evidence)

    def build(self) -> StaticNet:
        """From the teacher's own vectors of single tokens, in the directions in which its passages differ most."""
        model = self.options.model
        passages = self._sample_passages(_COUNTED)
        frequencies = self._token_frequencies(passages)
        with torch.inference_mode():
            seen = self.teacher.encode_texts(_titled_texts(passages[:_SEEN]))
            most = min(seen.shape)
            if most < model.dimensions:
                raise BadConfig(
                    f"model.dimensions is over {most}, which the teacher or the corpus allows."
                )
            # [dimensions, width of the teacher]
            directions = torch.linalg.svd(seen, full_matrices=False)[2]
            directions = directions[: model.dimensions]
            tokens = self.teacher.encode_tokens()
        vectors = (tokens @ directions.T).clone()
        width = seen.shape[1]
        net = StaticNet(vectors, frequencies, width, model.longest, model.layers)
        net.bridge.weight.data.copy_(directions)
        net.register_buffer("directions", directions.clone())
        if model.start:
            path = Path(model.start) / _NET
            state = torch.load(path, map_location="cpu", weights_only=True)
            # Not strict: the question layers may be new here.
            net.load_state_dict(state, strict=False)
        return net

    def _sample_passages(self, count: int) -> list[Passage]:
        index = self.evidence.index
        rows = range(index.manifest.next_row)
        chosen = random.Random(0).sample(rows, min(count, len(rows)))
        return index.at(sorted(chosen))

    def _token_frequencies(self, passages: Sequence[Passage]) -> Tensor:
        """[vocabulary]: the share of each token, every token counted once more."""
        counts: Counter[int] = Counter()
        for passage in passages:
            counts.update(self.words.tokens(passage.text))
        tokens = range(len(self.teacher.vocabulary))
        numbers = [counts[token] for token in tokens]
        frequencies = torch.tensor(numbers, dtype=torch.float32) + 1
        return frequencies / frequencies.sum()

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        def collate(places: list[int]) -> dict[str, Any]:
            lists = [self.lists[place] for place in places]
            return self._collate(lists, f"{seed}/{epoch}")

        size = self.options.objective.batch
        return Lazy(shuffle_batches(len(self.lists), size, epoch, seed), collate)

    def _collate(self, lists: Sequence[PassageList], seed: str) -> dict[str, Any]:
        """Questions; then for each its own passage; then for each its hard negatives."""
        objective = self.options.objective
        positives, negatives = draw_pairs(lists, objective.hard, seed)
        passages = [*positives, *negatives]
        if objective.regress:
            # Distillation needs no questions: any passage of the index will do.
            rng = random.Random(f"{seed}/{lists[0].question.id}/more")
            rows = range(self.evidence.index.manifest.next_row)
            count = len(lists) * (1 + objective.hard)
            passages = self.evidence.index.at(rng.choices(rows, k=count))
        texts = []
        titles = []
        numbers: dict[str, int] = {}
        for number, passage in enumerate(passages):
            texts.append(passage.text)
            titles.append(passage.title)
            numbers[passage.id] = number
        # Equal numbers mark the same passage.
        same = [numbers[passage.id] for passage in passages]
        questions = [one.question.text for one in lists]
        return {
            "questions": self._bag_tokens(questions),
            "texts": self._bag_tokens(texts),
            "titles": self._bag_tokens(titles),
            "same": torch.tensor(same),
            "teacher_questions": self.teacher.collate(questions),
            "teacher_passages": self.teacher.collate(_titled_texts(passages)),
        }

    def _bag_tokens(self, texts: Sequence[str]) -> TokenBags:
        return TokenBags.of(list(map(self.words.tokens, texts)))

    def loss(
        self, model: StaticNet, batch: dict[str, Any]
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        objective = self.options.objective
        questions = model.questions(batch["questions"])
        passages = model.passages(batch["texts"], batch["titles"])
        with torch.no_grad():
            self.teacher.network.to(questions.device)
            teacher_questions = self.teacher.encode(batch["teacher_questions"])
            teacher_passages = self.teacher.encode(batch["teacher_passages"])
        teacher = teacher_questions, teacher_passages
        parts: dict[str, Tensor] = {}
        if objective.regress:
            parts["regress"] = _regress(model, questions, passages, teacher)
        if objective.contrast or objective.scores or objective.bridge:
            same = batch["same"]
            parts |= self._ranking_losses(model, questions, passages, teacher, same)
        total = questions.new_zeros(())
        logged: dict[str, float | Tensor] = {}
        for name, part in parts.items():
            total = total + getattr(objective, name) * part
            logged[name] = part.detach()
        return total, logged

    def _ranking_losses(
        self,
        model: StaticNet,
        questions: Tensor,
        passages: Tensor,
        teacher: tuple[Tensor, Tensor],
        same: Tensor,
    ) -> dict[str, Tensor]:
        """All scores are [questions, passages]; the first passages are the questions' own."""
        temperature = self.options.objective.temperature
        own = torch.arange(len(questions), device=questions.device)
        # The same passage elsewhere in the batch is not a negative.
        repeated = same[None, :] == same[own][:, None]
        repeated[own, own] = False
        teacher_questions, teacher_passages = teacher
        scores = questions @ passages.T / temperature
        teacher_scores = teacher_questions @ teacher_passages.T / temperature
        bridged = functional.normalize(model.bridge(teacher_questions), dim=1)
        bridged_scores = bridged @ passages.detach().T / temperature
        bridge = functional.cross_entropy(
            bridged_scores.masked_fill(repeated, _MASKED), own
        )
        distance = (1 - (questions * bridged.detach()).sum(1)).mean()
        return {
            "contrast": functional.cross_entropy(
                scores.masked_fill(repeated, _MASKED), own
            ),
            "scores": functional.kl_div(
                scores.log_softmax(1), teacher_scores.softmax(1), reduction="batchmean"
            ),
            "bridge": bridge + 4 * distance,
        }

    def evaluate(self, model: StaticNet) -> dict[str, float]:
        device = model.vectors.device
        pool = passage_pool(self.dev)
        texts = self._bag_tokens([passage.text for passage in pool.values()])
        titles = self._bag_tokens([passage.title for passage in pool.values()])
        passages = model.passages(texts.to(device), titles.to(device))
        asked = self._bag_tokens([one.question.text for one in self.dev])
        questions = model.questions(asked.to(device))
        return pool_metrics(self.dev, pool, questions @ passages.T)

    def save(self, model: StaticNet, folder: Path) -> None:
        """`static.npz` is what an index is built with; `net.pt` is what another run starts from."""
        model.table(self.teacher.vocabulary).save(folder / FILE)
        torch.save(model.state_dict(), folder / _NET)
        assert Static(folder / FILE).dimensions == self.options.model.dimensions

    def data(self) -> list[Path]:
        return self.options.data.paths()


def _regress(
    model: StaticNet,
    questions: Tensor,
    passages: Tensor,
    teacher: tuple[Tensor, Tensor],
) -> Tensor:
    """1 - the mean cosine with the teacher's vectors in the net's directions, for passages plus for questions."""
    directions = model.get_buffer("directions")
    teacher_questions, teacher_passages = teacher
    wanted_passages = functional.normalize(teacher_passages @ directions.T, dim=1)
    wanted_questions = functional.normalize(teacher_questions @ directions.T, dim=1)
    passage_cosine = (passages * wanted_passages).sum(1).mean()
    question_cosine = (questions * wanted_questions).sum(1).mean()
    return 1 - passage_cosine + 1 - question_cosine


def _titled_texts(passages: Sequence[Passage]) -> list[str]:
    """Passages as the teacher reads them."""
    return [f"{passage.title}. {passage.text}" for passage in passages]


SPEC = TaskSpec(_StaticOptions, StaticTask)
