"""The writer in torch, as it is trained. Its layers begin as some of a BERT's: reading prompts is not new to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from whichsense.errors import BadInput
from whichsense.models.compact.encoder.net import BERT_PARTS, gelu
from whichsense.models.compact.writer.prompts import LONGEST, SIGNS, WRITTEN


@dataclass(frozen=True)
class WriterConfig:
    """The shape of the writer. The defaults are eight of gte-small's layers."""

    vocabulary: int = 30_522
    width: int = 384
    heads: int = 12
    inner: int = 1536
    layers: int = 8
    epsilon: float = 1e-12
    dropout: float = 0.0
    """While training only."""


class Sequences(NamedTuple):
    """Prompts × tokens, and behind them what is written (prompts × written), of which `wanted` come next.

    `weights` say how much each counts; 0 where there is none.
    """

    ids: Tensor
    kinds: Tensor
    mask: Tensor
    written: Tensor
    wanted: Tensor
    weights: Tensor


class Memory(NamedTuple):
    """What the layers remember of prompts and of what is written behind them: keys and values of each, and a mask
    (sequences × tokens) of what is there."""

    kept: tuple[tuple[Tensor, Tensor], ...]
    mask: Tensor


class WriterLayer(nn.Module):
    """BERT's layer; `mask` is added to the scores."""

    def __init__(self, config: WriterConfig) -> None:
        super().__init__()
        self.attention = nn.ModuleDict(
            {
                name: nn.Linear(config.width, config.width)
                for name in ("query", "key", "value", "output")
            }
        )
        self.heads = config.heads
        self.attention_norm, self.norm = (
            nn.LayerNorm(config.width, config.epsilon) for _ in range(2)
        )
        self.wide, self.narrow = (
            nn.Linear(config.width, config.inner),
            nn.Linear(config.inner, config.width),
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, states: Tensor, prompt: int, prompt_mask: Tensor, mask: Tensor
    ) -> Tensor:
        """The first `prompt` tokens see each other, those behind them what their mask says."""
        query, key, value = self._parts(states)
        first = slice(None), slice(None), slice(prompt)
        read = F.scaled_dot_product_attention(
            query[first], key[first], value[first], prompt_mask
        )
        told = F.scaled_dot_product_attention(query[:, :, prompt:], key, value, mask)
        return self._after(states, torch.cat([read, told], 2))

    def remembering(
        self, states: Tensor, kept: tuple[Tensor, Tensor] | None, mask: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The same for new tokens behind what is kept of earlier ones; and what is to be kept of all."""
        query, key, value = self._parts(states)
        if kept is not None:
            key, value = torch.cat([kept[0], key], 2), torch.cat([kept[1], value], 2)
        return self._after(
            states, F.scaled_dot_product_attention(query, key, value, mask)
        ), (key, value)

    def _parts(self, states: Tensor) -> list[Tensor]:
        """Query, key and value, by heads."""
        return [
            self.attention[name](states).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        ]

    def _after(self, states: Tensor, seen: Tensor) -> Tensor:
        seen = seen.transpose(1, 2).flatten(2)
        states = self.attention_norm(
            states + self.dropout(self.attention["output"](seen))
        )
        inner = gelu(self.wide(states))
        found: Tensor = self.norm(states + self.dropout(self.narrow(inner)))
        return found


class Writer(nn.Module):
    """`words`, the encoder's word vectors, are given and stay as they are."""

    words: Tensor

    def __init__(self, config: WriterConfig, words: Tensor) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("words", words, persistent=False)
        self.signs = nn.Parameter(torch.randn(SIGNS, config.width) * 0.02)
        self.places = nn.Parameter(torch.randn(LONGEST, config.width) * 0.02)
        self.kinds = nn.Parameter(torch.randn(WRITTEN + 1, config.width) * 0.02)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.layers = nn.ModuleList(WriterLayer(config) for _ in range(config.layers))
        self.out = nn.Linear(config.width, config.width)
        self.out_norm = nn.LayerNorm(config.width, config.epsilon)
        self.out_bias = nn.Parameter(torch.zeros(config.vocabulary))
        self.dropout = nn.Dropout(config.dropout)

    def embed(self, ids: Tensor, kinds: Tensor, first: int = 0) -> Tensor:
        """`first`: the place of the first token."""
        signs = F.pad(self.signs, (0, 0, 0, 1))[ids.clamp(max=SIGNS)]
        found: Tensor = (
            self.words[ids]
            + signs
            + self.kinds[kinds]
            + self.places[first : first + ids.shape[1]]
        )
        normed: Tensor = self.dropout(self.norm(found))
        return normed

    def forward(self, batch: Sequences) -> Tensor:
        """The state after each written token."""
        prompt, count = batch.ids.shape[1], batch.written.shape[1]
        written = self.embed(batch.written, torch.full_like(batch.written, WRITTEN))
        states = torch.cat([self.embed(batch.ids, batch.kinds), written], 1)
        told = batch.mask[:, None, None, :]
        before = torch.ones(count, count, dtype=torch.bool, device=told.device).tril()
        seen = torch.cat(
            [told.expand(-1, 1, count, -1), before.expand(len(told), 1, -1, -1)], -1
        )
        masks = [
            torch.zeros_like(mask, dtype=states.dtype).masked_fill(~mask, float("-inf"))
            for mask in (told.expand(-1, 1, prompt, -1), seen)
        ]
        for layer in self.layers:
            states = layer(states, prompt, *masks)
        return states[:, prompt:]

    def begin(self, ids: Tensor, kinds: Tensor, mask: Tensor) -> Memory:
        """Prompts, read once: what is written behind them goes on from what is remembered."""
        return self._remembered(self.embed(ids, kinds), None, mask)[1]

    def extend(
        self, memory: Memory, written: Tensor, place: int
    ) -> tuple[Tensor, Memory]:
        """The state after one more written token of each sequence, the `place`-th."""
        states = self.embed(
            written[:, None], torch.full_like(written[:, None], WRITTEN), place
        )
        mask = F.pad(memory.mask, (0, 1), value=True)
        states, memory = self._remembered(states, memory, mask)
        return states[:, 0], memory

    def _remembered(
        self, states: Tensor, memory: Memory | None, mask: Tensor
    ) -> tuple[Tensor, Memory]:
        kept = []
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, WriterLayer)
            before = None if memory is None else memory.kept[place]
            states, own = layer.remembering(states, before, mask[:, None, None, :])
            kept.append(own)
        return states, Memory(tuple(kept), mask)

    def scores(self, states: Tensor) -> Tensor:
        """Logits over the vocabulary."""
        hidden = self.out_norm(gelu(self.out(states)))
        return F.linear(hidden, self.words.to(hidden.dtype), self.out_bias)

    def loss(self, batch: Sequences) -> tuple[Tensor, Tensor, Tensor]:
        """The weighted mean loss of a wanted token; the sum over those of all of them, unweighted; their number."""
        there = batch.weights > 0
        logits = self.scores(self(batch)[there]).float()
        each = F.cross_entropy(logits, batch.wanted[there], reduction="none")
        weights = batch.weights[there]
        return (
            (each * weights).sum() / weights.sum().clamp(min=1e-6),
            each.detach().sum(),
            there.sum(),
        )


