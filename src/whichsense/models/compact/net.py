"""The compact model in torch, as it is trained: an encoder in two halves with its heads, and a small decoder.

The exported form (`export.py`) does the same arithmetic in ONNX Runtime.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from whichsense.errors import BadInput
from whichsense.models.compact.quantized import QuantizedLinear

# Not cuDNN's: it makes a plan for every new shape, which takes longer than the step, and no two batches are of one.
_ANY_SHAPE = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


@dataclass(frozen=True)
class CompactConfig:
    """The shape of the model. The defaults are gte-small's, cut after its fourth layer, with a decoder of four."""

    vocabulary: int = 30_522
    width: int = 384
    heads: int = 12
    inner: int = 1536
    positions: int = 512
    layers: int = 12
    early: int = 4
    decoder_layers: int = 4
    decoder_positions: int = 192
    epsilon: float = 1e-12
    dropout: float = 0.0
    """While training only."""


class Attention(nn.Module):
    """Many-headed attention over itself or over a memory. `key_mask` is True where a key may be looked at."""

    def __init__(self, config: CompactConfig, linear: type[nn.Linear]) -> None:
        super().__init__()
        self.heads = config.heads
        self.query, self.key, self.value, self.output = (linear(config.width, config.width) for _ in range(4))

    def split(self, states: Tensor) -> Tensor:
        return states.reshape(*states.shape[:-1], self.heads, -1).transpose(-3, -2)

    def keys_values(self, states: Tensor) -> tuple[Tensor, Tensor]:
        return self.split(self.key(states)), self.split(self.value(states))

    def forward(
        self, states: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, *, causal: bool = False
    ) -> Tensor:
        queries = self.split(self.query(states))
        seen = F.scaled_dot_product_attention(queries, keys, values, mask, is_causal=causal)
        found: Tensor = self.output(seen.transpose(-3, -2).flatten(-2))
        return found


