"""One transformer for both families, as functions over tensors: BART and T5 differ in a `Style` and in their weights.

Functions, not modules, so that the same code runs over float32 parameters in training and over a bfloat16 copy with
joined matrices in use, and so that one compiled layer serves all layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from whichsense.models.seq2seq.ragged import Ragged, cross_attention, self_attention


@dataclass(frozen=True, slots=True)
class Style:
    """What the families do differently, and the sizes."""

    heads: int
    width: int
    """Of one head."""
    scale: float
    """Of attention scores: T5 has none, as its initialisation holds it."""
    epsilon: float
    norm_first: bool
    """T5 normalises what goes into a block; BART what comes out of it."""
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


class EncoderLayer(NamedTuple):
    attention: SelfAttention
    feed: FeedForward


class DecoderLayer(NamedTuple):
    attention: SelfAttention
    cross: CrossAttention
    feed: FeedForward


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


def apply(linear: Linear, x: Tensor) -> Tensor:
    """In the precision of what goes in: parameters may be kept in a higher one."""
    bias = None if linear.bias is None else linear.bias.to(x.dtype)
    return F.linear(x, linear.weight.to(x.dtype), bias)


def normalised(x: Tensor, norm: Norm, style: Style) -> Tensor:
    if style.root_mean_square:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + style.epsilon)
        return norm.weight.to(x.dtype) * wide.to(x.dtype)
    bias = None if norm.bias is None else norm.bias.to(x.dtype)
    return F.layer_norm(x, x.shape[-1:], norm.weight.to(x.dtype), bias, style.epsilon)


def added(x: Tensor, change: Tensor, norm: Norm, style: Style, training: bool) -> Tensor:
    """What a block adds to its input; normalised behind it in the post-norm family."""
    x = x + F.dropout(change, style.dropout, training)
    return x if style.norm_first else normalised(x, norm, style)


def entry(x: Tensor, norm: Norm, style: Style) -> Tensor:
    return normalised(x, norm, style) if style.norm_first else x


def feed_forward(x: Tensor, w: FeedForward, style: Style, training: bool) -> Tensor:
    h = entry(x, w.norm, style)
    up = ACTIVATIONS[style.activation](apply(w.up, h))
    if w.gate is not None:
        up = up * apply(w.gate, h)
    up = F.dropout(up, style.activation_dropout, training)
    return added(x, apply(w.down, up), w.norm, style, training)


def encoder_layer(
    x: Tensor, w: EncoderLayer, rows: Ragged, bias: Tensor | None, style: Style, training: bool
) -> Tensor:
    """(tokens, size) → (tokens, size)."""
    h = entry(x, w.attention.norm, style)
    query, key, value = apply(w.attention.joined, h).view(-1, 3, style.heads, style.width).unbind(1)
    dropout = style.attention_dropout if training else 0.0
    seen = self_attention(query, key, value, rows, scale=style.scale, dropout=dropout, bias=bias)
    x = added(x, apply(w.attention.out, seen.reshape(x.shape[0], -1)), w.attention.norm, style, training)
    return feed_forward(x, w.feed, style, training)


def memory_of(memory: Tensor, w: CrossAttention, style: Style) -> tuple[Tensor, Tensor]:
    """Keys and values of the encoded tokens for one decoder layer: (tokens, heads, width) each."""
    shape = (-1, style.heads, style.width)
    return apply(w.key, memory).view(shape), apply(w.value, memory).view(shape)


def decoder_layer(
    x: Tensor, w: DecoderLayer, memory: Tensor, rows: Ragged, bias: Tensor | None, style: Style, training: bool
) -> Tensor:
    """All places of the targets at once: (count, length, size) → the same."""
    count, length, _ = x.shape
    dropout = style.attention_dropout if training else 0.0
    h = entry(x, w.attention.norm, style)
    joined = apply(w.attention.joined, h).view(count, length, 3, style.heads, style.width)
    query, key, value = (part.transpose(1, 2) for part in joined.unbind(2))
    seen = F.scaled_dot_product_attention(
        query, key, value, attn_mask=bias, is_causal=bias is None, dropout_p=dropout, scale=style.scale
    )
    change = apply(w.attention.out, seen.transpose(1, 2).reshape(count, length, -1))
    x = added(x, change, w.attention.norm, style, training)

    h = entry(x, w.cross.norm, style)
    query = apply(w.cross.query, h).view(count, length, style.heads, style.width)
    keys, values = memory_of(memory, w.cross, style)
    seen = cross_attention(query, keys, values, rows, scale=style.scale, dropout=dropout)
    x = added(x, apply(w.cross.out, seen.reshape(count, length, -1)), w.cross.norm, style, training)
    return feed_forward(x, w.feed, style, training)


def decoder_step(
    x: Tensor,
    w: DecoderLayer,
    cache: tuple[Tensor, Tensor],
    position: Tensor,
    bias: Tensor,
    memory: tuple[Tensor, Tensor],
    memory_mask: Tensor | None,
    style: Style,
) -> Tensor:
    """One place of each hypothesis: (questions × beams, size) → the same.

    `cache` holds what the earlier places of each hypothesis gave, and gets this one. The hypotheses of a question
    are queries over one and the same memory: its keys and values are neither copied nor read once for each beam.
    """
    hypotheses = x.shape[0]
    h = entry(x, w.attention.norm, style)
    query, key, value = apply(w.attention.joined, h).view(hypotheses, 3, style.heads, 1, style.width).unbind(1)
    keys, values = cache
    keys.index_copy_(2, position, key)
    values.index_copy_(2, position, value)
    seen = F.scaled_dot_product_attention(query, keys, values, attn_mask=bias, scale=style.scale)
    x = added(x, apply(w.attention.out, seen.reshape(hypotheses, -1)), w.attention.norm, style, False)

    h = entry(x, w.cross.norm, style)
    keys, values = memory
    questions = keys.shape[0]
    query = apply(w.cross.query, h).view(questions, -1, style.heads, style.width).transpose(1, 2)
    seen = F.scaled_dot_product_attention(query, keys, values, attn_mask=memory_mask, scale=style.scale)
    change = apply(w.cross.out, seen.transpose(1, 2).reshape(hypotheses, -1))
    x = added(x, change, w.cross.norm, style, False)
    return feed_forward(x, w.feed, style, False)
