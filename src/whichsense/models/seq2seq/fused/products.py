"""The three products of a linear layer, in the precision of its input or in eight bits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from whichsense.models.seq2seq.fused import reference
from whichsense.models.seq2seq.fused.eight import Eight

Operand = Tensor | Eight
_WIDE_RESULTS = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 8)
_LEAST = 1e-30  # a bound that can be divided by


def kernels(x: Tensor) -> Any:
    """Triton's on a GPU, PyTorch's elsewhere."""
    if not x.is_cuda:
        return reference
    from whichsense.models.seq2seq.fused import launch_kernels

    return launch_kernels


def largest_of(x: Tensor) -> Tensor:
    """The largest number of a tensor, never zero."""
    found: Tensor = torch.linalg.vector_norm(x, float("inf"), dtype=torch.float32)
    return found.clamp_min(_LEAST)


def safe(bound: Tensor) -> Tensor:
    return bound.clamp_min(_LEAST)


def product(x: Operand, weight: Operand, bias: Tensor, dtype: torch.dtype) -> Tensor:
    """x Wᵀ + b"""
    if isinstance(x, Eight) and isinstance(weight, Eight):
        return torch._scaled_mm(
            x.straight, weight.straight.t(), scale_a=x.scale, scale_b=weight.scale, bias=bias.to(dtype),
            out_dtype=dtype, use_fast_accum=True,
        )  # fmt: skip
    assert isinstance(x, Tensor) and isinstance(weight, Tensor)
    return torch.addmm(bias.to(dtype), x, weight.t())


def input_gradient(g: Operand, weight: Operand, dtype: torch.dtype) -> Tensor:
    """g W"""
    if isinstance(g, Eight) and isinstance(weight, Eight):
        turned = weight.turned[:, : g.straight.shape[1]]  # without the padding
        return torch._scaled_mm(
            g.straight,
            turned.t(),
            scale_a=g.scale,
            scale_b=weight.scale,
            out_dtype=dtype,
            use_fast_accum=True,
        )
    assert isinstance(g, Tensor) and isinstance(weight, Tensor)
    return g @ weight


def weight_gradient(g: Operand, x: Operand) -> Tensor:
    """gᵀ x in float32: the sum runs over all tokens, so it is not the place for the chip's shorter accumulators."""
    if isinstance(g, Eight) and isinstance(x, Eight):
        return torch._scaled_mm(
            g.turned,
            x.turned.t(),
            scale_a=g.scale,
            scale_b=x.scale,
            out_dtype=torch.float32,
            use_fast_accum=False,
        )
    assert isinstance(g, Tensor) and isinstance(x, Tensor)
    if g.is_cuda and g.dtype != torch.float32 and _WIDE_RESULTS:
        return torch.mm(g.t(), x, out_dtype=torch.float32)
    return (g.t() @ x).float()