class EncoderLayer(nn.Module):
    """BERT's layer: attention and feed-forward, each followed by its LayerNorm. All four inputs are quantized."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.attention = Attention(config, QuantizedLinear)
        self.attention_norm = nn.LayerNorm(config.width, config.epsilon)
        self.wide = QuantizedLinear(config.width, config.inner)
        self.narrow = QuantizedLinear(config.inner, config.width, after_gelu=True)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.dropout = nn.Dropout(config.dropout)
        share_scale(self.attention.query, self.attention.key, self.attention.value)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        keys, values = self.attention.keys_values(states)
        states = self.attention_norm(states + self.dropout(self.attention(states, keys, values, mask)))
        found: Tensor = self.norm(states + self.dropout(self.narrow(gelu(self.wide(states)))))
        return found


class Score(nn.Module):
    """A number from a [CLS] state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense, self.out = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, states: Tensor) -> Tensor:
        found: Tensor = self.out(torch.tanh(self.dense(states[..., 0, :]))).squeeze(-1)
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
        found: Tensor = self.norm(self.words(ids) + self.places.weight[: ids.shape[-1]] + self.types(types))
        return found

    def early(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        return self._through(self.embed(ids, types), mask, 0, self.config.early)

    def late(self, states: Tensor, mask: Tensor) -> Tensor:
        return self._through(states, mask, self.config.early, self.config.layers)

    def _through(self, states: Tensor, mask: Tensor, first: int, last: int) -> Tensor:
        for layer in self.layers[first:last]:
            states = layer(states, mask[:, None, None, :])
        return states


@dataclass(frozen=True)
class Memory:
    """What the decoder looks at: encoder states of some passages, side by side, for each sequence.

    `marks` is 1 on the tokens of the answer's spans. Marks are added after the projections of the states, so that the
    projections are the same for every answer and are made once.
    """

    states: Tensor
    marks: Tensor
    mask: Tensor
    ids: Tensor


class CrossAttention(Attention):
    """Attention over a memory, whose states are quantized as everything that the encoder's linear layers read."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__(config, nn.Linear)
        self.key: QuantizedLinear = QuantizedLinear(config.width, config.width)
        self.value: QuantizedLinear = QuantizedLinear(config.width, config.width)

    def marked_keys_values(self, memory: Memory, mark: Tensor) -> tuple[Tensor, Tensor]:
        return self.split(projected(self.key, memory, mark)), self.split(projected(self.value, memory, mark))


def projected(linear: QuantizedLinear, memory: Memory, mark: Tensor) -> Tensor:
    found: Tensor = linear(memory.states) + memory.marks[..., None] * F.linear(mark, linear.used_weight())
    return found


class DecoderLayer(nn.Module):
    """Self-attention, attention over the memory, feed-forward; LayerNorm before each."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.self_norm, self.cross_norm, self.norm = (nn.LayerNorm(config.width) for _ in range(3))
        self.self_attention, self.cross_attention = Attention(config, nn.Linear), CrossAttention(config)
        self.wide, self.narrow = nn.Linear(config.width, config.inner), nn.Linear(config.inner, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, memory: Memory, mark: Tensor) -> Tensor:
        normed = self.self_norm(states)
        heard = self.self_attention(normed, *self.self_attention.keys_values(normed), None, causal=True)
        states = states + self.dropout(heard)
        keys_values = self.cross_attention.marked_keys_values(memory, mark)
        seen = self.cross_attention(self.cross_norm(states), *keys_values, memory.mask[:, None, None, :])
        states = states + self.dropout(seen)
        found: Tensor = states + self.dropout(self.narrow(gelu(self.wide(self.norm(states)))))
        return found


class Decoder(nn.Module):
    """Writes edits and answers; may copy any token of the memory. Word vectors are the encoder's."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.places = nn.Embedding(config.decoder_positions, config.width)
        self.mark = nn.Parameter(torch.zeros(config.width))
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = nn.LayerNorm(config.width)
        self.out = nn.Linear(config.width, config.width)
        self.out_bias = nn.Parameter(torch.zeros(config.vocabulary))
        self.copy_query = nn.Linear(config.width, config.width)
        self.copy_key = QuantizedLinear(config.width, config.width)
        self.gate = nn.Linear(config.width, 1)
        crosses = [part for part in self.modules() if isinstance(part, CrossAttention)]
        share_scale(self.copy_key, *(linear for cross in crosses for linear in (cross.key, cross.value)))

    def forward(self, embedded: Tensor, memory: Memory) -> Tensor:
        states = embedded + self.places.weight[: embedded.shape[1]]
        for layer in self.layers:
            states = layer(states, memory, self.mark)
        found: Tensor = self.norm(states)
        return found

    def copying(self, states: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Log weights over the memory's tokens, and the logit of copying at all."""
        keys = projected(self.copy_key, memory, self.mark)
        scores = self.copy_query(states) @ keys.transpose(1, 2) / keys.shape[-1] ** 0.5
        scores = scores.float().masked_fill(~memory.mask[:, None, :], float("-inf"))
        return F.log_softmax(scores, dim=-1), self.gate(states).squeeze(-1).float()


class CompactNet(nn.Module):
    """The whole: encoder, heads, decoder."""

    def __init__(self, config: CompactConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.exit_relevance, self.relevance = Score(config.width), Score(config.width)
        self.span = nn.Linear(config.width, 2)
        self.ambiguity = nn.Linear(config.width, 1)
        self.decoder = Decoder(config)

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

    def write(self, tokens: Tensor, memory: Memory) -> Tensor:
        """The decoder's state after each token."""
        with sdpa_kernel(_ANY_SHAPE):
            found: Tensor = self.decoder(self.encoder.words(tokens), memory)
        return found

    def token_scores(self, states: Tensor, memory: Memory, targets: Tensor) -> Tensor:
        """Log probability of each target token: written from the vocabulary or copied from the memory."""
        logits = F.linear(self.decoder.out(states), self.encoder.words.weight, self.decoder.out_bias).float()
        written = logits.gather(-1, targets[..., None]).squeeze(-1) - logits.logsumexp(-1)
        copying, gate = self.decoder.copying(states, memory)
        same = memory.ids[:, None, :] == targets[..., None]
        copied = copying.masked_fill(~same, -1e4).logsumexp(-1)
        return torch.logaddexp(F.logsigmoid(-gate) + written, F.logsigmoid(gate) + copied)


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
    needed = [name for name in state if name.startswith("encoder.") and not name.endswith(".scale")]
    for name in needed:
        if name not in found or found[name].shape != state[name].shape:
            raise BadInput(
                f"The base model has no weight for '{name}' of shape {tuple(state[name].shape)}: give a BERT."
            )
    net.load_state_dict(state | {name: found[name] for name in needed})
    return net


_PARTS = {
    "attention.self.query": "attention.query",
    "attention.self.key": "attention.key",
    "attention.self.value": "attention.value",
    "attention.output.dense": "attention.output",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "wide",
    "output.dense": "narrow",
    "output.LayerNorm": "norm",
}
_TABLES = {"word_embeddings": "words", "position_embeddings": "places", "token_type_embeddings": "types"}


def _our_name(name: str) -> str:
    """The name here of a weight of BERT; one that is not in the model where it has no place."""
    area, _, rest = name.removeprefix("bert.").partition(".")
    if area == "embeddings":
        part, _, kind = rest.partition(".")
        return f"encoder.{_TABLES.get(part, 'norm')}.{kind}"
    number, _, rest = rest.removeprefix("layer.").partition(".")
    part, _, kind = rest.rpartition(".")
    return f"encoder.layers.{number}.{_PARTS.get(part, '')}.{kind}"
