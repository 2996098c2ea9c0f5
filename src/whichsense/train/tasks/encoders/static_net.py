"""The static encoder as a network: what whichsense.models.vectors.static computes with numpy, with gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from whichsense.models.vectors.static import VectorTable

_HEADS = 4


class _QuestionLayer(nn.Module):
    """One layer of attention. Names and shapes are those that `whichsense.models.vectors.question_net` reads."""

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
        self.blocks = nn.ModuleList(
            _QuestionLayer(width, 2 * width) for _ in range(layers)
        )
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
        self,
        vectors: Tensor,
        frequencies: Tensor,
        teacher: int,
        longest: int,
        layers: int,
    ) -> None:
        super().__init__()
        # Smooth inverse frequency: rare tokens weigh most.
        rare = torch.log(1e-4 / (1e-4 + frequencies))
        self.vectors = nn.Parameter(vectors.clone())
        self.passage_weight = nn.Parameter(rare.clone())
        self.question_weight = nn.Parameter(rare.clone())
        self.title_weight = nn.Parameter(torch.zeros(()))
        self.bridge = nn.Linear(teacher, vectors.shape[1], bias=False)
        self.net = (
            _QuestionLayers(vectors.shape[1], longest, layers) if layers else None
        )

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
        """The weights as they are used: token vectors in int8."""
        vectors = _numpy(self.vectors)
        # One scale for each token, so that its largest number becomes 127.
        scale = np.maximum(np.abs(vectors).max(axis=1), 1e-9) / 127
        layers = {}
        if self.net is not None:
            for name, part in self.net.state_dict().items():
                layers[name] = _numpy(part)
        return VectorTable(
            dict(vocabulary),
            np.rint(vectors / scale[:, None]).astype(np.int8),
            scale.astype(np.float32),
            np.exp(_numpy(self.passage_weight)),
            np.exp(_numpy(self.question_weight)),
            float(self.title_weight.detach().exp()),
            layers,
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
        ids: list[int] = []
        starts = []
        for text in texts:
            starts.append(len(ids))
            ids += text
        as_tensor = partial(torch.tensor, dtype=torch.long)
        return cls(as_tensor(ids), as_tensor(starts))

    def to(self, device: torch.device) -> TokenBags:
        return TokenBags(self.ids.to(device), self.starts.to(device))

    def padded(self, longest: int) -> tuple[Tensor, Tensor]:
        """Ids in rows of equal length, and which of them are tokens. An empty text gets one token."""
        ends = torch.cat([self.starts[1:], self.starts.new_tensor([len(self.ids)])])
        lengths = (ends - self.starts).clamp(min=1, max=longest)
        places = torch.arange(int(lengths.max()), device=self.ids.device)
        mask = places < lengths[:, None]
        index = self.starts[:, None] + places
        index = index.clamp(max=max(len(self.ids) - 1, 0))
        return self.ids[index].masked_fill(~mask, 0), mask


def _numpy(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().numpy()
