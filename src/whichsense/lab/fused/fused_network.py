"""The network with an encoder whose training steps run in fused kernels, where these fit and pass their trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from whichsense.lab.fused.fused_layers import (
    absorbed,
    absorbs,
    fused_embedding,
    fused_encoder,
)
from whichsense.lab.fused.fused_plan import KernelTrials, Plan, has_kernels, is_fusable
from whichsense.lab.fused.fused_reference import cast_together
from whichsense.models.seq2seq.network import Network
from whichsense.models.seq2seq.ragged import DecoderWeights, LayerWeights, RaggedRows
from whichsense.models.seq2seq.transformer import Bart, Read


class FusedNetwork(Network):
    """Computes what `Network` does; compiled and on a GPU, Triton kernels train BART's layers over passages."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._compiled = False
        self.trials = KernelTrials()

    def compile(self, *arguments: Any, **options: Any) -> None:
        self._compiled = True
        super().compile(*arguments, **options)

    def encode(
        self, ids: Tensor, passages: RaggedRows, layers: LayerWeights | None = None
    ) -> Tensor:
        dtype = self.dtype
        style = self.family.encoder_style
        size = style.heads * style.width
        like = torch.empty((0, size), dtype=dtype, device=ids.device)
        with torch.autocast(ids.device.type, enabled=False):
            plan = self._plan(like, passages.longest)
            if plan is not None and isinstance(self.family, Bart):
                tables = self.family.encoder_embedding(self.model)
                first = fused_embedding(ids, passages.position, tables, plan, dtype)
                # Collected here, while the GPU is busy with the embedding.
                stack = self.family.encoder_layers(self.model)
                return fused_encoder(
                    first, stack, passages, plan, saves_memory=self._saves_memory
                )
        return super().encode(ids, passages, layers)

    def _plan(self, x: Tensor, longest: int) -> Plan | None:
        """The plan of a training step in fused kernels; None if the step does not use them.

        `x` is like the input of the layers.
        """
        style = self.family.encoder_style
        if not self.training or not is_fusable(style) or not self._uses_kernels(x):
            return None
        if not has_kernels(x, style, longest):
            return None
        plan = Plan.of(style)
        inner = self.family.encoder_layers(self.model)[0].feed.up.weight.shape[0]
        return plan if self.trials.passes(plan, x, inner) else None

    def _uses_kernels(self, x: Tensor) -> bool:
        return self._compiled and x.is_cuda

    def _decoder_layers(self, dtype: torch.dtype) -> list[DecoderWeights]:
        stack = self.family.decoder_layers(self.model)
        return stack if self.model.dtype == dtype else cast_together(stack, dtype)

    def _reads(
        self,
        memory: Tensor,
        questions: RaggedRows,
        length: int,
        layers: Sequence[DecoderWeights],
    ) -> Sequence[Tensor | Read]:
        """How each decoder layer reads the memory: in training in the way that is least work."""
        style = self.family.decoder_style
        if self.training and self._uses_kernels(memory):
            is_less = absorbs(memory, questions.longest, length, style)
            if is_less and self.trials.reads_well(memory, style):
                cross = [weights.cross for weights in layers]
                return absorbed(memory, questions, cross, length, style)
        return super()._reads(memory, questions, length, layers)
