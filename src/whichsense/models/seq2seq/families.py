"""BART and T5 as transformers stores them, seen as the layers of `transformer`.

Weights keep the names and shapes of the published checkpoints; here they are only gathered.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from whichsense.errors import BadInput
from whichsense.models.seq2seq.transformer import (
    ACTIVATIONS,
    CrossAttention,
    DecoderLayer,
    Embedding,
    EncoderLayer,
    FeedForward,
    Linear,
    Norm,
    SelfAttention,
    Style,
    normalised,
)


class Family(Protocol):
    """What the network asks of a family. `model` is the transformers model, whose parameters these read."""

    encoder_style: Style
    decoder_style: Style

    def encoder_layers(self, model: Any) -> list[EncoderLayer]: ...

    def decoder_layers(self, model: Any) -> list[DecoderLayer]: ...

    def embedded(
        self, model: Any, side: str, ids: Tensor, position: Tensor, dtype: torch.dtype
    ) -> Tensor: ...

    def encoder_bias(
        self, model: Any, length: int, dtype: torch.dtype
    ) -> Tensor | None: ...

    def decoder_bias(
        self, model: Any, length: int, dtype: torch.dtype
    ) -> Tensor | None:
        """For all places at once; None: causal and nothing else."""

    def step_bias(
        self, model: Any, position: Tensor, length: int, dtype: torch.dtype
    ) -> Tensor:
        """For one place over a cache of `length` places."""

    def encoded(self, model: Any, x: Tensor) -> Tensor: ...

    def logits(self, model: Any, x: Tensor) -> Tensor: ...


def family_of(model: Any) -> Family:
    """By the kind that the checkpoint's config names."""
    kind = model.config.model_type
    if kind == "bart":
        return Bart(model.config)
    if kind == "t5":
        return T5(model.config)
    raise BadInput(
        f"'{kind}' models are not built in as sequence-to-sequence models. Take a BART or T5 checkpoint."
    )


def _linear(*modules: nn.Linear) -> Linear:
    """One matrix of several that read the same input."""
    if len(modules) == 1:
        return Linear(modules[0].weight, modules[0].bias)
    biases: list[Tensor] = [
        module.bias for module in modules if module.bias is not None
    ]
    weights: list[Tensor] = [module.weight for module in modules]
    return Linear(torch.cat(weights), torch.cat(biases) if biases else None)


def _norm(module: Any) -> Norm:
    return Norm(module.weight, getattr(module, "bias", None))


