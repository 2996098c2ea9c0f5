"""Decoder-only models (Llama, SmolLM2, Qwen, …) with the face of `Network`: what is read and what is written are one
sequence.

The input's keys and values are the memory, computed once and shared by all beams; an output begins with a start token
behind it. Everything is computed by the transformers model itself, so that whatever AutoModelForCausalLM loads works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import DynamicCache

from whichsense.models.seq2seq.network import Batch, Layers, Memory, Network, Signs
from whichsense.models.seq2seq.ragged import Ragged


class CausalNetwork(Network):
    """Encode is to read the input; step is to read one token more."""

    records_steps = False  # transformers may look at a number in between, which a recorded step cannot

    def __init__(self, model: Any) -> None:
        nn.Module.__init__(self)
        self.model = model
        self.label_smoothing = 0.0
        self._scored: Callable[..., Tensor] = self._scores

    @property
    def signs(self) -> Signs:
        config = self.model.config
        end = int(config.eos_token_id)
        start, pad = config.bos_token_id, config.pad_token_id
        return Signs(
            end if start is None else int(start), end, end if pad is None else int(pad)
        )

    def token_bytes(self) -> int:
        config = self.model.config
        heads = (
            getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        )
        width = (
            getattr(config, "head_dim", None)
            or config.hidden_size // config.num_attention_heads
        )
        return int(2 * config.num_hidden_layers * heads * width * self.dtype.itemsize)

    def compile(self, *arguments: Any, **options: Any) -> None:
        """The forward pass of training; lengths differ from batch to batch."""
        self._scored = torch.compile(
            self._scores, *arguments, **{"dynamic": True, **options}
        )

    def gradient_checkpointing_enable(self, **_: Any) -> None:
        """The model inside has its own."""

    def layers(self, dtype: torch.dtype | None = None) -> Layers:
        """The model computes with its own parameters: nothing is gathered."""
        return Layers([], [])

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss over the labels, each weighted if the batch says so; inputs cost nothing."""
        return self.mean_loss(self._scored(batch), batch)

    def _scores(self, batch: Batch) -> Tensor:
        """Inputs end where outputs begin (padding is on the left), so that all labels lie in the last columns."""
        rows, outputs = batch.questions, self.shifted(batch.labels)
        lengths = rows.starts.diff().long()
        columns = (
            torch.arange(rows.longest, device=batch.ids.device)[None, :]
            - (rows.longest - lengths)[:, None]
        )
        real = columns >= 0
        places = (rows.starts[:-1].long()[:, None] + columns).clamp(min=0)
        read = batch.ids[places].masked_fill(~real, self.signs.pad)
        mask = torch.cat([real, torch.ones_like(outputs, dtype=torch.bool)], 1).long()
        found = self.model(
            input_ids=torch.cat([read, outputs], 1),
            attention_mask=mask,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0),
            use_cache=False,
            logits_to_keep=outputs.shape[1],
        )
        scores: Tensor = found.logits
        return scores

    def encode(
        self, ids: Tensor, passages: Ragged, layers: Layers | None = None
    ) -> Tensor:
        """Keys and values of every token in every layer: (tokens, layers, 2, heads, width)."""
        cache = DynamicCache()
        # Padding is behind the tokens, where nothing looks at it.
        self.model(
            input_ids=passages.padded(ids),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        dtype = self.dtype
        both: list[tuple[Any, Any]] = [
            (layer.keys, layer.values) for layer in cast(list[Any], cache.layers)
        ]
        parts = [
            [passages.flat(one.transpose(1, 2)).to(dtype) for one in pair]
            for pair in both
        ]
        return torch.stack([torch.stack(pair, 1) for pair in parts], 1)

    def remember(self, memory: Tensor, questions: Ragged, layers: Layers) -> Memory:
        parts = [
            questions.padded(part).permute(2, 0, 3, 1, 4).contiguous()
            for part in memory.unbind(1)
        ]
        mask = questions.mask()
        keys, values = [part[0] for part in parts], [part[1] for part in parts]
        return Memory(
            keys,
            values,
            None if mask is None else mask[:, None, None, :],
            questions.rows,
        )

    def caches(
        self, hypotheses: int, length: int, dtype: torch.dtype
    ) -> list[tuple[Tensor, Tensor]]:
        config = self.model.config
        heads = (
            getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        )
        width = (
            getattr(config, "head_dim", None)
            or config.hidden_size // config.num_attention_heads
        )
        empty = torch.zeros(
            (hypotheses, heads, length, width), dtype=dtype, device=self.model.device
        )
        return [(empty.clone(), empty.clone()) for _ in range(config.num_hidden_layers)]

    def step(
        self,
        tokens: Tensor,
        position: Tensor,
        caches: list[tuple[Tensor, Tensor]],
        memory: Memory,
        layers: Layers,
    ) -> Tensor:
        beams, width, length = (
            len(tokens) // memory.questions,
            memory.keys[0].shape[2],
            caches[0][0].shape[2],
        )
        assert not isinstance(memory.mask, Ragged)
        read = memory.mask
        if read is None:
            read = torch.ones(
                (memory.questions, 1, 1, width), dtype=torch.bool, device=tokens.device
            )
        read = read.repeat_interleave(beams, 0)
        written = (torch.arange(length, device=tokens.device) <= position).expand(
            len(tokens), 1, 1, length
        )
        found = self.model(
            input_ids=tokens[:, None],
            attention_mask=torch.cat([read, written], -1),
            position_ids=read.sum((1, 2, 3))[:, None] + position,
            past_key_values=_Joined(memory, caches, position, beams),
            use_cache=True,
        )
        scores: Tensor = found.logits[:, -1].float()
        return scores


class _Joined(DynamicCache):
    """What a hypothesis attends to: its question's input, which all beams share, and what it has written itself."""

    def __init__(
        self,
        memory: Memory,
        caches: list[tuple[Tensor, Tensor]],
        position: Tensor,
        beams: int,
    ) -> None:
        super().__init__()
        self._memory, self._own, self._position, self._beams = (
            memory,
            caches,
            position,
            beams,
        )

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
        read = (self._memory.keys[layer_idx], self._memory.values[layer_idx])
        shared = [part.repeat_interleave(self._beams, 0) for part in read]
        return torch.cat([shared[0], keys], 2), torch.cat([shared[1], values], 2)


def is_causal(model: Any) -> bool:
    """Whether a transformers model is one that only continues what it reads."""
    return not getattr(model.config, "is_encoder_decoder", False)


def network_of(model: Any) -> Network:
    """The network over a checkpoint's model, by its kind."""
    return CausalNetwork(model) if is_causal(model) else Network(model)
