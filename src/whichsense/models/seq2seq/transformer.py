"""Transformer layers over unpadded batches, and the families (BART, T5) that differ in their parts."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from whichsense.errors import BadInput
from whichsense.models.seq2seq.ragged import (
    ACTIVATIONS,
    CrossAttention,
    DecoderWeights,
    EncoderWeights,
    FeedForward,
    Linear,
    Norm,
    RaggedRows,
    SelfAttention,
    Style,
    check_activation,
    cross_attention,
    linear_of,
    norm_of,
    self_attention,
)

# One transformer for both families, as functions over tensors: BART and T5 differ in a `Style` and in
# their weights.
#
# They are functions, not modules: the same code runs over float32 parameters in training and over a
# bfloat16 copy with joined matrices in inference, and one compiled layer serves all layers.


def apply(linear: Linear, x: Tensor) -> Tensor:
    """Apply a linear layer in the precision of its input. Parameters may have a higher one."""
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
    """Return the residual sum of a block, normalized in the post-norm family."""
    x = x + F.dropout(change, style.dropout, training)
    return x if style.norm_first else normalised(x, norm, style)


def _entry(x: Tensor, norm: Norm, style: Style) -> Tensor:
    """Return the input of a block, normalized in the pre-norm family."""
    return normalised(x, norm, style) if style.norm_first else x


def _feed_forward(x: Tensor, w: FeedForward, style: Style, training: bool) -> Tensor:
    h = _entry(x, w.norm, style)
    up = ACTIVATIONS[style.activation](apply(w.up, h))
    if w.gate is not None:
        up = up * apply(w.gate, h)
    up = F.dropout(up, style.activation_dropout, training)
    return added(x, apply(w.down, up), w.norm, style, training)


def encoder_layer(
    x: Tensor,
    w: EncoderWeights,
    rows: RaggedRows,
    bias: Tensor | None,
    style: Style,
    training: bool,
) -> Tensor:
    """(tokens, size) → (tokens, size)."""
    h = _entry(x, w.attention.norm, style)
    joined = apply(w.attention.joined, h).view(-1, 3, style.heads, style.width)
    query, key, value = joined.unbind(1)
    dropout = style.attention_dropout if training else 0.0
    context = self_attention(query, key, value, rows, scale=style.scale, dropout=dropout, bias=bias)
    change = apply(w.attention.out, context.reshape(x.shape[0], -1))
    x = added(x, change, w.attention.norm, style, training)
    return _feed_forward(x, w.feed, style, training)


def memory_of(memory: Tensor, w: CrossAttention, style: Style) -> tuple[Tensor, Tensor]:
    """Return keys and values of the encoded tokens for one decoder layer: (tokens, heads, width) each."""
    shape = (-1, style.heads, style.width)
    return apply(w.key, memory).view(shape), apply(w.value, memory).view(shape)


def decoder_layer(
    x: Tensor,
    w: DecoderWeights,
    memory: Tensor,
    rows: RaggedRows,
    bias: Tensor | None,
    style: Style,
    training: bool,
) -> Tensor:
    """Compute all positions of the targets at once: (count, length, size) → the same shape."""
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
    pair = memory_of(memory, w.cross, style)
    context = cross_attention(query, *pair, rows, scale=style.scale, dropout=dropout)
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
    """Compute one position of each hypothesis: (questions · beams, size) → the same shape.

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
    context = F.scaled_dot_product_attention(query, keys, values, attn_mask=bias, scale=style.scale)
    change = apply(w.attention.out, context.reshape(hypotheses, -1))
    x = added(x, change, w.attention.norm, style, False)

    h = _entry(x, w.cross.norm, style)
    keys, values = memory
    questions = memory_mask.rows if isinstance(memory_mask, RaggedRows) else keys.shape[0]
    query = apply(w.cross.query, h).view(questions, -1, style.heads, style.width)
    if isinstance(memory_mask, RaggedRows):
        context = cross_attention(query, keys, values, memory_mask, scale=style.scale, dropout=0.0)
    else:
        context = F.scaled_dot_product_attention(
            query.transpose(1, 2), keys, values, attn_mask=memory_mask, scale=style.scale
        ).transpose(1, 2)
    change = apply(w.cross.out, context.reshape(hypotheses, -1))
    x = added(x, change, w.cross.norm, style, False)
    return _feed_forward(x, w.feed, style, False)


# BART and T5: their weights in transformers' models, collected as the layers of `transformer.py`.
#
# Weights keep the names and shapes of the published checkpoints.


