"""Whether the fused step runs: the plan for one model and machine, and its trial against the reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from whichsense.lab.fused import fused_reference
from whichsense.models.seq2seq.ragged import RaggedRows, Style
from whichsense.types import frozen

# How a fused network computes: its constants, and the products whose result is wider than what they multiply.

_LONGEST = 256  # tokens of a sequence: longer ones are left to PyTorch's attention
# From PyTorch 2.8 on, a product of bfloat16 can have a float32 result.
_WIDE_RESULTS = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 8)


def kernels(x: Tensor) -> Any:
    """Return the module of kernels for a tensor: Triton's on a GPU, PyTorch's elsewhere."""
    if not x.is_cuda:
        return fused_reference
    from whichsense.lab.fused import fused_launch_kernels

    return fused_launch_kernels


def weight_gradient(g: Tensor, x: Tensor) -> Tensor:
    """Return gᵀ x in float32."""
    if g.is_cuda and g.dtype != torch.float32 and _WIDE_RESULTS:
        return torch.mm(g.t(), x, out_dtype=torch.float32)
    return (g.t() @ x).float()


@frozen
class Plan:
    """The constants of a network: sizes, dropout rates as shares of 2**32."""

    heads: int
    scale: float
    epsilon: float
    dropped: int
    attention_dropped: int
    activation_dropped: int

    @classmethod
    def of(cls, style: Style) -> Plan:
        return cls(
            heads=style.heads,
            scale=style.scale,
            epsilon=style.epsilon,
            dropped=round(style.dropout * 2**32),
            attention_dropped=round(style.attention_dropout * 2**32),
            activation_dropped=round(style.activation_dropout * 2**32),
        )

    @property
    def attention(self) -> dict[str, Any]:
        return {"heads": self.heads, "scale": self.scale, "dropped": self.attention_dropped}


def has_kernels(x: Tensor, style: Style, longest: int) -> bool:
    """Tell whether kernels can compute the layers: BART's, on a GPU, with Triton, which comes with PyTorch for CUDA."""
    is_bart = not style.norm_first and not style.root_mean_square and style.activation == "gelu"
    is_power_of_two = style.width & (style.width - 1) == 0
    is_half = x.is_cuda and x.dtype in (torch.bfloat16, torch.float16)
    fits = is_power_of_two and style.width >= 16 and longest <= _LONGEST
    return is_bart and is_half and fits and find_spec("triton") is not None


# A trial of the kernels on the machine where they run: compilers err, and a wrong gradient raises no
# error.
#
# The first training step on a GPU computes a small example by the kernels and by PyTorch.

_NEAR = 0.02  # of the norm: bfloat16's own rounding is a tenth of it
_LENGTHS = (70, 3, 140)


def failures(
    size: int, inner: int, plan: Plan, dtype: torch.dtype, device: torch.device
) -> list[str]:
    """Return the kernels whose results differ from PyTorch's, with the relative error."""
    from whichsense.lab.fused import fused_launch_kernels

    trial = _Trial((fused_launch_kernels, fused_reference), plan, dtype, device)
    trial.norms(size)
    trial.gelu(inner)
    trial.attention(size)
    return trial.wrong


class KernelTrials:
    """Remembers whether the kernels compute on this machine what they should: each plan is tried once."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._failures: list[str] = []

    def passes(self, plan: Plan, x: Tensor, inner: int) -> bool:
        """Tell whether a plan's kernels pass, for inputs like `x` and feed-forward layers of width `inner`."""
        if self._plan != plan:
            self._failures = failures(x.shape[1], inner, plan, x.dtype, x.device)
            self._plan = plan
        return not self._failures


class _Trial:
    """Compares both implementations on random tensors, without touching the run's own random state."""

    def __init__(
        self, ways: tuple[Any, Any], plan: Plan, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.ways = ways
        self.plan = plan
        self.dtype = dtype
        self.device = device
        self.generator = torch.Generator().manual_seed(7)
        self.seed = torch.tensor([4_294_967_291, 2_654_435_769], device=device)
        self.wrong: list[str] = []

    def drawn(self, columns: int) -> Tensor:
        return torch.randn(sum(_LENGTHS), columns, generator=self.generator).to(
            self.device, self.dtype
        )

    def compare(self, name: str, compute: Callable[[Any], Sequence[Tensor]]) -> None:
        for one, other in zip(*map(compute, self.ways), strict=True):
            if not other.numel():
                continue
            far = float(
                (one.float() - other.float()).norm() / other.float().norm().clamp_min(1e-12)
            )
            if not far < _NEAR:
                self.wrong.append(f"{name} ({far:.2g})")

    def norms(self, size: int) -> None:
        x, change, dy, dy2 = (self.drawn(size) for _ in range(4))
        rest = (*(self.drawn(size)[0].float() for _ in range(2)), self.seed)
        dropped = self.plan.dropped
        options: dict[str, Any] = {"epsilon": self.plan.epsilon, "dropped": dropped}
        kept = fused_reference.norm_forward(x, change, *rest, **options)[1:4]

        def both(way: Any) -> list[Tensor]:
            found = [*way.norm_forward(x, change, *rest, **options)]
            for more in (None, dy2):
                found += way.norm_backward(dy, more, *kept, rest[0], self.seed, dropped=dropped)
            return found

        self.compare("norm", both)

    def gelu(self, inner: int) -> None:
        u, dh = self.drawn(inner), self.drawn(inner)
        dropped = self.plan.activation_dropped
        self.compare(
            "GELU",
            lambda way: [
                way.gelu_forward(u, self.seed, dropped=dropped),
                *way.gelu_backward(dh, u, self.seed, dropped=dropped),
            ],
        )

    def attention(self, size: int) -> None:
        rows = RaggedRows.of(_LENGTHS).to(self.device)
        qkv, dout = self.drawn(3 * size), self.drawn(size)
        rest = (rows, self.seed)

        def both(way: Any) -> list[Tensor]:
            seen = way.attention_forward(qkv, *rest, **self.plan.attention)
            back = way.attention_backward(dout, qkv, *seen, *rest, **self.plan.attention)
            return [seen[0], *back]

        self.compare("attention", both)
