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


class Embedding(NamedTuple):
    """Tables of words and places, for a norm behind their sum."""

    words: Tensor
    scale: float
    """Of the words."""
    unlearned: int
    """The word without a gradient; -1: none."""
    places: Tensor
    offset: int
    """Of the first place."""
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


class EncoderLayer(NamedTuple):
    attention: SelfAttention
    feed: FeedForward


class DecoderLayer(NamedTuple):
    attention: SelfAttention
    cross: CrossAttention
    feed: FeedForward


Read = Callable[[Tensor], Tensor]
"""Queries (count, length, heads, width) → what a decoder layer finds for them in its memory, in the same shape."""


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


def dropped(
    x: Tensor, rate: float, training: bool, noise: Tensor | None = None
) -> Tensor:
    """Dropout. With `noise`, a random byte for each number, which is cheaper to draw than a random number each.

    Eight bits make the rate a multiple of 1/256, as in flash attention: 0.1 becomes 26/256.
    """
    if noise is None or not training or not rate:
        return F.dropout(x, rate, training)
    dropped_of_256 = round(rate * 256)
    kept = noise.view(x.shape) >= dropped_of_256
    return torch.where(kept, x * (256 / (256 - dropped_of_256)), 0.0)


def noise_bytes(count: int, device: torch.device) -> Tensor:
    """Random bytes, drawn eight at a time."""
    words = torch.empty(-(-count // 8), dtype=torch.int64, device=device)
    return words.random_(torch.iinfo(torch.int64).min, None).view(torch.uint8)[:count]


def added(
    x: Tensor, change: Tensor, norm: Norm, style: Style, training: bool
) -> Tensor:
    """What a block adds to its input; normalised behind it in the post-norm family."""
    x = x + F.dropout(change, style.dropout, training)
    return x if style.norm_first else normalised(x, norm, style)


def entry(x: Tensor, norm: Norm, style: Style) -> Tensor:
    return normalised(x, norm, style) if style.norm_first else x


def feed_forward(
    x: Tensor, w: FeedForward, style: Style, training: bool, noise: Tensor | None = None
) -> Tensor:
    h = entry(x, w.norm, style)
    up = ACTIVATIONS[style.activation](apply(w.up, h))
    if w.gate is not None:
        up = up * apply(w.gate, h)
    up = dropped(up, style.activation_dropout, training, noise)
    return added(x, apply(w.down, up), w.norm, style, training)


def encoder_layer(
    x: Tensor,
    w: EncoderLayer,
    rows: Ragged,
    bias: Tensor | None,
    noise: Tensor | None,
    style: Style,
    training: bool,
) -> Tensor:
    """(tokens, size) → (tokens, size). `noise`: what `encoder_noise` gave for it."""
    h = entry(x, w.attention.norm, style)
    query, key, value = (
        apply(w.attention.joined, h).view(-1, 3, style.heads, style.width).unbind(1)
    )
    dropout = style.attention_dropout if training else 0.0
    seen = self_attention(
        query, key, value, rows, scale=style.scale, dropout=dropout, bias=bias
    )
    x = added(
        x,
        apply(w.attention.out, seen.reshape(x.shape[0], -1)),
        w.attention.norm,
        style,
        training,
    )
    return feed_forward(x, w.feed, style, training, noise)


def encoder_noise(x: Tensor, w: EncoderLayer, style: Style) -> Tensor | None:
    """Random bytes for the dropout of a layer's widest part, on a GPU; None where the usual way is as good.

    Drawing a random number for each of those values took as long as their matrix product. For the narrow dropouts
    beside the norms it does not pay: their backward kernels became slower than what it saved (docs/log.md).
    """
    if not x.is_cuda or not style.activation_dropout:
        return None
    return noise_bytes(x.shape[0] * w.feed.up.weight.shape[0], x.device)


def memory_of(memory: Tensor, w: CrossAttention, style: Style) -> tuple[Tensor, Tensor]:
    """Keys and values of the encoded tokens for one decoder layer: (tokens, heads, width) each."""
    shape = (-1, style.heads, style.width)
    return apply(w.key, memory).view(shape), apply(w.value, memory).view(shape)


def decoder_layer(
    x: Tensor,
    w: DecoderLayer,
    memory: Tensor | tuple[Tensor, Tensor] | Read,
    rows: Ragged,
    bias: Tensor | None,
    style: Style,
    training: bool,
) -> Tensor:
    """All places of the targets at once: (count, length, size) → the same.

    `memory`, or its keys and values here, or another way to read it.
    """
    count, length, _ = x.shape
    dropout = style.attention_dropout if training else 0.0
    h = entry(x, w.attention.norm, style)
    joined = apply(w.attention.joined, h).view(
        count, length, 3, style.heads, style.width
    )
    query, key, value = (part.transpose(1, 2) for part in joined.unbind(2))
    seen = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=bias,
        is_causal=bias is None,
        dropout_p=dropout,
        scale=style.scale,
    )
    change = apply(w.attention.out, seen.transpose(1, 2).reshape(count, length, -1))
    x = added(x, change, w.attention.norm, style, training)

    h = entry(x, w.cross.norm, style)
    query = apply(w.cross.query, h).view(count, length, style.heads, style.width)
    if isinstance(memory, Tensor):
        memory = memory_of(memory, w.cross, style)
    if isinstance(memory, tuple):
        seen = cross_attention(query, *memory, rows, scale=style.scale, dropout=dropout)
    else:
        seen = memory(query)
    x = added(
        x,
        apply(w.cross.out, seen.reshape(count, length, -1)),
        w.cross.norm,
        style,
        training,
    )
    return feed_forward(x, w.feed, style, training)


def decoder_step(
    x: Tensor,
    w: DecoderLayer,
    cache: tuple[Tensor, Tensor],
    position: Tensor,
    bias: Tensor,
    memory: tuple[Tensor, Tensor],
    memory_mask: Tensor | Ragged | None,
    style: Style,
) -> Tensor:
    """One place of each hypothesis: (questions × beams, size) → the same.

    `memory` is padded, with a mask or none, or end to end, with where each question lies.

    `cache` holds what the earlier places of each hypothesis gave, and gets this one. The hypotheses of a question
    are queries over one and the same memory: its keys and values are neither copied nor read once for each beam.
    """
    hypotheses = x.shape[0]
    h = entry(x, w.attention.norm, style)
    query, key, value = (
        apply(w.attention.joined, h)
        .view(hypotheses, 3, style.heads, 1, style.width)
        .unbind(1)
    )
    keys, values = cache
    keys.index_copy_(2, position, key)
    values.index_copy_(2, position, value)
    seen = F.scaled_dot_product_attention(
        query, keys, values, attn_mask=bias, scale=style.scale
    )
    x = added(
        x,
        apply(w.attention.out, seen.reshape(hypotheses, -1)),
        w.attention.norm,
        style,
        False,
    )

    h = entry(x, w.cross.norm, style)
    keys, values = memory
    questions = memory_mask.rows if isinstance(memory_mask, Ragged) else keys.shape[0]
    query = apply(w.cross.query, h).view(questions, -1, style.heads, style.width)
    if isinstance(memory_mask, Ragged):
        seen = cross_attention(
            query, keys, values, memory_mask, scale=style.scale, dropout=0.0
        )
    else:
        seen = F.scaled_dot_product_attention(
            query.transpose(1, 2),
            keys,
            values,
            attn_mask=memory_mask,
            scale=style.scale,
        ).transpose(1, 2)
    change = apply(w.cross.out, seen.reshape(hypotheses, -1))
    x = added(x, change, w.cross.norm, style, False)
    return feed_forward(x, w.feed, style, False)
