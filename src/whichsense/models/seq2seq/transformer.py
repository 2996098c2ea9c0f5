"""One transformer for both families, as functions over tensors: BART and T5 differ in a `Style` and in their weights.

They are functions, not modules: the same code runs over float32 parameters in training and over a bfloat16 copy with
joined matrices in inference, and one compiled layer serves all layers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from whichsense.models.seq2seq.ragged import RaggedRows, cross_attention, self_attention
from whichsense.models.seq2seq.weights import (
    ACTIVATIONS,
    CrossAttention,
    DecoderWeights,
    EncoderWeights,
    FeedForward,
    Linear,
    Norm,
    Style,
)

Read = Callable[[Tensor], Tensor]
"""Cross-attention of a decoder layer: queries (count, length, heads, width) → contexts of the same shape."""


def apply(linear: Linear, x: Tensor) -> Tensor:
    """A linear layer in the precision of its input. Parameters may have a higher one."""
    bias = None if linear.bias is None else linear.bias.to(x.dtype)
    return F.linear(x, linear.weight.to(x.dtype), bias)


def normalised(x: Tensor, norm: Norm, style: Style) -> Tensor:
    if style.root_mean_square:
        wide = x.float()
        variance = wide.pow(2).mean(-1, keepdim=True)
        wide = wide * torch.rsqrt(variance + style.epsilon)
        return norm.weight.to(x.dtype) * wide.to(x.dtype)
    bias = None if norm.bias is None else norm.bias.to(x.dtype)
    return F.layer_norm(x, x.shape[-1:], norm.weight.to(x.dtype), bias, style.epsilon)


def dropped(
    x: Tensor, rate: float, training: bool, noise: Tensor | None = None
) -> Tensor:
    """Dropout. With `noise`, a random byte decides on each number, which is cheaper than a random float.

    The rate becomes a multiple of 1/256, as in flash attention: 0.1 is 26/256.
    """
    if noise is None or not training or not rate:
        return F.dropout(x, rate, training)
    threshold = round(rate * 256)
    keep = noise.view(x.shape) >= threshold
    scaled = x * (256 / (256 - threshold))
    return torch.where(keep, scaled, 0.0)


def noise_bytes(count: int, device: torch.device) -> Tensor:
    """Random bytes, drawn eight at a time."""
    words = torch.empty(-(-count // 8), dtype=torch.int64, device=device)
    words.random_(torch.iinfo(torch.int64).min, None)
    return words.view(torch.uint8)[:count]


def added(
    x: Tensor, change: Tensor, norm: Norm, style: Style, training: bool
) -> Tensor:
    """The residual sum of a block, normalized in the post-norm family."""
    x = x + F.dropout(change, style.dropout, training)
    return x if style.norm_first else normalised(x, norm, style)


def _entry(x: Tensor, norm: Norm, style: Style) -> Tensor:
    """The input of a block, normalized in the pre-norm family."""
    return normalised(x, norm, style) if style.norm_first else x


def _feed_forward(
    x: Tensor, w: FeedForward, style: Style, training: bool, noise: Tensor | None = None
) -> Tensor:
    h = _entry(x, w.norm, style)
    up = ACTIVATIONS[style.activation](apply(w.up, h))
    if w.gate is not None:
        up = up * apply(w.gate, h)
    up = dropped(up, style.activation_dropout, training, noise)
    return added(x, apply(w.down, up), w.norm, style, training)


def encoder_layer(
    x: Tensor,
    w: EncoderWeights,
    rows: RaggedRows,
    bias: Tensor | None,
    noise: Tensor | None,
    style: Style,
    training: bool,
) -> Tensor:
    """(tokens, size) → (tokens, size). `noise` comes from `encoder_noise`."""
    h = _entry(x, w.attention.norm, style)
    joined = apply(w.attention.joined, h).view(-1, 3, style.heads, style.width)
    query, key, value = joined.unbind(1)
    dropout = style.attention_dropout if training else 0.0
    context = self_attention(
        query, key, value, rows, scale=style.scale, dropout=dropout, bias=bias
    )
    change = apply(w.attention.out, context.reshape(x.shape[0], -1))
    x = added(x, change, w.attention.norm, style, training)
    return _feed_forward(x, w.feed, style, training, noise)


def encoder_noise(x: Tensor, w: EncoderWeights, style: Style) -> Tensor | None:
    """Random bytes for the dropout of a layer's widest part, on a GPU; None elsewhere.

    Drawing a random float for each of those values took as long as their matrix product. For the narrow dropouts beside
    the norms bytes do not pay: their backward kernels lost more time than that saved (docs/log.md).
    """
    if not x.is_cuda or not style.activation_dropout:
        return None
    inner = w.feed.up.weight.shape[0]
    return noise_bytes(x.shape[0] * inner, x.device)


def memory_of(memory: Tensor, w: CrossAttention, style: Style) -> tuple[Tensor, Tensor]:
    """Keys and values of the encoded tokens for one decoder layer: (tokens, heads, width) each."""
    shape = (-1, style.heads, style.width)
    keys = apply(w.key, memory).view(shape)
    values = apply(w.value, memory).view(shape)
    return keys, values


def decoder_layer(
    x: Tensor,
    w: DecoderWeights,
    memory: Tensor | tuple[Tensor, Tensor] | Read,
    rows: RaggedRows,
    bias: Tensor | None,
    style: Style,
    training: bool,
) -> Tensor:
    """All positions of the targets at once: (count, length, size) → the same shape.

    `memory` is the encoded tokens, or their keys and values in this layer, or another cross-attention.
    """
    count, length, _ = x.shape
    dropout = style.attention_dropout if training else 0.0
    h = _entry(x, w.attention.norm, style)
    joined = apply(w.attention.joined, h)
    joined = joined.view(count, length, 3, style.heads, style.width)
    query, key, value = joined.transpose(1, 3).unbind(2)
    context = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=bias,
        is_causal=bias is None,
        dropout_p=dropout,
        scale=style.scale,
    )
    context = context.transpose(1, 2).reshape(count, length, -1)
    change = apply(w.attention.out, context)
    x = added(x, change, w.attention.norm, style, training)

    h = _entry(x, w.cross.norm, style)
    query = apply(w.cross.query, h).view(count, length, style.heads, style.width)
    if isinstance(memory, Tensor):
        memory = memory_of(memory, w.cross, style)
    if isinstance(memory, tuple):
        context = cross_attention(
            query, *memory, rows, scale=style.scale, dropout=dropout
        )
    else:
        context = memory(query)
    change = apply(w.cross.out, context.reshape(count, length, -1))
    x = added(x, change, w.cross.norm, style, training)
    return _feed_forward(x, w.feed, style, training)


def decoder_step(
    x: Tensor,
    w: DecoderWeights,
    cache: tuple[Tensor, Tensor],
    position: Tensor,
    bias: Tensor,
    memory: tuple[Tensor, Tensor],
    memory_mask: Tensor | RaggedRows | None,
    style: Style,
) -> Tensor:
    """One position of each hypothesis: (questions · beams, size) → the same shape.

    `memory` is padded, with a mask or none, or end to end, with the places of the questions as mask. `cache` holds keys
    and values of the earlier positions and gets those of this one. The hypotheses of a question are queries over one
    memory: its keys and values are neither copied nor read once for each beam.
    """
    hypotheses = x.shape[0]
    h = _entry(x, w.attention.norm, style)
    joined = apply(w.attention.joined, h)
    joined = joined.view(hypotheses, 3, style.heads, 1, style.width)
    query, key, value = joined.unbind(1)
    keys, values = cache
    keys.index_copy_(2, position, key)
    values.index_copy_(2, position, value)
    context = F.scaled_dot_product_attention(
        query, keys, values, attn_mask=bias, scale=style.scale
    )
    change = apply(w.attention.out, context.reshape(hypotheses, -1))
    x = added(x, change, w.attention.norm, style, False)

    h = _entry(x, w.cross.norm, style)
    keys, values = memory
    questions = (
        memory_mask.rows if isinstance(memory_mask, RaggedRows) else keys.shape[0]
    )
    query = apply(w.cross.query, h).view(questions, -1, style.heads, style.width)
    if isinstance(memory_mask, RaggedRows):
        context = cross_attention(
            query, keys, values, memory_mask, scale=style.scale, dropout=0.0
        )
    else:
        context = F.scaled_dot_product_attention(
            query.transpose(1, 2),
            keys,
            values,
            attn_mask=memory_mask,
            scale=style.scale,
        ).transpose(1, 2)
    change = apply(w.cross.out, context.reshape(hypotheses, -1))
    x = added(x, change, w.cross.norm, style, False)
    return _feed_forward(x, w.feed, style, False)
