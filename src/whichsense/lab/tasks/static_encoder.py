"""The static encoder's task: distilled from a teacher, then trained on questions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from whichsense.errors import BadConfig
from whichsense.lab.tasks.rankers import (
    ItemTask,
    PassageList,
    build_lists,
    draw_pairs,
    passage_pool,
    pool_metrics,
)
from whichsense.lab.tasks.training_data import TrainingData
from whichsense.lab.train.task import Loss, TaskSpec
from whichsense.lab.train.tiny import located
from whichsense.models import minilm
from whichsense.models.bases import load_tokenizer
from whichsense.models.bert import inputs
from whichsense.models.static import Static, VectorTable, WeightedVectors
from whichsense.types import Passage, frozen

# The static encoder as a network: what whichsense.models.static computes with numpy, with
# gradients.

_HEADS = 4


class _QuestionLayer(nn.Module):
    """One layer of attention. Names and shapes are those that `whichsense.models.static` reads."""

    def __init__(self, width: int, wide: int) -> None:
        super().__init__()
        self.n1 = nn.LayerNorm(width)
        self.n2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.o = nn.Linear(width, width)
        self.a = nn.Linear(width, wide)
        self.b = nn.Linear(wide, width)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        projected = self.qkv(self.n1(hidden))
        heads = projected.view(batch, length, 3, _HEADS, width // _HEADS)
        # Each [batch, heads, length, width of a head].
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask[:, None, None, :]
        )
        attended = attended.transpose(1, 2).reshape(batch, length, width)
        hidden = hidden + self.o(attended)
        out: Tensor = hidden + self.b(functional.relu(self.a(self.n2(hidden))))
        return out


class _QuestionLayers(nn.Module):
    """Compute what is added to the sum of a question's token vectors; zero before training."""

    def __init__(self, width: int, longest: int, layers: int) -> None:
        super().__init__()
        self.inn = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.nf = nn.LayerNorm(width)
        self.pos = nn.Parameter(torch.randn(longest, width) * 0.02)
        self.blocks = nn.ModuleList(_QuestionLayer(width, 2 * width) for _ in range(layers))
        # Token vectors are short; attention begins with longer ones.
        nn.init.eye_(self.inn.weight).data.mul_(4)
        nn.init.zeros_(self.inn.bias)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        hidden = self.inn(vectors) + self.pos[: vectors.shape[1]]
        for block in self.blocks:
            hidden = block(hidden, mask)
        mean = (self.nf(hidden) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        out: Tensor = self.out(mean)
        return out


class StaticNet(nn.Module):
    """Token vectors, logarithms of their weights, question layers, and a bridge from the teacher's questions."""

    def __init__(
        self, vectors: Tensor, frequencies: Tensor, teacher: int, longest: int, layers: int
    ) -> None:
        super().__init__()
        # Smooth inverse frequency: rare tokens weigh most.
        rare = torch.log(1e-4 / (1e-4 + frequencies))
        self.vectors = nn.Parameter(vectors.clone())
        self.passage_weight = nn.Parameter(rare.clone())
        self.question_weight = nn.Parameter(rare.clone())
        self.title_weight = nn.Parameter(torch.zeros(()))
        self.bridge = nn.Linear(teacher, vectors.shape[1], bias=False)
        self.net = _QuestionLayers(vectors.shape[1], longest, layers) if layers else None

    def passages(self, texts: TokenBags, titles: TokenBags) -> Tensor:
        title = functional.normalize(self._sums(titles, self.passage_weight), dim=1)
        text = functional.normalize(self._sums(texts, self.passage_weight), dim=1)
        return functional.normalize(text + self.title_weight.exp() * title, dim=1)

    def questions(self, questions: TokenBags) -> Tensor:
        sums = functional.normalize(self._sums(questions, self.question_weight), dim=1)
        if self.net is None:
            return sums
        # [questions, tokens], cut to the longest that the layers read.
        ids, mask = questions.padded(len(self.net.pos))
        return functional.normalize(sums + self.net(self.vectors[ids], mask), dim=1)

    def _sums(self, bags: TokenBags, weight: Tensor) -> Tensor:
        return functional.embedding_bag(
            bags.ids,
            self.vectors,
            bags.starts,
            mode="sum",
            per_sample_weights=weight.exp()[bags.ids],
        )

    def table(self, vocabulary: Mapping[str, int]) -> VectorTable:
        """Return the weights as they are used: token vectors in int8."""
        vectors = _numpy(self.vectors)
        # One scale for each token, so that its largest number becomes 127.
        scale = np.maximum(np.abs(vectors).max(axis=1), 1e-9) / 127
        layers = self.net.state_dict() if self.net is not None else {}
        return VectorTable(
            dict(vocabulary),
            np.rint(vectors / scale[:, None]).astype(np.int8),
            scale.astype(np.float32),
            np.exp(_numpy(self.passage_weight)),
            np.exp(_numpy(self.question_weight)),
            float(self.title_weight.detach().exp()),
            {name: _numpy(part) for name, part in layers.items()},
            np.ascontiguousarray(_numpy(self.bridge.weight).T),
        )


class TokenBags(NamedTuple):
    """The tokens of several texts, one behind the other, and where each text begins."""

    ids: Tensor
    """[tokens]"""
    starts: Tensor
    """[texts]"""

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]]) -> TokenBags:
        ends = torch.tensor([0, *accumulate(map(len, texts))])
        return cls(torch.tensor(list(chain.from_iterable(texts)), dtype=torch.long), ends[:-1])

    def to(self, device: torch.device) -> TokenBags:
        return TokenBags(self.ids.to(device), self.starts.to(device))

    def padded(self, longest: int) -> tuple[Tensor, Tensor]:
        """Return ids in rows of equal length, and which of them are tokens. An empty text gets one token."""
        ends = torch.cat([self.starts[1:], self.starts.new_tensor([len(self.ids)])])
        lengths = (ends - self.starts).clamp(min=1, max=longest)
        places = torch.arange(int(lengths.max()), device=self.ids.device)
        mask = places < lengths[:, None]
        index = self.starts[:, None] + places
        index = index.clamp(max=max(len(self.ids) - 1, 0))
        return self.ids[index].masked_fill(~mask, 0), mask


