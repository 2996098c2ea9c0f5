"""Matrices in float8, and casts of whole stacks of weights to the working precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

_Part = TypeVar("_Part")
FORWARD = torch.float8_e4m3fn  # more digits
BACKWARD = (
    torch.float8_e5m2
)  # more range: gradients of two tokens may differ by powers of ten
_ROWS = 64  # a transpose has a multiple of so many: at most those of a kernel's tile, which zeroes the padding


def largest(kind: torch.dtype) -> float:
    """
    >>> largest(FORWARD), largest(BACKWARD)
    (448.0, 57344.0)
    """
    return torch.finfo(kind).max


class Eight(NamedTuple):
    """A matrix in float8, and its transpose: Hopper's products read both operands along the axis that they sum over."""

    straight: Tensor
    """(rows, columns)."""
    turned: Tensor
    """(columns, rows), rows padded with zeros to a multiple of 64, so that kernels write whole sectors of memory."""
    scale: Tensor
    """The factor of its numbers, float32."""


def empty_eight(rows: int, columns: int, bound: Tensor, kind: torch.dtype) -> Eight:
    """An uninitialized matrix for numbers of at most `bound`."""
    straight = torch.empty((rows, columns), dtype=kind, device=bound.device)
    turned = torch.empty(
        (columns, -(-rows // _ROWS) * _ROWS), dtype=kind, device=bound.device
    )
    return Eight(straight, turned, bound / largest(kind))


class _Cast(torch.autograd.Function):
    """Tensors → the same in another precision; gradients come back in their own."""

    @staticmethod
    def forward(ctx: Any, dtype: torch.dtype, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.dtypes = [tensor.dtype for tensor in tensors]
        ctx.set_materialize_grads(False)
        return tuple(_copy([(tensor, dtype) for tensor in tensors]))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        wanted = []
        for gradient, dtype in zip(gradients, ctx.dtypes, strict=True):
            if gradient is not None:
                wanted.append((gradient.contiguous(), dtype))
        copies = iter(_copy(wanted))
        results: list[Tensor | None] = [None]  # of dtype
        for gradient in gradients:
            results.append(None if gradient is None else next(copies))
        return tuple(results)


def _copy(wanted: list[tuple[Tensor, torch.dtype]]) -> list[Tensor]:
    """Copies of tensors, each in its own precision, by one call."""
    tensors = [tensor for tensor, _ in wanted]
    copies = []
    for tensor, dtype in wanted:
        copies.append(torch.empty(tensor.shape, dtype=dtype, device=tensor.device))
    torch._foreach_copy_(copies, tensors)
    return copies


def cast_together(layers: list[_Part], dtype: torch.dtype) -> list[_Part]:
    """The same named tuples with every tensor in another precision, as one node of the autograd graph.

    A decoder layer over thirty tokens computes little, and the GPU waits for kernel launches: two casts for each of two
    dozen tensors, forward and backward, would be a third of them.
    """
    tensors: list[Tensor] = []
    for layer in layers:
        tensors += _tensors(layer)
    cast = iter(_Cast.apply(dtype, *tensors))  # type: ignore[no-untyped-call]
    return [_replace(layer, cast) for layer in layers]


def _tensors(part: Any) -> Iterator[Tensor]:
    """The tensors of nested named tuples, in order."""
    if isinstance(part, Tensor):
        yield part
    elif part is not None:
        for one in part:
            yield from _tensors(one)


def _replace(part: Any, tensors: Iterator[Tensor]) -> Any:
    """The same named tuple with the next tensors in place of its own."""
    if isinstance(part, Tensor):
        return next(tensors)
    if part is None:
        return None
    return type(part)(*(_replace(one, tensors) for one in part))