class Bart:
    """Learned positions (two rows late, as fairseq had them), norms behind the blocks."""

    def __init__(self, config: Any) -> None:
        self.encoder_style = self._style(config, config.encoder_attention_heads)
        self.decoder_style = self._style(config, config.decoder_attention_heads)

    @staticmethod
    def _style(config: Any, heads: int) -> Style:
        _known(config.activation_function)
        width = config.d_model // heads
        return Style(
            heads, width, width**-0.5, 1e-5, False, False, config.activation_function,
            config.dropout, config.attention_dropout, config.activation_dropout,
        )  # fmt: skip

    def encoder_layers(self, model: Any) -> list[EncoderLayer]:
        return [
            EncoderLayer(self._attention(layer), self._feed(layer))
            for layer in model.model.encoder.layers
        ]

    def decoder_layers(self, model: Any) -> list[DecoderLayer]:
        return [
            DecoderLayer(self._attention(layer), self._cross(layer), self._feed(layer))
            for layer in model.model.decoder.layers
        ]

    @staticmethod
    def _attention(layer: Any) -> SelfAttention:
        parts = layer.self_attn
        joined = _linear(parts.q_proj, parts.k_proj, parts.v_proj)
        return SelfAttention(
            joined, _linear(parts.out_proj), _norm(layer.self_attn_layer_norm)
        )

    @staticmethod
    def _cross(layer: Any) -> CrossAttention:
        parts = layer.encoder_attn
        query, key, value, out = map(
            _linear, (parts.q_proj, parts.k_proj, parts.v_proj, parts.out_proj)
        )
        return CrossAttention(
            query, key, value, out, _norm(layer.encoder_attn_layer_norm)
        )

    @staticmethod
    def _feed(layer: Any) -> FeedForward:
        return FeedForward(
            _linear(layer.fc1), None, _linear(layer.fc2), _norm(layer.final_layer_norm)
        )

    def embedded(
        self, model: Any, side: str, ids: Tensor, position: Tensor, dtype: torch.dtype
    ) -> Tensor:
        part = getattr(model.model, side)
        places = part.embed_positions
        style = self.encoder_style
        x = part.embed_tokens(ids) + F.embedding(
            position + places.offset, places.weight
        )
        x = normalised(x.to(dtype), _norm(part.layernorm_embedding), style)
        return F.dropout(x, style.dropout, model.training)

    @staticmethod
    def encoder_embedding(model: Any) -> Embedding:
        """The tables of what `embedded` computes before the encoder."""
        part = model.model.encoder
        words, places = part.embed_tokens, part.embed_positions
        unlearned = -1 if words.padding_idx is None else words.padding_idx
        scale = float(getattr(words, "embed_scale", 1.0))
        return Embedding(
            words.weight,
            scale,
            unlearned,
            places.weight,
            places.offset,
            _norm(part.layernorm_embedding),
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
        return (torch.arange(length, device=position.device) <= position)[
            None, None, None, :
        ]

    def encoded(self, model: Any, x: Tensor) -> Tensor:
        return x

    def logits(self, model: Any, x: Tensor) -> Tensor:
        bias: Tensor = model.final_logits_bias
        words = model.lm_head.weight
        weight = words.to(x.dtype)
        if (
            model.training and len(words) % 8
        ):  # products whose rows begin anywhere in memory take thrice as long
            weight = F.pad(weight, (0, 0, 0, -len(words) % 8))
        return F.linear(x, weight)[..., : len(words)] + bias.to(x.dtype)


class T5:
    """Relative positions as a bias of the attention, norms before the blocks, no scaling."""

    def __init__(self, config: Any) -> None:
        _known(config.dense_act_fn)
        rate = config.dropout_rate
        style = Style(
            config.num_heads, config.d_kv, 1.0, config.layer_norm_epsilon, True, True, config.dense_act_fn,
            rate, rate, rate,
        )  # fmt: skip
        self.encoder_style = self.decoder_style = style
        self.buckets, self.distance = (
            config.relative_attention_num_buckets,
            config.relative_attention_max_distance,
        )
        # T5 1.0 shares its output matrix with the embedding and scales for it; 1.1 does neither. Older releases of
        # transformers say so by `tie_word_embeddings` alone.
        scaled = getattr(config, "scale_decoder_outputs", config.tie_word_embeddings)
        self.output_scale = config.d_model**-0.5 if scaled else 1.0

    def encoder_layers(self, model: Any) -> list[EncoderLayer]:
        return [
            EncoderLayer(self._attention(block), self._feed(block))
            for block in model.encoder.block
        ]

    def decoder_layers(self, model: Any) -> list[DecoderLayer]:
        return [
            DecoderLayer(self._attention(block), self._cross(block), self._feed(block))
            for block in model.decoder.block
        ]

    @staticmethod
    def _attention(block: Any) -> SelfAttention:
        part = block.layer[0]
        inner = part.SelfAttention
        return SelfAttention(
            _linear(inner.q, inner.k, inner.v), _linear(inner.o), _norm(part.layer_norm)
        )

    @staticmethod
    def _cross(block: Any) -> CrossAttention:
        part = block.layer[1]
        inner = part.EncDecAttention
        query, key, value, out = map(_linear, (inner.q, inner.k, inner.v, inner.o))
        return CrossAttention(query, key, value, out, _norm(part.layer_norm))

    @staticmethod
    def _feed(block: Any) -> FeedForward:
        part = block.layer[-1]
        dense = part.DenseReluDense
        if hasattr(dense, "wi_0"):
            return FeedForward(
                _linear(dense.wi_0),
                _linear(dense.wi_1),
                _linear(dense.wo),
                _norm(part.layer_norm),
            )
        return FeedForward(
            _linear(dense.wi), None, _linear(dense.wo), _norm(part.layer_norm)
        )

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
        return self._causal(
            model, position, torch.arange(length, device=position.device), dtype
        )

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
        """(1, heads, queries, keys); all layers share the first one's table."""
        table: Tensor = (
            stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight
        )
        return (
            table[self._bucket(keys - queries, both_ways)]
            .permute(2, 0, 1)[None]
            .to(dtype)
        )

    def _bucket(self, distance: Tensor, both_ways: bool) -> Tensor:
        """Near distances have a bucket each, far ones share buckets that grow with the logarithm."""
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
        far = (
            exact
            + (
                (distance.float() / exact).clamp(min=1).log() / growth * (count - exact)
            ).long()
        )
        return offset + torch.where(
            distance < exact, distance, far.clamp(max=count - 1)
        )

    def encoded(self, model: Any, x: Tensor) -> Tensor:
        return self._last(model.encoder, x, model.training)

    def logits(self, model: Any, x: Tensor) -> Tensor:
        x = self._last(model.decoder, x, model.training) * self.output_scale
        return F.linear(x, model.lm_head.weight.to(x.dtype))

    def _last(self, stack: Any, x: Tensor, training: bool) -> Tensor:
        x = normalised(x, _norm(stack.final_layer_norm), self.encoder_style)
        return F.dropout(x, self.encoder_style.dropout, training)


def _known(activation: str) -> None:
    if activation not in ACTIVATIONS:
        raise BadInput(
            f"This checkpoint's activation '{activation}' is not built in. Known: {', '.join(ACTIVATIONS)}."
        )