def _numpy(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().numpy()


# The sentence encoder that the static encoder learns from: its vectors of texts and of single tokens.

_LONGEST = 256  # tokens of a text
_TEXTS = 64  # in a batch
_TOKENS = 4096  # single tokens in a batch


class StaticTeacher:
    """A BERT sentence encoder with mean pooling, without gradients."""

    def __init__(self, base: str) -> None:
        self._base = base
        self.tokenizer: Any = load_tokenizer(base)
        self.vocabulary: dict[str, int] = dict(self.tokenizer.get_vocab())

    @cached_property
    def network(self) -> nn.Module:
        return inputs.encoder(self._base).eval().requires_grad_(False)

    def collate(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """Return texts as the network reads them."""
        encoded = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=_LONGEST, return_tensors="pt"
        )
        names = ("input_ids", "attention_mask")
        return {name: encoded[name] for name in names}

    def encode(self, batch: dict[str, Tensor]) -> Tensor:
        """[texts, width]: the mean over tokens, of length 1, as sentence encoders of this kind are used."""
        hidden = self.network(**batch).last_hidden_state
        mask = batch["attention_mask"][..., None]
        return functional.normalize((hidden * mask).sum(1).float(), dim=1)

    def encode_texts(self, texts: Sequence[str]) -> Tensor:
        vectors = [
            self.encode(self.collate(texts[start : start + _TEXTS]))
            for start in range(0, len(texts), _TEXTS)
        ]
        return torch.cat(vectors)

    def encode_tokens(self) -> Tensor:
        """[vocabulary, width]: each token by itself, between the special ones."""
        first, last = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        rows = [[first, token, last] for token in range(len(self.vocabulary))]
        ids = torch.tensor(rows)
        vectors = []
        for start in range(0, len(ids), _TOKENS):
            part = ids[start : start + _TOKENS]
            batch = {"input_ids": part, "attention_mask": torch.ones_like(part)}
            vectors.append(self.encode(batch))
        return torch.cat(vectors)


# The static encoder: token vectors learn from a sentence encoder, then from questions and passages
# that answer them.
#
# Two recipes make it. `static-distil` is distillation: it brings the sums of token vectors near the
# teacher's vectors (`[objective] regress`). `static` goes on from there with questions: in-batch and
# hard negatives, the teacher's scores, and two small layers that only questions pass through.

FILE = "static.npz"
_NET = "net.pt"
_COUNTED = 20_000  # passages by which the frequencies of tokens are estimated
_SEEN = 2000  # passages by which the directions of vectors are chosen
_MASKED = -1e4  # the score of passages that are not negatives


@frozen
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


@frozen
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


@frozen
class _StaticOptions:
    model: _StaticModel = _StaticModel()
    data: TrainingData = TrainingData()
    objective: _StaticObjective = _StaticObjective()


class StaticTask(ItemTask[StaticNet]):
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
        self.size = options.objective.batch
        self.items = build_lists(options.data.training(), self.evidence)
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
        tokens = chain.from_iterable(self.words.tokens(passage.text) for passage in passages)
        counts = np.bincount(np.fromiter(tokens, np.int64), minlength=len(self.teacher.vocabulary))
        frequencies = torch.from_numpy(counts).float() + 1
        return frequencies / frequencies.sum()

    def collate(self, lists: Sequence[PassageList], seed: str) -> dict[str, Any]:
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
        # Equal numbers mark the same passage.
        numbers = {passage.id: number for number, passage in enumerate(passages)}
        questions = [one.question.text for one in lists]
        return {
            "questions": self._bag_tokens(questions),
            **self._bag_passages(passages),
            "same": torch.tensor([numbers[passage.id] for passage in passages]),
            "teacher_questions": self.teacher.collate(questions),
            "teacher_passages": self.teacher.collate(_titled_texts(passages)),
        }

    def _bag_tokens(self, texts: Sequence[str]) -> TokenBags:
        return TokenBags.of(list(map(self.words.tokens, texts)))

    def _bag_passages(self, passages: Iterable[Passage]) -> dict[str, TokenBags]:
        titles, texts = zip(*((one.title, one.text) for one in passages), strict=True)
        return {"titles": self._bag_tokens(titles), "texts": self._bag_tokens(texts)}

    def loss(self, model: StaticNet, batch: dict[str, Any]) -> Loss:
        objective = self.options.objective
        questions = model.questions(batch["questions"])
        passages = model.passages(batch["texts"], batch["titles"])
        with torch.no_grad():
            self.teacher.network.to(questions.device)
            teacher = tuple(
                self.teacher.encode(batch[f"teacher_{kind}"]) for kind in ("questions", "passages")
            )
        parts: dict[str, Tensor] = {}
        if objective.regress:
            parts["regress"] = _regress(model, questions, passages, *teacher)
        if objective.contrast or objective.scores or objective.bridge:
            parts |= self._ranking_losses(model, questions, passages, teacher, batch["same"])
        total = questions.new_zeros(())
        for name, part in parts.items():
            total = total + getattr(objective, name) * part
        return total, {name: part.detach() for name, part in parts.items()}

    def _ranking_losses(
        self,
        model: StaticNet,
        questions: Tensor,
        passages: Tensor,
        teacher: tuple[Tensor, ...],
        same: Tensor,
    ) -> dict[str, Tensor]:
        """Compute losses of scores [questions, passages]; the first passages are the questions' own."""
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
        contrast, bridge = (
            functional.cross_entropy(some.masked_fill(repeated, _MASKED), own)
            for some in (scores, bridged_scores)
        )
        distance = (1 - (questions * bridged.detach()).sum(1)).mean()
        return {
            "contrast": contrast,
            "scores": functional.kl_div(
                scores.log_softmax(1), teacher_scores.softmax(1), reduction="batchmean"
            ),
            "bridge": bridge + 4 * distance,
        }

    def evaluate(self, model: StaticNet) -> dict[str, float]:
        device = model.vectors.device
        pool = passage_pool(self.dev)
        bags = self._bag_passages(pool.values())
        passages = model.passages(bags["texts"].to(device), bags["titles"].to(device))
        asked = self._bag_tokens([one.question.text for one in self.dev])
        return pool_metrics(self.dev, pool, model.questions(asked.to(device)) @ passages.T)

    def save(self, model: StaticNet, folder: Path) -> None:
        """`static.npz` is what an index is built with; `net.pt` is what another run starts from."""
        model.table(self.teacher.vocabulary).save(folder / FILE)
        torch.save(model.state_dict(), folder / _NET)
        assert Static(folder / FILE).dimensions == self.options.model.dimensions


def _regress(
    model: StaticNet,
    questions: Tensor,
    passages: Tensor,
    teacher_questions: Tensor,
    teacher_passages: Tensor,
) -> Tensor:
    """Return 1 - the mean cosine with the teacher's vectors in the net's directions, for both kinds of texts."""

    def cosine(own: Tensor, teacher: Tensor) -> Tensor:
        wanted = functional.normalize(teacher @ model.get_buffer("directions").T, dim=1)
        return (own * wanted).sum(1).mean()

    return 1 - cosine(passages, teacher_passages) + 1 - cosine(questions, teacher_questions)


def _titled_texts(passages: Sequence[Passage]) -> list[str]:
    """Return passages as the teacher reads them."""
    return [f"{passage.title}. {passage.text}" for passage in passages]


STATIC = TaskSpec(_StaticOptions, StaticTask)
