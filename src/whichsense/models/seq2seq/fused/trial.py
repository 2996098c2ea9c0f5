"""A trial of the kernels where they are to run: compilers err, and a wrong gradient shows in nothing but the result.

The first training step on a GPU computes a small example by the kernels and by PyTorch. (ptxas 12.8 and 12.9 lost
bytes of casts to eight bits that were stored twice; the kernels go around it, but not around the next such fault.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from whichsense.models.seq2seq.fused import reference
from whichsense.models.seq2seq.fused.eight import BACKWARD, FORWARD, Eight
from whichsense.models.seq2seq.fused.layer import Plan
from whichsense.models.seq2seq.ragged import Ragged

_NEAR = 0.02  # of the norm: bfloat16's own rounding is a tenth of it
_LENGTHS = (70, 3, 140)


def failures(size: int, inner: int, plan: Plan, dtype: torch.dtype, device: torch.device) -> list[str]:
    """The parts that differ from PyTorch's, with how much; none: the kernels may be used."""
    from whichsense.models.seq2seq.fused import launch_kernels

    trial = _Trial((launch_kernels, reference), plan, dtype, device)
    trial.norms(size)
    trial.gelu(inner)
    trial.attention(size)
    if plan.float8:
        trial.casts(size)
    return trial.wrong


class _Trial:
    """Random tables, drawn without touching the run's own random numbers, through both ways of computing."""

    def __init__(self, ways: tuple[Any, Any], plan: Plan, dtype: torch.dtype, device: torch.device) -> None:
        self.ways, self.plan, self.dtype, self.device = ways, plan, dtype, device
        self.generator = torch.Generator().manual_seed(7)
        self.seed = torch.tensor([4_294_967_291, 2_654_435_769], device=device)
        self.bound = torch.tensor(16.0, device=device) if plan.float8 else None
        self.wrong: list[str] = []

    def drawn(self, columns: int) -> Tensor:
        return torch.randn(sum(_LENGTHS), columns, generator=self.generator).to(self.device, self.dtype)

    def compare(self, name: str, compute: Callable[[Any], Sequence[Any]]) -> None:
        for one, other in zip(*(_flat(compute(way)) for way in self.ways), strict=True):
            far = float((one.float() - other.float()).norm() / other.float().norm().clamp_min(1e-12))
            if not far < _NEAR:
                self.wrong.append(f"{name} ({far:.2g})")

    def norms(self, size: int) -> None:
        x, change, dy, dy2 = (self.drawn(size) for _ in range(4))
        weight, bias = self.drawn(size)[0].float(), self.drawn(size)[0].float()
        there = {"epsilon": self.plan.epsilon, **self.plan.norm}
        self.compare("norm", lambda way: way.norm_forward(x, change, weight, bias, self.seed, **there))
        kept = reference.norm_forward(x, change, weight, bias, self.seed, **there)[1:4]
        for more in (None, dy2):
            self.compare(
                "norm's gradient",
                lambda way, more=more: way.norm_backward(dy, more, *kept, weight, self.seed, **self.plan.norm),  # type: ignore[misc]
            )

    def gelu(self, inner: int) -> None:
        u, dh, options = (
            self.drawn(inner),
            self.drawn(inner),
            {"dropped": self.plan.activation_dropped, "bound": self.bound},
        )
        self.compare("GELU", lambda way: [way.gelu_forward(u, self.seed, kind=FORWARD, **options)])
        self.compare("GELU's gradient", lambda way: way.gelu_backward(dh, u, self.seed, kind=BACKWARD, **options))

    def casts(self, size: int) -> None:
        x, wide = self.drawn(size), self.drawn(3 * size)
        self.compare("cast", lambda way: [way.cast(x, self.bound, FORWARD)])
        self.compare("cast", lambda way: [way.cast(x, self.bound, BACKWARD, self.seed, self.plan.dropped)])
        self.compare("cast with sums", lambda way: way.cast_summed(wide, self.bound, BACKWARD))

    def attention(self, size: int) -> None:
        rows = Ragged.of(_LENGTHS)
        rows = rows._replace(starts=rows.starts.to(self.device), place=rows.place.to(self.device))
        qkv, dout = self.drawn(3 * size), self.drawn(size)

        def both(way: Any) -> list[Tensor]:
            seen, levels, largest = way.attention_forward(qkv, rows, self.seed, **self.plan.attention)
            gradient, steepest = way.attention_backward(dout, qkv, seen, levels, rows, self.seed, **self.plan.attention)
            return [seen, gradient, *((largest, steepest) if self.plan.float8 else ())]

        self.compare("attention", both)


def _flat(parts: Sequence[Any]) -> list[Tensor]:
    """Tensors with anything in them; the three of a table in eight bits one by one."""
    found = [tensor for part in parts for tensor in (part if isinstance(part, Eight) else [part])]
    return [tensor for tensor in found if tensor is not None and tensor.numel()]
