"""BART and T5: their weights in transformers' models, collected as the layers of `transformer.py`.

Weights keep the names and shapes of the published checkpoints.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from whichsense.errors import BadInput
from whichsense.models.seq2seq.transformer import normalised
from whichsense.models.seq2seq.weights import (
    CrossAttention,
    DecoderWeights,
    Embedding,
    EncoderWeights,
    FeedForward,
    ModelFamily,
    SelfAttention,
    Style,
    check_activation,
    linear_of,
    norm_of,
)


def family_of(model: Any) -> ModelFamily:
    """The family of a checkpoint, by its config."""
    kind = model.config.model_type
    if kind == "bart":
        return Bart(model.config)
    if kind == "t5":
        return T5(model.config)
    raise BadInput(
        f"'{kind}' models are not built in as sequence-to-sequence models. Take a BART or T5 checkpoint."
    )


class Bart:
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

    def encoder_layers(self, model: Any) -> list[EncoderWeights]:
        stack = []
        for layer in model.model.encoder.layers:
            stack.append(EncoderWeights(self._attention(layer), self._feed(layer)))
        return stack

    def decoder_layers(self, model: Any) -> list[DecoderWeights]:
        stack = []
        for layer in model.model.decoder.layers:
            attention = self._attention(layer)
            stack.append(
                DecoderWeights(attention, self._cross(layer), self._feed(layer))
            )
        return stack

    @staticmethod
    def _attention(layer: Any) -> SelfAttention:
        parts = layer.self_attn
        joined = linear_of(parts.q_proj, parts.k_proj, parts.v_proj)
        out = linear_of(parts.out_proj)
        return SelfAttention(joined, out, norm_of(layer.self_attn_layer_norm))

    @staticmethod
    def _cross(layer: Any) -> CrossAttention:
        parts = layer.encoder_attn
        return CrossAttention(
            query=linear_of(parts.q_proj),
            key=linear_of(parts.k_proj),
            value=linear_of(parts.v_proj),
            out=linear_of(parts.out_proj),
            norm=norm_of(layer.encoder_attn_layer_norm),
        )

    @staticmethod
    def _feed(layer: Any) -> FeedForward:
        up = linear_of(layer.fc1)
        down = linear_of(layer.fc2)
        return FeedForward(up, None, down, norm_of(layer.final_layer_norm))

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

    @staticmethod
    def encoder_embedding(model: Any) -> Embedding:
        """The tables of `embedded` for the encoder."""
        part = model.model.encoder
        words = part.embed_tokens
        places = part.embed_positions
        unlearned = -1 if words.padding_idx is None else words.padding_idx
        scale = float(getattr(words, "embed_scale", 1.0))
        return Embedding(
            words.weight,
            scale,
            unlearned,
            places.weight,
            places.offset,
            norm_of(part.layernorm_embedding),
        )

    def encoder_bias(
        self, model: Any, length: int, dtype: torch.dtype
    ) -> Tensor | None:
        return None

    def decoder_bias(
        self, model: Any, length: int, dtype: torch.dtype
    ) -> Tensor | None:
        return None

    def step_bias(
        self, model: Any, position: Tensor, length: int, dtype: torch.dtype
    ) -> Tensor:
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


class T5:
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

    def encoder_layers(self, model: Any) -> list[EncoderWeights]:
        stack = []
        for block in model.encoder.block:
            stack.append(EncoderWeights(self._attention(block), self._feed(block)))
        return stack

    def decoder_layers(self, model: Any) -> list[DecoderWeights]:
        stack = []
        for block in model.decoder.block:
            attention = self._attention(block)
            stack.append(
                DecoderWeights(attention, self._cross(block), self._feed(block))
            )
        return stack

    @staticmethod
    def _attention(block: Any) -> SelfAttention:
        part = block.layer[0]
        inner = part.SelfAttention
        joined = linear_of(inner.q, inner.k, inner.v)
        return SelfAttention(joined, linear_of(inner.o), norm_of(part.layer_norm))

    @staticmethod
    def _cross(block: Any) -> CrossAttention:
        part = block.layer[1]
        inner = part.EncDecAttention
        return CrossAttention(
            query=linear_of(inner.q),
            key=linear_of(inner.k),
            value=linear_of(inner.v),
            out=linear_of(inner.o),
            norm=norm_of(part.layer_norm),
        )

    @staticmethod
    def _feed(block: Any) -> FeedForward:
        part = block.layer[-1]
        dense = part.DenseReluDense
        down = linear_of(dense.wo)
        norm = norm_of(part.layer_norm)
        if hasattr(dense, "wi_0"):  # gated, as in T5 1.1
            up = linear_of(dense.wi_0)
            gate = linear_of(dense.wi_1)
            return FeedForward(up, gate, down, norm)
        return FeedForward(linear_of(dense.wi), None, down, norm)

    def embedded(
        self, model: Any, side: str, ids: Tensor, position: Tensor, dtype: torch.dtype
    ) -> Tensor:
        x = getattr(model, side).embed_tokens(ids).to(dtype)
        return F.dropout(x, self.encoder_style.dropout, model.training)

    def encoder_bias(
        self, model: Any, length: int, dtype: torch.dtype
    ) -> Tensor | None:
        places = torch.arange(length, device=model.device)
        return self._bias(
            model.encoder, places[:, None], places[None, :], dtype, both_ways=True
        )

    def decoder_bias(
        self, model: Any, length: int, dtype: torch.dtype
    ) -> Tensor | None:
        places = torch.arange(length, device=model.device)
        return self._causal(model, places, places, dtype)

    def step_bias(
        self, model: Any, position: Tensor, length: int, dtype: torch.dtype
    ) -> Tensor:
        keys = torch.arange(length, device=position.device)
        return self._causal(model, position, keys, dtype)

    def _causal(
        self, model: Any, queries: Tensor, keys: Tensor, dtype: torch.dtype
    ) -> Tensor:
        bias = self._bias(
            model.decoder, queries[:, None], keys[None, :], dtype, both_ways=False
        )
        return bias.masked_fill(keys[None, :] > queries[:, None], float("-inf"))

    def _bias(
        self,
        stack: Any,
        queries: Tensor,
        keys: Tensor,
        dtype: torch.dtype,
        both_ways: bool,
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
