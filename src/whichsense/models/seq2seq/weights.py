"""The weights of transformer layers as named tuples, the style of a family, and what a network needs from a family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from whichsense.errors import BadInput

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


@dataclass(frozen=True, slots=True)
class Style:
    """The sizes, and what the families do differently."""

    heads: int
    width: int
    """The width of a head."""
    scale: float
    """Of attention scores. T5 does not scale: its initialization accounts for it."""
    epsilon: float
    norm_first: bool
    """T5 normalizes the input of a block; BART its output."""
    root_mean_square: bool
    activation: str
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0


class Linear(NamedTuple):
    weight: Tensor
    bias: Tensor | None = None


class Norm(NamedTuple):
    weight: Tensor
    bias: Tensor | None = None


class Embedding(NamedTuple):
    """Tables of words and positions, and the norm of their sum."""

    words: Tensor
    scale: float
    """The factor of word vectors."""
    unlearned: int
    """The word without a gradient; -1 if all have one."""
    places: Tensor
    offset: int
    """The row of the first position."""
    norm: Norm


class FeedForward(NamedTuple):
    up: Linear
    gate: Linear | None
    down: Linear
    norm: Norm


class SelfAttention(NamedTuple):
    joined: Linear
    """Query, key and value in one matrix."""
    out: Linear
    norm: Norm


class CrossAttention(NamedTuple):
    query: Linear
    key: Linear
    value: Linear
    out: Linear
    norm: Norm


class EncoderWeights(NamedTuple):
    attention: SelfAttention
    feed: FeedForward


class DecoderWeights(NamedTuple):
    attention: SelfAttention
    cross: CrossAttention
    feed: FeedForward


class ModelFamily(Protocol):
    """What a network needs from a family. `model` is the transformers model whose parameters are read."""

    encoder_style: Style
    decoder_style: Style

    def encoder_layers(self, model: Any) -> list[EncoderWeights]: ...

    def decoder_layers(self, model: Any) -> list[DecoderWeights]: ...

    def embedded(
        self, model: Any, side: str, ids: Tensor, position: Tensor, dtype: torch.dtype
    ) -> Tensor: ...

    def encoder_bias(
        self, model: Any, length: int, dtype: torch.dtype
    ) -> Tensor | None: ...

    def decoder_bias(
        self, model: Any, length: int, dtype: torch.dtype
    ) -> Tensor | None:
        """For all positions at once. None: causal and nothing else."""

    def step_bias(
        self, model: Any, position: Tensor, length: int, dtype: torch.dtype
    ) -> Tensor:
        """For one position over a cache of `length` positions."""

    def encoded(self, model: Any, x: Tensor) -> Tensor: ...

    def logits(self, model: Any, x: Tensor) -> Tensor: ...


def linear_of(*modules: nn.Linear) -> Linear:
    """The weights of linear modules with the same input, as one matrix."""
    if len(modules) == 1:
        return Linear(modules[0].weight, modules[0].bias)
    weights: list[Tensor] = [module.weight for module in modules]
    biases: list[Tensor] = []
    for module in modules:
        if module.bias is not None:
            biases.append(module.bias)
    return Linear(torch.cat(weights), torch.cat(biases) if biases else None)


def norm_of(module: Any) -> Norm:
    return Norm(module.weight, getattr(module, "bias", None))


def check_activation(activation: str) -> None:
    """Reject an activation that is not built in."""
    if activation not in ACTIVATIONS:
        raise BadInput(
            f"This checkpoint's activation '{activation}' is not built in. Known: {', '.join(ACTIVATIONS)}."
        )


def cast_weights(part: Any, dtype: torch.dtype) -> Any:
    """The same named tuple with every tensor in another precision."""
    if isinstance(part, Tensor):
        return part.to(dtype)
    if part is None:
        return None
    return type(part)(*(cast_weights(one, dtype) for one in part))
