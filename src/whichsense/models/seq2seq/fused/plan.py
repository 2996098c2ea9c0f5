"""How a fused network computes: its constants, and the three products of a linear layer, in float8 or not."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from whichsense.errors import BadConfig
from whichsense.models.seq2seq.fused import reference
from whichsense.models.seq2seq.fused.precision import BACKWARD, FORWARD, Eight
from whichsense.models.seq2seq.weights import Style

Operand = Tensor | Eight
_LONGEST = 256  # tokens of a sequence: longer ones are left to PyTorch's attention
# From PyTorch 2.8 on, a product of bfloat16 can have a float32 result.
_WIDE_RESULTS = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 8)
_LEAST = 1e-30  # the least bound, so that it can be divided by


def kernels(x: Tensor) -> Any:
    """The module of kernels for a tensor: Triton's on a GPU, PyTorch's elsewhere."""
    if not x.is_cuda:
        return reference
    from whichsense.models.seq2seq.fused import launch_kernels

    return launch_kernels


def largest_of(x: Tensor) -> Tensor:
    """The largest number of a tensor, never zero."""
    largest: Tensor = torch.linalg.vector_norm(x, float("inf"), dtype=torch.float32)
    return safe(largest)


def safe(bound: Tensor) -> Tensor:
    """A bound that can be divided by."""
    return bound.clamp_min(_LEAST)


def product(x: Operand, weight: Operand, bias: Tensor, dtype: torch.dtype) -> Tensor:
    """x Wᵀ + b."""
    if isinstance(x, Eight) and isinstance(weight, Eight):
        return torch._scaled_mm(
            x.straight, weight.straight.t(), scale_a=x.scale, scale_b=weight.scale, bias=bias.to(dtype),
            out_dtype=dtype, use_fast_accum=True,
        )  # fmt: skip
    assert isinstance(x, Tensor) and isinstance(weight, Tensor)
    return torch.addmm(bias.to(dtype), x, weight.t())


def input_gradient(g: Operand, weight: Operand, dtype: torch.dtype) -> Tensor:
    """g W."""
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
    """gᵀ x in float32. The sum runs over all tokens: the chip's fast accumulators would be too short."""
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


@dataclass(frozen=True, slots=True)
class Plan:
    """The constants of a network: sizes, dropout rates as shares of 2**32, the precision of products."""

    heads: int
    scale: float
    epsilon: float
    dropped: int
    attention_dropped: int
    activation_dropped: int
    float8: bool

    @classmethod
    def of(cls, style: Style, *, float8: bool) -> Plan:
        return cls(
            heads=style.heads,
            scale=style.scale,
            epsilon=style.epsilon,
            dropped=round(style.dropout * 2**32),
            attention_dropped=round(style.attention_dropout * 2**32),
            activation_dropped=round(style.activation_dropout * 2**32),
            float8=float8,
        )

    @property
    def norm(self) -> dict[str, Any]:
        return {"dropped": self.dropped, "bounded": self.float8}

    @property
    def attention(self) -> dict[str, Any]:
        return {
            "heads": self.heads,
            "scale": self.scale,
            "dropped": self.attention_dropped,
            "bounded": self.float8,
        }

    def operand(self, x: Tensor, bound: Tensor, dtype: torch.dtype) -> Operand:
        """A tensor as an operand of a product. In float8, `bound` is the largest number that it may hold."""
        if not self.float8:
            return x.to(dtype)
        operand: Eight = kernels(x).cast(x.detach(), bound, FORWARD)
        return operand

    def weight(self, w: Tensor, dtype: torch.dtype) -> Operand:
        """A weight matrix as an operand. Its bound is computed from it."""
        if not self.float8:
            return w.to(dtype)
        return self.operand(w, largest_of(w), dtype)

    def gradient(
        self, dtotal: Tensor, dchange: Tensor | None, bound: Tensor, seed: Tensor
    ) -> Operand:
        """The gradient of a residual branch before dropout; in float8 it is computed here, from that of the sum."""
        if not self.float8:
            assert dchange is not None
            return dchange
        operand: Eight = kernels(dtotal).cast(
            dtotal, safe(bound), BACKWARD, seed, self.dropped
        )
        return operand


def is_fusable(style: Style) -> bool:
    """Whether the layers are BART's, the only kind that is built."""
    has_layer_norm = not style.norm_first and not style.root_mean_square
    return has_layer_norm and style.activation == "gelu"


def has_kernels(x: Tensor, style: Style, longest: int) -> bool:
    """Whether the kernels can compute the layers: on a GPU with Triton, which comes with PyTorch for CUDA."""
    is_power_of_two = style.width & (style.width - 1) == 0
    is_half = x.is_cuda and x.dtype in (torch.bfloat16, torch.float16)
    fits = is_power_of_two and style.width >= 16 and longest <= _LONGEST
    return is_half and fits and find_spec("triton") is not None


def check_float8(style: Style | None, device: torch.device) -> None:
    """Reject families other than BART, and chips without float8."""
    if style is None or not is_fusable(style):
        raise BadConfig(
            "train.float8 is built for BART checkpoints. Leave it out, or take one of those."
        )
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 9):
        name = torch.cuda.get_device_name(device)
        raise BadConfig(
            f"{name} does not compute in eight bits, as Ada, Hopper and later do. Leave train.float8 out."
        )
