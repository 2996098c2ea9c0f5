"""The compact model in torch, as it is trained: an encoder in two halves with its heads. What writes is in `writer/`.

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

VERDICT_WIDTH = 128  # numbers that a verdict is made of


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
    """Many-headed attention over itself. `mask` is True where a key may be looked at."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.heads = config.heads
        parts = (QuantizedLinear(config.width, config.width) for _ in range(4))
        self.query, self.key, self.value, self.output = parts

    def split(self, states: Tensor) -> Tensor:
        return states.reshape(*states.shape[:-1], self.heads, -1).transpose(-3, -2)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        query, key, value = (
            self.split(part(states)) for part in (self.query, self.key, self.value)
        )
        seen = F.scaled_dot_product_attention(query, key, value, mask)
        found: Tensor = self.output(seen.transpose(-3, -2).flatten(-2))
        return found


class EncoderLayer(nn.Module):
    """BERT's layer: attention and feed-forward, each followed by its LayerNorm. All four inputs are quantized."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(config.width, config.epsilon)
        self.wide = QuantizedLinear(config.width, config.inner)
        self.narrow = QuantizedLinear(config.inner, config.width, after_gelu=True)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.dropout = nn.Dropout(config.dropout)
        share_scale(self.attention.query, self.attention.key, self.attention.value)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        states = self.attention_norm(
            states + self.dropout(self.attention(states, mask))
        )
        found: Tensor = self.norm(
            states + self.dropout(self.narrow(gelu(self.wide(states))))
        )
        return found


class Score(nn.Module):
    """A number from a [CLS] state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense, self.out = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, states: Tensor) -> Tensor:
        found: Tensor = self.out(torch.tanh(self.dense(states[..., 0, :]))).squeeze(-1)
        return found


class Verdict(nn.Module):
    """Whether a span answers the question, whatever else does: from the states of [CLS], its first and last token."""

    def __init__(self, width: int, inner: int = VERDICT_WIDTH) -> None:
        super().__init__()
        self.dense, self.out = nn.Linear(3 * width, inner), nn.Linear(inner, 1)

    def forward(self, states: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """States are pairs × tokens × width; spans, by their edges, pairs × spans."""
        wide = states.shape[-1]
        begin, end = (
            states.gather(1, place[..., None].expand(-1, -1, wide))
            for place in (first, last)
        )
        edges = torch.cat([states[:, :1].expand_as(begin), begin, end], -1)
        found: Tensor = self.out(gelu(self.dense(edges))).squeeze(-1)
        return found


class Encoder(nn.Module):
    """`early` reads many pairs and scores them; `late` reads the best of them to the end."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocabulary, config.width, padding_idx=0)
        self.places = nn.Embedding(config.positions, config.width)
        self.types = nn.Embedding(2, config.width)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))

    def embed(self, ids: Tensor, types: Tensor) -> Tensor:
        found: Tensor = self.norm(
            self.words(ids) + self.places.weight[: ids.shape[-1]] + self.types(types)
        )
        return found

    def early(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        return self._through(self.embed(ids, types), mask, 0, self.config.early)

    def late(self, states: Tensor, mask: Tensor) -> Tensor:
        return self._through(states, mask, self.config.early, self.config.layers)

    def _through(self, states: Tensor, mask: Tensor, first: int, last: int) -> Tensor:
        for layer in self.layers[first:last]:
            states = layer(states, mask[:, None, None, :])
        return states


class CompactNet(nn.Module):
    """Encoder and heads."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.exit_relevance, self.relevance = Score(config.width), Score(config.width)
        self.span = nn.Linear(config.width, 2)
        self.ambiguity = nn.Linear(config.width, 1)
        with torch.random.fork_rng(
            devices=[]
        ):  # with the same seed the others begin as they did before there was one
            self.verdict = Verdict(config.width)

    @property
    def first_half(self) -> list[nn.Module]:
        """What all pairs go through, and the head that says which of them go on."""
        own = self.encoder
        return [
            own.words,
            own.places,
            own.types,
            own.norm,
            *own.layers[: self.config.early],
            self.exit_relevance,
        ]

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Layer by layer: the encoder is nearly all of the work, and its layers are alike."""
        for layer in self.encoder.layers:
            layer.compile(*arguments, **options)

    def read(self, ids: Tensor, types: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Every head's output for a batch of pairs that all go through both halves."""
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
    """By tanh: on a CPU half the time of the exact one, and never more than 0.0005 from it."""
    return F.gelu(values, approximate="tanh")


def share_scale(first: nn.Module, *others: nn.Module) -> None:
    """Layers that read one quantized tensor have one scale for it."""
    for other in others:
        other.scale = first.scale


def set_quantization(net: nn.Module, *, weights: bool, activations: bool) -> None:
    """Turn the arithmetic of the exported int8 model on or off."""
    for module in net.modules():
        if isinstance(module, QuantizedLinear):
            module.quantize_weights, module.quantize_activations = weights, activations


def from_bert(weights: dict[str, Any], config: CompactConfig) -> CompactNet:
    """A fresh model whose encoder holds a plain BERT's weights (names as in its safetensors file)."""
    net = CompactNet(config)
    state = net.state_dict()
    found = {_our_name(name): torch.as_tensor(value) for name, value in weights.items()}
    needed = [
        name
        for name in state
        if name.startswith("encoder.") and not name.endswith(".scale")
    ]
    for name in needed:
        if name not in found or found[name].shape != state[name].shape:
            raise BadInput(
                f"The base model has no weight for '{name}' of shape {tuple(state[name].shape)}: give a BERT."
            )
    net.load_state_dict(state | {name: found[name] for name in needed})
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
    """The name here of a weight of BERT; one that is not in the model where it has no place."""
    area, _, rest = name.removeprefix("bert.").partition(".")
    if area == "embeddings":
        part, _, kind = rest.partition(".")
        return f"encoder.{_TABLES.get(part, 'norm')}.{kind}"
    number, _, rest = rest.removeprefix("layer.").partition(".")
    part, _, kind = rest.rpartition(".")
    return f"encoder.layers.{number}.{BERT_PARTS.get(part, '')}.{kind}"
