"""The networks: encoder with decoder, and decoder alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import DynamicCache

from whichsense.models.seq2seq.ragged import (
    Batch,
    EncodedInputs,
    EncoderWeights,
    LayerWeights,
    RaggedRows,
    SpecialTokens,
    cast_weights,
    has_kernel,
    mean_loss,
    shift_labels,
)
from whichsense.models.seq2seq.transformer import (
    decoder_layer,
    decoder_step,
    encoder_layer,
    family_of,
    memory_of,
)

# A network over a transformers model, computed without padding, with all passages of a question fused
# in the decoder.
#
# One passage for each question is the concatenated form; many are Fusion-in-Decoder. The parameters
# are those of the transformers model inside, under its names, and are loaded and saved by it.


class Network(nn.Module):
    """Encodes inputs, scores targets, and steps through a decoder."""

    records_steps = True
    """Whether a step may be recorded as a CUDA graph."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.family = family_of(model)
        self._encoder_layer: Callable[..., Tensor] = encoder_layer
        self._saves_memory = False
        self.label_smoothing = 0.0

    @property
    def signs(self) -> SpecialTokens:
        config = self.model.config
        return SpecialTokens(
            int(config.decoder_start_token_id), int(config.eos_token_id), int(config.pad_token_id)
        )

    def token_bytes(self) -> int:
        """Return bytes for the keys and values of one input token in all layers."""
        return 2 * math.prod(self._cache_shape()) * self.dtype.itemsize

    def _cache_shape(self) -> tuple[int, int, int]:
        """Return the layers, the heads of keys and values, and their width."""
        style = self.family.decoder_style
        return len(self.family.decoder_layers(self.model)), style.heads, style.width

    @property
    def dtype(self) -> torch.dtype:
        """The working precision: autocast's if it is on, else the parameters'."""
        kind = self.model.device.type
        if torch.is_autocast_enabled(kind):
            return torch.get_autocast_dtype(kind)
        dtype: torch.dtype = self.model.dtype
        return dtype

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Compile one encoder layer for all: they take nearly all the time of training."""
        self._encoder_layer = torch.compile(encoder_layer, *arguments, **options)

    def gradient_checkpointing_enable(self, **_: Any) -> None:
        """Store only the input of each encoder layer, and recompute the layer in the backward pass."""
        self._saves_memory = True

    def layers(self, dtype: torch.dtype | None = None) -> LayerWeights:
        """Return the weights themselves; with `dtype`, a copy for inference."""
        if dtype is None:
            family = self.family
            return LayerWeights(
                family.encoder_layers(self.model), family.decoder_layers(self.model)
            )
        with torch.no_grad():
            own = self.layers()
            return LayerWeights(
                *([cast_weights(one, dtype) for one in some] for some in (own.encoder, own.decoder))
            )

    def encode(
        self, ids: Tensor, passages: RaggedRows, layers: LayerWeights | None = None
    ) -> Tensor:
        """Encode each passage by itself, all in one call: (tokens, size)."""
        dtype = self.dtype
        with torch.autocast(ids.device.type, enabled=False):
            family = self.family
            x = family.embedded(self.model, "encoder", ids, passages.position, dtype)
            stack = layers.encoder if layers else family.encoder_layers(self.model)
            return family.encoded(self.model, self._run_layers(x, stack, passages))

    def _run_layers(
        self, x: Tensor, stack: Sequence[EncoderWeights], passages: RaggedRows
    ) -> Tensor:
        """Run the encoder's layers over embedded tokens."""
        bias = self.family.encoder_bias(self.model, passages.longest, x.dtype)
        for weights in stack:
            inputs = (x, weights, passages, bias, self.family.encoder_style, self.training)
            if self._saves_memory and self.training:
                x = checkpoint(self._encoder_layer, *inputs, use_reentrant=False)
            else:
                x = self._encoder_layer(*inputs)
        return x

    def logits(
        self,
        memory: Tensor,
        questions: RaggedRows,
        inputs: Tensor,
        layers: LayerWeights | None = None,
    ) -> Tensor:
        """Return scores of the next token at every position of `inputs`: (questions, length, vocabulary)."""
        family = self.family
        dtype = memory.dtype
        length = inputs.shape[1]
        with torch.autocast(inputs.device.type, enabled=False):
            position = torch.arange(length, device=inputs.device)[None, :]
            x = family.embedded(self.model, "decoder", inputs, position, dtype)
            bias = family.decoder_bias(self.model, length, dtype)
            style = family.decoder_style
            stack = layers.decoder if layers else family.decoder_layers(self.model)
            for weights in stack:
                x = decoder_layer(x, weights, memory, questions, bias, style, self.training)
            return family.logits(self.model, x)

    def forward(self, batch: Batch) -> Tensor:
        """Return the mean loss over the labels, weighted if the batch has weights."""
        memory = self.encode(batch.ids, batch.passages)
        inputs = shift_labels(batch.labels, self.signs)
        scores = self.logits(memory, batch.questions, inputs)
        return mean_loss(scores, batch, self.label_smoothing)

    def remember(
        self, memory: Tensor, questions: RaggedRows, layers: LayerWeights
    ) -> EncodedInputs:
        """Compute keys and values of every decoder layer once."""
        style = self.family.decoder_style
        pairs = [memory_of(memory, weights.cross, style) for weights in layers.decoder]
        keys, values = map(list, zip(*pairs, strict=True))
        if not questions.is_full and has_kernel(keys[0]):
            return EncodedInputs(keys, values, questions, questions.rows)
        keys, values = (
            [questions.padded(one).transpose(1, 2) for one in some] for some in (keys, values)
        )
        return EncodedInputs(keys, values, questions.mask(), questions.rows)

    def caches(
        self, hypotheses: int, length: int, dtype: torch.dtype
    ) -> list[tuple[Tensor, Tensor]]:
        """Return empty keys and values for `length` positions of each hypothesis, in every decoder layer."""
        layers, heads, width = self._cache_shape()
        shape = (layers, 2, hypotheses, heads, length, width)
        empty = torch.zeros(shape, dtype=dtype, device=self.model.device)
        return [(keys, values) for keys, values in empty]

    def step(
        self,
        tokens: Tensor,
        position: Tensor,
        caches: list[tuple[Tensor, Tensor]],
        memory: EncodedInputs,
        layers: LayerWeights,
    ) -> Tensor:
        """Scores of the next token of each hypothesis, given the last ones, which stand at `position` (one number)."""
        family = self.family
        dtype = caches[0][0].dtype
        length = caches[0][0].shape[2]
        with torch.autocast(tokens.device.type, enabled=False):
            x = family.embedded(self.model, "decoder", tokens, position, dtype)
            bias = family.step_bias(self.model, position, length, dtype)
            style = family.decoder_style
            for weights, cache, key, value in zip(
                layers.decoder, caches, memory.keys, memory.values, strict=True
            ):
                x = decoder_step(
                    x, weights, cache, position, bias, (key, value), memory.mask, style
                )
            return family.logits(self.model, x).float()


