"""The compact encoder in torch, for training: two halves with their heads. The writer is in `writer/`.

The exported form (`export.py`) does the same arithmetic in ONNX Runtime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from whichsense.errors import BadInput
from whichsense.models.compact.encoder.quantized import QuantizedLinear

_VERDICT_WIDTH = 128


@dataclass(frozen=True)
class CompactConfig:
    """The shape of the model. The defaults are gte-small's, cut after its fourth layer."""

    vocabulary: int = 30_522
    width: int = 384
    heads: int = 12
    inner: int = 1536
    positions: int = 512
    layers: int = 12
    early: int = 4
    epsilon: float = 1e-12
    dropout: float = 0.0
    """While training only."""


class Attention(nn.Module):
    """Multi-head self-attention. `mask` is True where a key may be attended to."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = QuantizedLinear(config.width, config.width)
        self.key = QuantizedLinear(config.width, config.width)
        self.value = QuantizedLinear(config.width, config.width)
        self.output = QuantizedLinear(config.width, config.width)

    def split(self, states: Tensor) -> Tensor:
        """… × tokens × width → … × heads × tokens × head width."""
        by_head = states.reshape(*states.shape[:-1], self.heads, -1)
        return by_head.transpose(-3, -2)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        query = self.split(self.query(states))
        key = self.split(self.key(states))
        value = self.split(self.value(states))
        context = F.scaled_dot_product_attention(query, key, value, mask)
        output: Tensor = self.output(context.transpose(-3, -2).flatten(-2))
        return output


class CompactLayer(nn.Module):
    """BERT's layer: attention and feed-forward, each followed by its LayerNorm. All four inputs are quantized."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(config.width, config.epsilon)
        self.wide = QuantizedLinear(config.width, config.inner)
        self.narrow = QuantizedLinear(config.inner, config.width, after_gelu=True)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.dropout = nn.Dropout(config.dropout)
        _share_scale(self.attention.query, self.attention.key, self.attention.value)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        context = self.attention(states, mask)
        states = self.attention_norm(states + self.dropout(context))
        inner = self.narrow(gelu(self.wide(states)))
        output: Tensor = self.norm(states + self.dropout(inner))
        return output