def family_of(model: Any) -> Bart | T5:
    """Return the family of a checkpoint, by its config. `model` is the transformers model whose parameters are read."""
    kind = model.config.model_type
    if kind == "bart":
        return Bart(model.config)
    if kind == "t5":
        return T5(model.config)
    raise BadInput(
        f"'{kind}' models are not built in as sequence-to-sequence models. Take a BART or T5 checkpoint."
    )


class _Family:
    """What both families do alike."""

    def encoder_layers(self, model: Any) -> list[EncoderWeights]:
        return [
            EncoderWeights(self._attention(layer), self._feed(layer))
            for layer in self._layers(model, "encoder")
        ]

    def decoder_layers(self, model: Any) -> list[DecoderWeights]:
        return [
            DecoderWeights(self._attention(layer), self._cross(layer), self._feed(layer))
            for layer in self._layers(model, "decoder")
        ]

    def _attention(self, layer: Any) -> SelfAttention:
        *joined, out, norm = self._modules(layer, False)
        return SelfAttention(linear_of(*joined), linear_of(out), norm_of(norm))

    def _cross(self, layer: Any) -> CrossAttention:
        *linear, norm = self._modules(layer, True)
        query, key, value, out = map(linear_of, linear)
        return CrossAttention(query, key, value, out, norm_of(norm))

    def _layers(self, model: Any, side: str) -> Any:
        raise NotImplementedError

    def _modules(self, layer: Any, cross: bool) -> tuple[Any, ...]:
        """Return an attention's query, key, value, output and norm."""
        raise NotImplementedError

    @staticmethod
    def _feed(layer: Any) -> FeedForward:
        raise NotImplementedError


class Bart(_Family):
    """Learned positions (offset by two rows, as in fairseq), norms behind the blocks."""

    def __init__(self, config: Any) -> None:
        self.encoder_style = self._style(config, config.encoder_attention_heads)
        self.decoder_style = self._style(config, config.decoder_attention_heads)

    @staticmethod
    def _style(config: Any, heads: int) -> Style:
        check_activation(config.activation_function)
        width = config.d_model // heads
        return Style(
            heads, width, width**-0.5, 1e-5, False, False, config.activation_function,
            config.dropout, config.attention_dropout, config.activation_dropout,
        )  # fmt: skip

    def _layers(self, model: Any, side: str) -> Any:
        return getattr(model.model, side).layers

    def _modules(self, layer: Any, cross: bool) -> tuple[Any, ...]:
        name = "encoder_attn" if cross else "self_attn"
        own = getattr(layer, name)
        return (
            own.q_proj,
            own.k_proj,
            own.v_proj,
            own.out_proj,
            getattr(layer, f"{name}_layer_norm"),
        )

    @staticmethod
    def _feed(layer: Any) -> FeedForward:
        norm = norm_of(layer.final_layer_norm)
        return FeedForward(linear_of(layer.fc1), None, linear_of(layer.fc2), norm)

    def embedded(
        self, model: Any, side: str, ids: Tensor, position: Tensor, dtype: torch.dtype
    ) -> Tensor:
        part = getattr(model.model, side)
        places = part.embed_positions
        style = self.encoder_style
        at_position = F.embedding(position + places.offset, places.weight)
        x = part.embed_tokens(ids) + at_position
        x = normalised(x.to(dtype), norm_of(part.layernorm_embedding), style)
        return F.dropout(x, style.dropout, model.training)

    def encoder_bias(self, model: Any, length: int, dtype: torch.dtype) -> Tensor | None:
        return None

    decoder_bias = encoder_bias

    def step_bias(self, model: Any, position: Tensor, length: int, dtype: torch.dtype) -> Tensor:
        is_before = torch.arange(length, device=position.device) <= position
        return is_before[None, None, None, :]

    def encoded(self, model: Any, x: Tensor) -> Tensor:
        return x

    def logits(self, model: Any, x: Tensor) -> Tensor:
        bias: Tensor = model.final_logits_bias
        words = model.lm_head.weight
        weight = words.to(x.dtype)
        # Products of unaligned rows take three times as long.
        if model.training and len(words) % 8:
            weight = F.pad(weight, (0, 0, 0, -len(words) % 8))
        return F.linear(x, weight)[..., : len(words)] + bias.to(x.dtype)