# Decoder-only models (Llama, SmolLM2, Qwen, …) with the interface of `Network`: input and output are
# one sequence.
#
# The input's keys and values are computed once and shared by all beams; an output begins with a start
# token behind them. The transformers model itself computes everything, so that any model of
# AutoModelForCausalLM works.


class CausalNetwork(Network):
    """`encode` reads the input; `step` reads one more token."""

    # transformers may branch on a tensor's value, which a CUDA graph cannot record.
    records_steps = False

    def __init__(self, model: Any) -> None:
        nn.Module.__init__(self)
        self.model = model
        self.label_smoothing = 0.0
        self._scored: Callable[..., Tensor] = self._scores

    @property
    def signs(self) -> SpecialTokens:
        config = self.model.config
        end = int(config.eos_token_id)
        start = end if config.bos_token_id is None else int(config.bos_token_id)
        pad = end if config.pad_token_id is None else int(config.pad_token_id)
        return SpecialTokens(start, end, pad)

    def _cache_shape(self) -> tuple[int, int, int]:
        config = self.model.config
        heads = config.num_attention_heads
        return (
            config.num_hidden_layers,
            getattr(config, "num_key_value_heads", None) or heads,
            getattr(config, "head_dim", None) or config.hidden_size // heads,
        )

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Compile the forward pass of training, for varying lengths."""
        self._scored = torch.compile(self._scores, *arguments, **{"dynamic": True, **options})

    def gradient_checkpointing_enable(self, **_: Any) -> None:
        """The transformers model has its own."""

    def layers(self, dtype: torch.dtype | None = None) -> LayerWeights:
        """Empty: the transformers model computes with its own parameters."""
        return LayerWeights([], [])

    def forward(self, batch: Batch) -> Tensor:
        """Return the mean loss over the labels, weighted if the batch has weights. Inputs have no loss."""
        return mean_loss(self._scored(batch), batch, self.label_smoothing)

    def _scores(self, batch: Batch) -> Tensor:
        """Return scores of the labels (questions, length, vocabulary). Inputs are padded on the left: all labels are in
        the last columns."""
        rows = batch.questions
        outputs = shift_labels(batch.labels, self.signs)
        lengths = rows.starts.diff().long()
        # The position in its own input of each cell of the padded table; negative for padding.
        column = torch.arange(rows.longest, device=batch.ids.device)[None, :]
        position = column - (rows.longest - lengths)[:, None]
        is_token = position >= 0
        places = (rows.starts[:-1].long()[:, None] + position).clamp(min=0)
        inputs = batch.ids[places].masked_fill(~is_token, self.signs.pad)
        is_output = torch.ones_like(outputs, dtype=torch.bool)
        mask = torch.cat([is_token, is_output], 1).long()
        result = self.model(
            input_ids=torch.cat([inputs, outputs], 1),
            attention_mask=mask,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0),
            use_cache=False,
            logits_to_keep=outputs.shape[1],
        )
        scores: Tensor = result.logits
        return scores

    def encode(
        self, ids: Tensor, passages: RaggedRows, layers: LayerWeights | None = None
    ) -> Tensor:
        """Return keys and values of every token in every layer: (tokens, layers, 2, heads, width)."""
        cache = DynamicCache()
        # Padding is behind the tokens, where nothing attends to it.
        self.model(
            input_ids=passages.padded(ids), past_key_values=cache, use_cache=True, logits_to_keep=1
        )
        dtype = self.dtype
        parts = []
        for layer in cast(list[Any], cache.layers):
            keys = passages.flat(layer.keys.transpose(1, 2)).to(dtype)
            values = passages.flat(layer.values.transpose(1, 2)).to(dtype)
            parts.append(torch.stack([keys, values], 1))
        return torch.stack(parts, 1)

    def remember(
        self, memory: Tensor, questions: RaggedRows, layers: LayerWeights
    ) -> EncodedInputs:
        # Each (2, questions, heads, tokens, width).
        layers_of = [
            questions.padded(layer).permute(2, 0, 3, 1, 4).contiguous()
            for layer in memory.unbind(1)
        ]
        keys, values = ([both[part] for both in layers_of] for part in range(2))
        return EncodedInputs(keys, values, questions.mask(), questions.rows)

    def step(
        self,
        tokens: Tensor,
        position: Tensor,
        caches: list[tuple[Tensor, Tensor]],
        memory: EncodedInputs,
        layers: LayerWeights,
    ) -> Tensor:
        beams = len(tokens) // memory.questions
        input_length = memory.keys[0].shape[2]
        output_length = caches[0][0].shape[2]
        assert not isinstance(memory.mask, RaggedRows)
        is_input = memory.mask
        if is_input is None:
            shape = (memory.questions, 1, 1, input_length)
            is_input = torch.ones(shape, dtype=torch.bool, device=tokens.device)
        is_input = is_input.repeat_interleave(beams, 0)
        is_output = torch.arange(output_length, device=tokens.device) <= position
        is_output = is_output.expand(len(tokens), 1, 1, output_length)
        result = self.model(
            input_ids=tokens[:, None],
            attention_mask=torch.cat([is_input, is_output], -1),
            position_ids=is_input.sum((1, 2, 3))[:, None] + position,
            past_key_values=_SharedCache(memory, caches, position, beams),
            use_cache=True,
        )
        scores: Tensor = result.logits[:, -1].float()
        return scores


class _SharedCache(DynamicCache):
    """Keys and values of a question's input, which all its beams share, and of each hypothesis' own output."""

    def __init__(
        self,
        memory: EncodedInputs,
        caches: list[tuple[Tensor, Tensor]],
        position: Tensor,
        beams: int,
    ) -> None:
        super().__init__()
        self._memory = memory
        self._own = caches
        self._position = position
        self._beams = beams

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        keys, values = self._own[layer_idx]
        keys.index_copy_(2, self._position, key_states.to(keys.dtype))
        values.index_copy_(2, self._position, value_states.to(values.dtype))
        input_keys = self._memory.keys[layer_idx].repeat_interleave(self._beams, 0)
        input_values = self._memory.values[layer_idx].repeat_interleave(self._beams, 0)
        return torch.cat([input_keys, keys], 2), torch.cat([input_values, values], 2)


def network_of(model: Any, kind: type[Network] = Network) -> Network:
    """Build the network over a checkpoint's model: of this kind, if it has an encoder."""
    has_encoder = getattr(model.config, "is_encoder_decoder", False)
    return kind(model) if has_encoder else CausalNetwork(model)
