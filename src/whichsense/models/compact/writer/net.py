"""The writer in torch, for training. Its layers are initialized from a BERT, which can read prompts already."""

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


class WriterBatch(NamedTuple):
    """Prompts (prompts × tokens) and what is written behind them (prompts × written).

    `wanted` are the next tokens after each written one; `weights` are their weights in the loss, 0 for padding.
    """

    ids: Tensor
    kinds: Tensor
    mask: Tensor
    written: Tensor
    wanted: Tensor
    weights: Tensor


class WriterCache(NamedTuple):
    """Keys and values of each layer for prompts and for what is written, and a mask of padding (sequences × tokens)."""

    layers: tuple[tuple[Tensor, Tensor], ...]
    mask: Tensor


class _WriterLayer(nn.Module):
    """BERT's layer; `mask` is added to the scores."""

    def __init__(self, config: WriterConfig) -> None:
        super().__init__()
        self.attention = nn.ModuleDict()
        for name in ("query", "key", "value", "output"):
            self.attention[name] = nn.Linear(config.width, config.width)
        self.heads = config.heads
        self.attention_norm = nn.LayerNorm(config.width, config.epsilon)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.wide = nn.Linear(config.width, config.inner)
        self.narrow = nn.Linear(config.inner, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, states: Tensor, prompt: int, prompt_mask: Tensor, mask: Tensor
    ) -> Tensor:
        """The first `prompt` tokens attend to each other, the written ones behind them as `mask` allows."""
        query, key, value = self._parts(states)
        prompt_context = F.scaled_dot_product_attention(
            query[:, :, :prompt], key[:, :, :prompt], value[:, :, :prompt], prompt_mask
        )
        written_context = F.scaled_dot_product_attention(
            query[:, :, prompt:], key, value, mask
        )
        return self._after(states, torch.cat([prompt_context, written_context], 2))

    def step(
        self, states: Tensor, past: tuple[Tensor, Tensor] | None, mask: Tensor
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The output for new tokens, given keys and values of the past; and keys and values with the new ones."""
        query, key, value = self._parts(states)
        if past is not None:
            key = torch.cat([past[0], key], 2)
            value = torch.cat([past[1], value], 2)
        context = F.scaled_dot_product_attention(query, key, value, mask)
        return self._after(states, context), (key, value)

    def _parts(self, states: Tensor) -> list[Tensor]:
        """Query, key and value (sequences × heads × tokens × head width)."""
        parts = []
        for name in ("query", "key", "value"):
            by_head = self.attention[name](states).unflatten(-1, (self.heads, -1))
            parts.append(by_head.transpose(1, 2))
        return parts

    def _after(self, states: Tensor, context: Tensor) -> Tensor:
        """The layer behind its attention."""
        context = context.transpose(1, 2).flatten(2)
        output = self.attention["output"](context)
        states = self.attention_norm(states + self.dropout(output))
        inner = self.narrow(gelu(self.wide(states)))
        normed: Tensor = self.norm(states + self.dropout(inner))
        return normed


class WriterNet(nn.Module):
    """`words` are the encoder's word vectors, which are not trained here."""

    words: Tensor

    def __init__(self, config: WriterConfig, words: Tensor) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("words", words, persistent=False)
        self.signs = nn.Parameter(torch.randn(SIGNS, config.width) * 0.02)
        self.places = nn.Parameter(torch.randn(LONGEST, config.width) * 0.02)
        self.kinds = nn.Parameter(torch.randn(WRITTEN + 1, config.width) * 0.02)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.layers = nn.ModuleList(_WriterLayer(config) for _ in range(config.layers))
        self.out = nn.Linear(config.width, config.width)
        self.out_norm = nn.LayerNorm(config.width, config.epsilon)
        self.out_bias = nn.Parameter(torch.zeros(config.vocabulary))
        self.dropout = nn.Dropout(config.dropout)

    def embed(self, ids: Tensor, kinds: Tensor, first: int = 0) -> Tensor:
        """`first` is the place of the first token."""
        # Tokens that are not signs get a row of zeros.
        signs = F.pad(self.signs, (0, 0, 0, 1))[ids.clamp(max=SIGNS)]
        places = self.places[first : first + ids.shape[1]]
        embedded = self.words[ids] + signs + self.kinds[kinds] + places
        normed: Tensor = self.dropout(self.norm(embedded))
        return normed

    def forward(self, batch: WriterBatch) -> Tensor:
        """The state after each written token (prompts × written × width)."""
        prompt = batch.ids.shape[1]
        count = batch.written.shape[1]
        written = self.embed(batch.written, torch.full_like(batch.written, WRITTEN))
        states = torch.cat([self.embed(batch.ids, batch.kinds), written], 1)
        is_token = batch.mask[:, None, None, :]
        # A written token attends to its prompt, to itself and to what was written before it.
        causal = torch.ones(
            count, count, dtype=torch.bool, device=is_token.device
        ).tril()
        reach = torch.cat(
            [
                is_token.expand(-1, 1, count, -1),
                causal.expand(len(is_token), 1, -1, -1),
            ],
            -1,
        )
        prompt_mask = _additive(is_token.expand(-1, 1, prompt, -1), states.dtype)
        mask = _additive(reach, states.dtype)
        for layer in self.layers:
            states = layer(states, prompt, prompt_mask, mask)
        return states[:, prompt:]

    def begin(self, ids: Tensor, kinds: Tensor, mask: Tensor) -> WriterCache:
        """Read prompts once; `extend` continues from the cache."""
        return self._step(self.embed(ids, kinds), None, mask)[1]

    def extend(
        self, cache: WriterCache, written: Tensor, place: int
    ) -> tuple[Tensor, WriterCache]:
        """The state after one more written token of each sequence, the `place`-th."""
        tokens = written[:, None]
        states = self.embed(tokens, torch.full_like(tokens, WRITTEN), place)
        mask = F.pad(cache.mask, (0, 1), value=True)
        states, cache = self._step(states, cache, mask)
        return states[:, 0], cache

    def _step(
        self, states: Tensor, cache: WriterCache | None, mask: Tensor
    ) -> tuple[Tensor, WriterCache]:
        layers = []
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, _WriterLayer)
            past = None if cache is None else cache.layers[place]
            states, own = layer.step(states, past, mask[:, None, None, :])
            layers.append(own)
        return states, WriterCache(tuple(layers), mask)

    def scores(self, states: Tensor) -> Tensor:
        """Logits over the vocabulary."""
        hidden = self.out_norm(gelu(self.out(states)))
        return F.linear(hidden, self.words.to(hidden.dtype), self.out_bias)

    def loss(self, batch: WriterBatch) -> tuple[Tensor, Tensor, Tensor]:
        """The weighted mean loss of the wanted tokens; the sum of their losses, unweighted; their number."""
        counts = batch.weights > 0
        logits = self.scores(self(batch)[counts]).float()
        losses = F.cross_entropy(logits, batch.wanted[counts], reduction="none")
        weights = batch.weights[counts]
        mean = (losses * weights).sum() / weights.sum().clamp(min=1e-6)
        return mean, losses.detach().sum(), counts.sum()


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A boolean mask as one that is added to scores: 0 or -inf."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, float("-inf"))


def from_bert(
    weights: Mapping[str, Any],
    layers: Sequence[int],
    config: WriterConfig,
    words: Tensor,
) -> WriterNet:
    """A new writer with some layers of a BERT (names as in its safetensors file)."""
    net = WriterNet(config, words)
    table: dict[str, Tensor] = {}
    for name, value in weights.items():
        table[name.removeprefix("bert.")] = torch.as_tensor(value).float()
    state = {
        "norm.weight": table["embeddings.LayerNorm.weight"],
        "norm.bias": table["embeddings.LayerNorm.bias"],
        "places": table["embeddings.position_embeddings.weight"][:LONGEST],
    }
    # BERT has two types of tokens; the writer's third, what is written, starts near the first.
    kinds = table["embeddings.token_type_embeddings.weight"]
    new = net.kinds.detach()[WRITTEN:]
    if kinds.shape[1] == new.shape[1]:
        kinds = torch.cat([kinds, kinds[:1] + new])
    state["kinds"] = kinds
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
    for name, value in state.items():
        if value.shape != own[name].shape:
            raise BadInput(
                f"The base model is of another size than the model whose words it is to share ('{name}')."
            )
    net.load_state_dict(own | state)
    return net
