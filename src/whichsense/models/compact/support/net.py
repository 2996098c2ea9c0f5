"""The support judge's network in torch, for training: the verifier, whose matrices are frozen, with small adapters.

Every layer gets low-rank additions to its queries and values, and a narrow network beside its feed-forward one. Biases,
norms and the steps of the int8 codes are its own, too. The exported form (`graph.py`) refers to the frozen matrices
where they lie, so that only the additions are stored.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from whichsense.models.compact.encoder.net import (
    CompactConfig,
    CompactEncoder,
    Score,
    gelu,
)

FROZEN = (
    "query.weight key.weight value.weight output.weight wide.weight narrow.weight"
).split()
"""The ends of the names of matrices that are the verifier's."""
TABLES = ("words.weight", "places.weight", "types.weight", "encoder.norm.")


class LowRank(nn.Module):
    """A product of two thin matrices, which begins as zero."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, inputs) * inputs**-0.5)
        self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, values: Tensor) -> Tensor:
        return F.linear(F.linear(values, self.down), self.up)


class Bottleneck(nn.Module):
    """A narrow feed-forward network, which begins as zero."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(inner, width) * width**-0.5)
        self.bias = nn.Parameter(torch.zeros(inner))
        self.up = nn.Parameter(torch.zeros(width, inner))

    def forward(self, values: Tensor) -> Tensor:
        return F.linear(gelu(F.linear(values, self.down, self.bias)), self.up)


class SupportNet(nn.Module):
    """(Sentence, passage) pairs → the logit that the passage supports the sentence."""

    def __init__(self, config: CompactConfig, rank: int, inner: int) -> None:
        super().__init__()
        self.config = config
        self.rank = rank
        self.inner = inner
        self.encoder = CompactEncoder(config)
        width = config.width
        layers = range(config.layers)
        self.query = nn.ModuleList(LowRank(width, width, rank) for _ in layers)
        self.value = nn.ModuleList(LowRank(width, width, rank) for _ in layers)
        self.beside = nn.ModuleList(Bottleneck(width, inner) for _ in layers)
        self.support = Score(width)

    def freeze(self) -> None:
        """Let only what is the judge's own learn."""
        for name, parameter in self.encoder.named_parameters(prefix="encoder"):
            if name.endswith(tuple(FROZEN)) or any(table in name for table in TABLES):
                parameter.requires_grad_(False)

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Compile what is nearly all of the work."""
        for layer in self.encoder.layers:
            layer.compile(*arguments, **options)

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        """Pairs × tokens each → logits (pairs)."""
        states = self.encoder.embed(ids, types)
        attended = mask[:, None, None, :]
        for number in range(self.config.layers):
            states = self._layer(number, states, attended)
        logits: Tensor = self.support(states)
        return logits.float()

    def _layer(self, number: int, states: Tensor, mask: Tensor) -> Tensor:
        """The encoder's layer with the additions of its adapters."""
        layer: Any = self.encoder.layers[number]
        attention = layer.attention
        query = attention.query(states) + self.query[number](states)
        value = attention.value(states) + self.value[number](states)
        context = F.scaled_dot_product_attention(
            attention.split(query),
            attention.split(attention.key(states)),
            attention.split(value),
            mask,
        )
        output = attention.output(context.transpose(-3, -2).flatten(-2))
        states = layer.attention_norm(states + layer.dropout(output))
        inner = layer.narrow(gelu(layer.wide(states))) + self.beside[number](states)
        normed: Tensor = layer.norm(states + layer.dropout(inner))
        return normed


def own_weights(net: SupportNet) -> dict[str, Tensor]:
    """What the judge does not share with the verifier."""
    own = {}
    for name, value in net.state_dict().items():
        shared = name.endswith(tuple(FROZEN)) or any(table in name for table in TABLES)
        if not shared:
            own[name] = value.detach().cpu()
    return own
