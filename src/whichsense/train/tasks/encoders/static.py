"""The static encoder: token vectors learn from a sentence encoder, then from questions and passages that answer them.

Two recipes make it. `static-distil` brings the sums of token vectors near the teacher's vectors (`[objective]
regress`); `static` goes on from there with questions: in-batch and hard negatives, the teacher's scores, and two small
layers that only questions pass through.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from whichsense.errors import BadConfig
from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import saved
from whichsense.models.vectors import minilm
from whichsense.models.vectors.static import Static, VectorTable, WeightedVectors
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tasks.encoders.reranker import Item, listed
from whichsense.train.tasks.encoders.retrieval_pool import pool_metrics, pooled
from whichsense.train.tasks.encoders.static_net import Bags, StaticNet
from whichsense.train.tasks.evidence import Data
from whichsense.train.tiny.encoders import located
from whichsense.types import Passage

FILE = "static.npz"
_COUNTED = 20_000  # passages that tell how frequent tokens are and in which directions vectors lie


@dataclass(frozen=True, slots=True)
class Model:
    """What learns, and from whom."""

    teacher: str = minilm.NAME
    """`minilm`, a folder or a name on the hub: a BERT sentence encoder with mean pooling. Or `tiny-bert`."""
    dimensions: int = 256
    layers: int = 2
    """Of attention, for questions; 0: none."""
    longest: int = 24
    """Tokens of a question that those layers read."""
    start: str = ""
    """The model folder of an earlier run to go on from."""


@dataclass(frozen=True, slots=True)
class Objective:
    """How much each part of the loss counts, and what a batch is made of."""

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
class StaticOptions:
    model: Model = field(default_factory=Model)
    data: Data = field(default_factory=Data)
    objective: Objective = field(default_factory=Objective)


class StaticTask(Task[StaticNet, dict[str, Any]]):
    """Chosen by how high dev questions rank their passage among those of all dev questions."""

    metric, higher_is_better = "pool_mrr", True

    def __init__(self, options: StaticOptions) -> None:
        self.options = options
        base = (
            minilm.find(options.model.teacher)
            if options.model.teacher == minilm.NAME
            else options.model.teacher
        )
        self.base = located(str(base))
        self.tokenizer = load_tokenizer(self.base)
        self.vocabulary: dict[str, int] = dict(self.tokenizer.get_vocab())
        nothing = np.zeros((len(self.vocabulary), 1), np.int8)
        ones = np.ones(len(self.vocabulary), np.float32)
        self.words = WeightedVectors(
            VectorTable(self.vocabulary, nothing, ones, ones, ones, 1.0), ones
        )
        self.evidence = options.data.evidence(options.objective.depth)
        self.items = listed(options.data.training(), self.evidence)
        self.dev = listed(options.data.development(), self.evidence)

    @cached_property
    def teacher(self) -> nn.Module:
        return saved.encoder(self.base).eval().requires_grad_(False)

    def build(self) -> StaticNet:
        """From the teacher's own vectors of single tokens, in the directions in which its passages differ most."""
        model = self.options.model
        passages = self._some_passages(_COUNTED)
        counts = Counter(
            token for passage in passages for token in self.words.tokens(passage.text)
        )
        frequencies = (
            torch.tensor(
                [counts[token] for token in range(len(self.vocabulary))],
                dtype=torch.float32,
            )
            + 1
        )
        with torch.inference_mode():
            seen = self._taught_texts(
                [f"{passage.title}. {passage.text}" for passage in passages[:2000]]
            )
            if min(seen.shape) < model.dimensions:
                raise BadConfig(
                    f"model.dimensions is over {min(seen.shape)}, which the teacher or the corpus allows."
                )
            directions = torch.linalg.svd(seen, full_matrices=False)[2][
                : model.dimensions
            ]
            special = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
            singles = self._taught(
                [
                    [special[0], token, special[1]]
                    for token in range(len(self.vocabulary))
                ]
            )
        vectors = (singles @ directions.T).clone()
        net = StaticNet(
            vectors,
            frequencies / frequencies.sum(),
            seen.shape[1],
            model.longest,
            model.layers,
        )
        net.bridge.weight.data.copy_(directions)
        net.register_buffer("directions", directions.clone())
        if model.start:  # the question layers may be new there
            state = torch.load(
                Path(model.start) / "net.pt", map_location="cpu", weights_only=True
            )
            net.load_state_dict(state, strict=False)
        return net

    def _some_passages(self, count: int) -> list[Passage]:
        index = self.evidence.index
        rows = range(index.manifest.next_row)
        return index.at(sorted(random.Random(0).sample(rows, min(count, len(rows)))))

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        places = shuffle_batches(
            len(self.items), self.options.objective.batch, epoch, seed
        )
        return Lazy(
            places,
            lambda batch: self._collated(
                [self.items[place] for place in batch], f"{seed}/{epoch}"
            ),
        )

    def _collated(self, items: Sequence[Item], luck: str) -> dict[str, Any]:
        """Questions; then for each its own passage; then for each its hard negatives."""
        own, hard = [], []
        for item in items:
            dice = random.Random(f"{luck}/{item.question.id}")
            own.append(dice.choice(item.good))
            hard += [dice.choice(item.bad) for _ in range(self.options.objective.hard)]
        passages = [*own, *hard]
        if (
            self.options.objective.regress
        ):  # any passage teaches; those of questions are few
            rows = random.Random(f"{luck}/{items[0].question.id}/more").choices(
                range(self.evidence.index.manifest.next_row),
                k=len(items) * (1 + self.options.objective.hard),
            )
            passages = self.evidence.index.at(rows)
        names = {passage.id: number for number, passage in enumerate(passages)}
        return {
            "questions": Bags.of(
                [self.words.tokens(item.question.text) for item in items]
            ),
            **self._bags(passages),
            "same": torch.tensor([names[passage.id] for passage in passages]),
            "taught_questions": self._padded([item.question.text for item in items]),
            "taught_passages": self._padded(
                [f"{passage.title}. {passage.text}" for passage in passages]
            ),
        }

    def _bags(self, passages: Sequence[Passage]) -> dict[str, Any]:
        return {
            "texts": Bags.of([self.words.tokens(passage.text) for passage in passages]),
            "titles": Bags.of(
                [self.words.tokens(passage.title) for passage in passages]
            ),
        }

    def loss(
        self, model: StaticNet, batch: dict[str, Any]
    ) -> tuple[Tensor, dict[str, float | Tensor]]:
        want = self.options.objective
        questions = model.questions(Bags.from_batch(batch["questions"]))
        passages = model.passages(
            Bags.from_batch(batch["texts"]), Bags.from_batch(batch["titles"])
        )
        with torch.no_grad():
            self.teacher.to(questions.device)
            taught, read = (
                self._vectors(batch[f"taught_{which}"])
                for which in ("questions", "passages")
            )
        parts: dict[str, Tensor] = {}
        if want.regress:
            directions = model.get_buffer("directions")
            far = (
                1
                - (passages * functional.normalize(read @ directions.T, dim=1))
                .sum(1)
                .mean()
            )
            parts["regress"] = (
                far
                + 1
                - (questions * functional.normalize(taught @ directions.T, dim=1))
                .sum(1)
                .mean()
            )
        if want.contrast or want.scores or want.bridge:
            parts |= self._from_questions(
                model, questions, passages, (taught, read), batch["same"]
            )
        total = sum(
            (getattr(want, name) * part for name, part in parts.items()),
            questions.new_zeros(()),
        )
        return total, {name: part.detach() for name, part in parts.items()}

    def _from_questions(
        self,
        model: StaticNet,
        questions: Tensor,
        passages: Tensor,
        taught: tuple[Tensor, Tensor],
        same: Tensor,
    ) -> dict[str, Tensor]:
        heat, own = (
            self.options.objective.temperature,
            torch.arange(len(questions), device=questions.device),
        )
        repeated = (
            same[None, :] == same[own][:, None]
        )  # the same passage elsewhere in the batch is no negative
        repeated[own, own] = False
        scores = questions @ passages.T / heat
        teacher = taught[0] @ taught[1].T / heat
        bridged = functional.normalize(model.bridge(taught[0]), dim=1)
        across = (bridged @ passages.detach().T / heat).masked_fill(repeated, -1e4)
        return {
            "contrast": functional.cross_entropy(
                scores.masked_fill(repeated, -1e4), own
            ),
            "scores": functional.kl_div(
                scores.log_softmax(1), teacher.softmax(1), reduction="batchmean"
            ),
            "bridge": functional.cross_entropy(across, own)
            + 4 * (1 - (questions * bridged.detach()).sum(1)).mean(),
        }

    def evaluate(self, model: StaticNet) -> dict[str, float]:
        pool = pooled(self.dev)
        texts, titles = self._bags(list(pool.values())).values()
        device = model.vectors.device
        passages = model.passages(_moved(texts, device), _moved(titles, device))
        asked = Bags.of([self.words.tokens(item.question.text) for item in self.dev])
        return pool_metrics(
            self.dev, pool, model.questions(_moved(asked, device)) @ passages.T
        )

    def save(self, model: StaticNet, folder: Path) -> None:
        """`static.npz` is what an index is built with; `net.pt` is what another run starts from."""
        model.table(self.vocabulary).save(folder / FILE)
        torch.save(model.state_dict(), folder / "net.pt")
        assert Static(folder / FILE).dimensions == self.options.model.dimensions

    def data(self) -> list[Path]:
        return self.options.data.paths()

    def _padded(self, texts: Sequence[str]) -> dict[str, Tensor]:
        found = self.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=256,
            return_tensors="pt",
        )
        return {
            "input_ids": found["input_ids"],
            "attention_mask": found["attention_mask"],
        }

    def _vectors(self, batch: dict[str, Tensor]) -> Tensor:
        """Mean pooling, at length 1: how sentence encoders of this kind are used."""
        hidden = self.teacher(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        return functional.normalize((hidden * mask).sum(1).float(), dim=1)

    def _taught_texts(self, texts: Sequence[str], size: int = 64) -> Tensor:
        return torch.cat(
            [
                self._vectors(self._padded(texts[at : at + size]))
                for at in range(0, len(texts), size)
            ]
        )

    def _taught(self, rows: Sequence[Sequence[int]], size: int = 4096) -> Tensor:
        ids = torch.tensor(rows)
        found = []
        for start in range(0, len(ids), size):
            part = ids[start : start + size]
            found.append(
                self._vectors(
                    {"input_ids": part, "attention_mask": torch.ones_like(part)}
                )
            )
        return torch.cat(found)


def _moved(parts: dict[str, Tensor], device: torch.device) -> Bags:
    return Bags(parts["ids"].to(device), parts["starts"].to(device))


SPEC = TaskSpec(StaticOptions, StaticTask)