class Score(nn.Module):
    """A head over the [CLS] state: one number a pair."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, states: Tensor) -> Tensor:
        hidden = torch.tanh(self.dense(states[..., 0, :]))
        score: Tensor = self.out(hidden).squeeze(-1)
        return score


class _Verdict(nn.Module):
    """A head that judges each span by itself, from the states of [CLS], of its first token and of its last."""

    def __init__(self, width: int, inner: int = _VERDICT_WIDTH) -> None:
        super().__init__()
        self.dense = nn.Linear(3 * width, inner)
        self.out = nn.Linear(inner, 1)

    def forward(self, states: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """The logits of spans (pairs × spans), given states (pairs × tokens × width) and the spans' first and last
        tokens (pairs × spans each)."""
        width = states.shape[-1]
        begin = states.gather(1, first[..., None].expand(-1, -1, width))
        end = states.gather(1, last[..., None].expand(-1, -1, width))
        whole = states[:, :1].expand_as(begin)
        edges = torch.cat([whole, begin, end], -1)
        logits: Tensor = self.out(gelu(self.dense(edges))).squeeze(-1)
        return logits


class CompactEncoder(nn.Module):
    """`early` runs the first layers on many pairs; `late` runs the others on the best of them."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocabulary, config.width, padding_idx=0)
        self.places = nn.Embedding(config.positions, config.width)
        self.types = nn.Embedding(2, config.width)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.layers = nn.ModuleList(CompactLayer(config) for _ in range(config.layers))

    def embed(self, ids: Tensor, types: Tensor) -> Tensor:
        places = self.places.weight[: ids.shape[-1]]
        embedded: Tensor = self.norm(self.words(ids) + places + self.types(types))
        return embedded

    def early(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        embedded = self.embed(ids, types)
        return self._run(embedded, mask, 0, self.config.early)

    def late(self, states: Tensor, mask: Tensor) -> Tensor:
        return self._run(states, mask, self.config.early, self.config.layers)

    def _run(self, states: Tensor, mask: Tensor, first: int, last: int) -> Tensor:
        for layer in self.layers[first:last]:
            states = layer(states, mask[:, None, None, :])
        return states


class CompactNet(nn.Module):
    """Encoder and heads."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = CompactEncoder(config)
        self.exit_relevance = Score(config.width)
        self.relevance = Score(config.width)
        self.span = nn.Linear(config.width, 2)
        self.ambiguity = nn.Linear(config.width, 1)
        # Forked, so that this head changes no other initial weight of a given seed.
        with torch.random.fork_rng(devices=[]):
            self.verdict = _Verdict(config.width)

    @property
    def first_half(self) -> list[nn.Module]:
        """The modules of `early` and the head that ranks its pairs."""
        encoder = self.encoder
        return [
            encoder.words,
            encoder.places,
            encoder.types,
            encoder.norm,
            *encoder.layers[: self.config.early],
            self.exit_relevance,
        ]

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Compile layer by layer: the layers are nearly all of the work, and they are alike."""
        for layer in self.encoder.layers:
            layer.compile(*arguments, **options)

    def read(self, ids: Tensor, types: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """The output of every head for a batch of pairs (pairs × tokens each), all through both halves."""
        early = self.encoder.early(ids, types, mask)
        late = self.encoder.late(early, mask)
        return {
            "exit": self.exit_relevance(early).float(),
            "relevance": self.relevance(late).float(),
            "span": self.span(late).float(),
            "ambiguity": self.ambiguity(late[:, 0]).squeeze(-1).float(),
            "states": late,
        }


def gelu(values: Tensor) -> Tensor:
    """GELU by tanh: on a CPU half the time of the exact one, and never more than 0.0005 from it."""
    return F.gelu(values, approximate="tanh")


def _share_scale(first: nn.Module, *others: nn.Module) -> None:
    """Let layers with one quantized input share its scale."""
    for other in others:
        other.scale = first.scale


def set_quantization(net: nn.Module, *, weights: bool, activations: bool) -> None:
    """Turn the arithmetic of the exported int8 model on or off."""
    for module in net.modules():
        if isinstance(module, QuantizedLinear):
            module.quantize_weights = weights
            module.quantize_activations = activations


def from_bert(weights: dict[str, Any], config: CompactConfig) -> CompactNet:
    """A new model whose encoder has a BERT's weights (names as in its safetensors file)."""
    net = CompactNet(config)
    state = net.state_dict()
    bert = {_our_name(name): torch.as_tensor(value) for name, value in weights.items()}
    for name, own in state.items():
        if not name.startswith("encoder.") or name.endswith(".scale"):
            continue
        if name not in bert or bert[name].shape != own.shape:
            raise BadInput(
                f"The base model has no weight for '{name}' of shape {tuple(own.shape)}: give a BERT."
            )
        state[name] = bert[name]
    net.load_state_dict(state)
    return net


BERT_PARTS = {
    "attention.self.query": "attention.query",
    "attention.self.key": "attention.key",
    "attention.self.value": "attention.value",
    "attention.output.dense": "attention.output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "wide",
    "output.dense": "narrow",
    "output.LayerNorm": "norm",
}
_TABLES = {
    "word_embeddings": "words",
    "position_embeddings": "places",
    "token_type_embeddings": "types",
}


def _our_name(name: str) -> str:
    """The name in `CompactNet` of a weight of BERT; a name that it does not have, for a weight without a place."""
    area, _, rest = name.removeprefix("bert.").partition(".")
    if area == "embeddings":
        part, _, kind = rest.partition(".")
        return f"encoder.{_TABLES.get(part, 'norm')}.{kind}"
    number, _, rest = rest.removeprefix("layer.").partition(".")
    part, _, kind = rest.rpartition(".")
    return f"encoder.layers.{number}.{BERT_PARTS.get(part, '')}.{kind}"
