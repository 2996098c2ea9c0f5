"""All weights of a stack of layers in the working precision, as one step of the gradient's graph.

Where a layer has little to compute, as a decoder's over thirty tokens, a GPU waits for its next kernel to be sent: two
casts for each of a layer's two dozen tensors, there and back, are a third of what there is to send.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor

Part = TypeVar("Part")


class _Cast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.dtypes = [tensor.dtype for tensor in tensors]
        ctx.set_materialize_grads(False)
        return tuple(_copied([(tensor, dtype) for tensor in tensors]))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        known = [
            (one.contiguous(), dtype)
            for one, dtype in zip(gradients, ctx.dtypes, strict=True)
            if one is not None
        ]
        made = iter(_copied(known))
        return None, *(None if one is None else next(made) for one in gradients)


def _copied(wanted: list[tuple[Tensor, torch.dtype]]) -> list[Tensor]:
    made = [
        torch.empty(tensor.shape, dtype=dtype, device=tensor.device)
        for tensor, dtype in wanted
    ]
    torch._foreach_copy_(made, [tensor for tensor, _ in wanted])
    return made


def cast_together(layers: list[Part], dtype: torch.dtype) -> list[Part]:
    """The same named tuples, with every tensor in another precision."""
    tensors = [tensor for layer in layers for tensor in _tensors(layer)]
    made = iter(_Cast.apply(dtype, *tensors))  # type: ignore[no-untyped-call]
    return [_replaced(layer, made) for layer in layers]


def _tensors(part: Any) -> Iterator[Tensor]:
    if isinstance(part, Tensor):
        yield part
    elif part is not None:
        for one in part:
            yield from _tensors(one)


def _replaced(part: Any, made: Iterator[Tensor]) -> Any:
    if isinstance(part, Tensor):
        return next(made)
    return None if part is None else type(part)(*(_replaced(one, made) for one in part))