def from_bert(
    weights: Mapping[str, Any],
    layers: Sequence[int],
    config: WriterConfig,
    words: Tensor,
) -> Writer:
    """A fresh writer with some layers of a plain BERT (names as in its safetensors file)."""
    net = Writer(config, words)
    table = {
        name.removeprefix("bert."): torch.as_tensor(value).float()
        for name, value in weights.items()
    }
    state = {
        "norm.weight": table["embeddings.LayerNorm.weight"],
        "norm.bias": table["embeddings.LayerNorm.bias"],
        "places": table["embeddings.position_embeddings.weight"][:LONGEST],
    }
    kinds = table["embeddings.token_type_embeddings.weight"]
    new = net.kinds.detach()[WRITTEN:]
    state["kinds"] = (
        torch.cat([kinds, kinds[:1] + new]) if kinds.shape[1] == new.shape[1] else kinds
    )
    for place, number in enumerate(layers):
        for theirs, ours in BERT_PARTS.items():
            for kind in ("weight", "bias"):
                name = f"encoder.layer.{number}.{theirs}.{kind}"
                if name not in table:
                    raise BadInput(
                        f"The base model has no '{name}'. Give layers that it has, of a BERT."
                    )
                state[f"layers.{place}.{ours}.{kind}"] = table[name]
    own = net.state_dict()
    if odd := [name for name, value in state.items() if value.shape != own[name].shape]:
        raise BadInput(
            f"The base model is of another size than the model whose words it is to share ('{odd[0]}')."
        )
    net.load_state_dict(own | state)
    return net
