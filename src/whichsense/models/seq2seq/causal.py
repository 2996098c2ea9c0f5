"""Decoder-only models (Llama, SmolLM2, Qwen, …) with the interface of `Network`: input and output are one sequence.

The input's keys and values are computed once and shared by all beams; an output begins with a start token behind them.
The transformers model itself computes everything, so that any model of AutoModelForCausalLM works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import DynamicCache

from whichsense.models.seq2seq.batch import (
    Batch,
    EncodedInputs,
    LayerWeights,
    SpecialTokens,
    mean_loss,
    shift_labels,
)
from whichsense.models.seq2seq.network import Network
from whichsense.models.seq2seq.ragged import RaggedRows


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

    def _cache_shape(self) -> tuple[int, int]:
        """The heads of keys and values, and their width."""
        config = self.model.config
        heads = getattr(config, "num_key_value_heads", None)
        width = getattr(config, "head_dim", None)
        return (
            heads or config.num_attention_heads,
            width or config.hidden_size // config.num_attention_heads,
        )

    def token_bytes(self) -> int:
        heads, width = self._cache_shape()
        layers = self.model.config.num_hidden_layers
        return int(2 * layers * heads * width * self.dtype.itemsize)

    def compile(self, *arguments: Any, **options: Any) -> None:
        """Compile the forward pass of training, for varying lengths."""
        self._scored = torch.compile(
            self._scores, *arguments, **{"dynamic": True, **options}
        )

    def gradient_checkpointing_enable(self, **_: Any) -> None:
        """The transformers model has its own."""

    def layers(self, dtype: torch.dtype | None = None) -> LayerWeights:
        """Empty: the transformers model computes with its own parameters."""
        return LayerWeights([], [])

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss over the labels, weighted if the batch has weights. Inputs have no loss."""
        return mean_loss(self._scored(batch), batch, self.label_smoothing)

    def _scores(self, batch: Batch) -> Tensor:
        """Scores of the labels (questions, length, vocabulary). Inputs are padded on the left: all labels are in
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
        """Keys and values of every token in every layer: (tokens, layers, 2, heads, width)."""
        cache = DynamicCache()
        # Padding is behind the tokens, where nothing attends to it.
        self.model(
            input_ids=passages.padded(ids),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
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
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for layer in memory.unbind(1):
            # (2, questions, heads, tokens, width)
            both = questions.padded(layer).permute(2, 0, 3, 1, 4).contiguous()
            keys.append(both[0])
            values.append(both[1])
        mask = questions.mask()
        if mask is not None:
            mask = mask[:, None, None, :]
        return EncodedInputs(keys, values, mask, questions.rows)

    def caches(
        self, hypotheses: int, length: int, dtype: torch.dtype
    ) -> list[tuple[Tensor, Tensor]]:
        heads, width = self._cache_shape()
        shape = (hypotheses, heads, length, width)
        empty = torch.zeros(shape, dtype=dtype, device=self.model.device)
        layers = self.model.config.num_hidden_layers
        return [(empty.clone(), empty.clone()) for _ in range(layers)]

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
        self,
        key_states: Tensor,
        value_states: Tensor,
        layer_idx: int,
        *_: Any,
        **__: Any,
    ) -> tuple[Tensor, Tensor]:
        keys, values = self._own[layer_idx]
        keys.index_copy_(2, self._position, key_states.to(keys.dtype))
        values.index_copy_(2, self._position, value_states.to(values.dtype))
        input_keys = self._memory.keys[layer_idx].repeat_interleave(self._beams, 0)
        input_values = self._memory.values[layer_idx].repeat_interleave(self._beams, 0)
        all_keys = torch.cat([input_keys, keys], 2)
        all_values = torch.cat([input_values, values], 2)
        return all_keys, all_values


def _is_causal(model: Any) -> bool:
    """Whether a transformers model is decoder-only."""
    return not getattr(model.config, "is_encoder_decoder", False)


def network_of(model: Any) -> Network:
    """The network over a checkpoint's model, by its kind."""
    return CausalNetwork(model) if _is_causal(model) else Network(model)