class T5(_Family):
    """Relative positions as a bias of the attention, norms before the blocks, no scaling."""

    def __init__(self, config: Any) -> None:
        check_activation(config.dense_act_fn)
        rate = config.dropout_rate
        style = Style(
            config.num_heads, config.d_kv, 1.0, config.layer_norm_epsilon, True, True, config.dense_act_fn,
            rate, rate, rate,
        )  # fmt: skip
        self.encoder_style = self.decoder_style = style
        self.buckets = config.relative_attention_num_buckets
        self.distance = config.relative_attention_max_distance
        # T5 1.0 shares its output matrix with the embedding and scales for it; 1.1 does neither. Older releases of
        # transformers tell by `tie_word_embeddings` alone.
        scaled = getattr(config, "scale_decoder_outputs", config.tie_word_embeddings)
        self.output_scale = config.d_model**-0.5 if scaled else 1.0

    def _layers(self, model: Any, side: str) -> Any:
        return getattr(model, side).block

    def _modules(self, layer: Any, cross: bool) -> tuple[Any, ...]:
        part = layer.layer[1 if cross else 0]
        own = part.EncDecAttention if cross else part.SelfAttention
        return own.q, own.k, own.v, own.o, part.layer_norm

    @staticmethod
    def _feed(block: Any) -> FeedForward:
        part = block.layer[-1]
        dense = part.DenseReluDense
        is_gated = hasattr(dense, "wi_0")  # as in T5 1.1
        up = linear_of(dense.wi_0 if is_gated else dense.wi)
        gate = linear_of(dense.wi_1) if is_gated else None
        return FeedForward(up, gate, linear_of(dense.wo), norm_of(part.layer_norm))

    def embedded(
        self, model: Any, side: str, ids: Tensor, position: Tensor, dtype: torch.dtype
    ) -> Tensor:
        x = getattr(model, side).embed_tokens(ids).to(dtype)
        return F.dropout(x, self.encoder_style.dropout, model.training)

    def encoder_bias(self, model: Any, length: int, dtype: torch.dtype) -> Tensor | None:
        places = torch.arange(length, device=model.device)
        return self._bias(model.encoder, places[:, None], places[None, :], dtype, both_ways=True)

    def decoder_bias(self, model: Any, length: int, dtype: torch.dtype) -> Tensor | None:
        places = torch.arange(length, device=model.device)
        return self._causal(model, places, places, dtype)

    def step_bias(self, model: Any, position: Tensor, length: int, dtype: torch.dtype) -> Tensor:
        keys = torch.arange(length, device=position.device)
        return self._causal(model, position, keys, dtype)

    def _causal(self, model: Any, queries: Tensor, keys: Tensor, dtype: torch.dtype) -> Tensor:
        bias = self._bias(model.decoder, queries[:, None], keys[None, :], dtype, both_ways=False)
        return bias.masked_fill(keys[None, :] > queries[:, None], float("-inf"))

    def _bias(
        self, stack: Any, queries: Tensor, keys: Tensor, dtype: torch.dtype, both_ways: bool
    ) -> Tensor:
        """(1, heads, queries, keys). All layers share the first one's table."""
        attention = stack.block[0].layer[0].SelfAttention
        table: Tensor = attention.relative_attention_bias.weight
        buckets = self._bucket(keys - queries, both_ways)
        return table[buckets].permute(2, 0, 1)[None].to(dtype)

    def _bucket(self, distance: Tensor, both_ways: bool) -> Tensor:
        """Near distances have a bucket each; far ones share buckets of logarithmic width."""
        count = self.buckets
        offset = torch.zeros_like(distance)
        if both_ways:
            count //= 2
            offset = (distance > 0).long() * count
            distance = distance.abs()
        else:
            distance = (-distance).clamp(min=0)
        exact = count // 2
        growth = math.log(self.distance / exact)
        logarithm = (distance.float() / exact).clamp(min=1).log()
        far = exact + (logarithm / growth * (count - exact)).long()
        far = far.clamp(max=count - 1)
        return offset + torch.where(distance < exact, distance, far)

    def encoded(self, model: Any, x: Tensor) -> Tensor:
        return self._last(model.encoder, x, model.training)

    def logits(self, model: Any, x: Tensor) -> Tensor:
        x = self._last(model.decoder, x, model.training) * self.output_scale
        return F.linear(x, model.lm_head.weight.to(x.dtype))

    def _last(self, stack: Any, x: Tensor, training: bool) -> Tensor:
        x = normalised(x, norm_of(stack.final_layer_norm), self.encoder_style)
        return F.dropout(x, self.encoder_style.dropout, training)
