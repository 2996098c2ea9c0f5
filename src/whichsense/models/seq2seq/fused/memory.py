"""What all decoder layers read, in eight bits: one product for the keys and values of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from whichsense.models.seq2seq.fused.eight import BACKWARD, FORWARD, Eight, empty_eight
from whichsense.models.seq2seq.fused.products import (
    input_gradient,
    kernels,
    largest_of,
    product,
    safe,
    weight_gradient,
)
from whichsense.models.seq2seq.transformer import CrossAttention, Style


class _KeysValues(torch.autograd.Function):
    """(tokens, size), the joined matrices of n parts → n tensors (tokens, size of a part)."""

    @staticmethod
    def forward(
        ctx: Any, memory: Tensor, weight: Tensor, bias: Tensor, parts: int
    ) -> tuple[Tensor, ...]:
        run = kernels(memory)
        x: Eight = run.cast(memory, largest_of(memory), FORWARD)
        w: Eight = run.cast(weight, largest_of(weight), FORWARD)
        ctx.save_for_backward(x.turned, x.scale, w.turned, w.scale)
        ctx.dtype = memory.dtype
        return product(x, w, bias, memory.dtype).view(len(memory), parts, -1).unbind(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        run = kernels(gradients[0])
        x, x_scale, w, w_scale = ctx.saved_tensors
        tokens, size = gradients[0].shape
        bound = safe(
            torch.stack([largest_of(gradient) for gradient in gradients]).max()
        )
        g = empty_eight(tokens, size * len(gradients), bound, BACKWARD)
        dbias = [
            run.cast_summed(
                gradient.contiguous(), bound, BACKWARD, into=g, first=number * size
            )[1]
            for number, gradient in enumerate(gradients)
        ]
        dweight = weight_gradient(g, Eight(x, x, x_scale))
        return (
            input_gradient(g, Eight(w, w, w_scale), ctx.dtype),
            dweight,
            torch.cat(dbias),
            None,
        )


def keys_values(
    memory: Tensor, layers: Sequence[CrossAttention], style: Style
) -> list[tuple[Tensor, Tensor]]:
    """Keys and values (tokens, heads, width) of each layer."""
    parts = [part for layer in layers for part in (layer.key, layer.value)]
    weight = torch.cat([part.weight for part in parts])
    bias = torch.cat(
        [
            weight.new_zeros(len(part.weight)) if part.bias is None else part.bias
            for part in parts
        ]
    )
    found: tuple[Tensor, ...] = _KeysValues.apply(memory, weight, bias, len(parts))  # type: ignore[no-untyped-call]
    heads = [one.view(len(memory), style.heads, style.width) for one in found]
    return list(zip(heads[::2], heads[1::2], strict=True))
