"""Linear layers that train as they will run: 7-bit weights, 8-bit inputs with one fixed scale."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from whichsense.models.compact.encoder.graph import GELU_FLOOR, WEIGHT_TOP

TOP = 127
UNLEARNT = (
    -3.0
)  # what the step of an input's codes is, as a logarithm, until a batch was seen


class QuantizedLinear(nn.Linear):
    """A linear layer. `scale` is log(step) of its input's codes: learned, the same for every input once trained."""

    def __init__(self, inputs: int, outputs: int, *, after_gelu: bool = False) -> None:
        super().__init__(inputs, outputs)
        self.scale = nn.Parameter(torch.tensor(UNLEARNT))
        self.after_gelu = after_gelu
        self.quantize_weights = self.quantize_activations = False

    def forward(self, values: Tensor) -> Tensor:
        return F.linear(
            self.coded(values) if self.quantize_activations else values,
            self.used_weight(),
            self.bias,
        )

    def used_weight(self) -> Tensor:
        return quantize_weight(self.weight) if self.quantize_weights else self.weight

    def coded(self, values: Tensor) -> Tensor:
        """Values as their codes say them. What is coded already stays as it is."""
        step = self.scale.float().exp()
        # The gradient of the step is scaled down by the number of values that it serves (LSQ, Esser et al. 2020).
        share = (values.numel() * TOP) ** -0.5
        step = step.detach() + (step - step.detach()) * share
        low = (
            -torch.round(GELU_FLOOR / step.detach())
            if self.after_gelu
            else torch.full_like(step, -TOP - 1)
        )
        codes = _rounded((values.float() / step).clamp(low, low + 255))
        return torch.mul(codes, step).to(values.dtype)

    def calibrate(self, values: Tensor) -> None:
        """Set the step from a batch: what nearly all values fit under."""
        top = values.detach().abs().float().flatten()
        bound = torch.quantile(top[:: max(1, top.numel() // 1_000_000)], 0.9999)
        self.scale.data.fill_(
            float(torch.log(bound / (230 if self.after_gelu else TOP)))
        )


def quantize_weight(weight: Tensor) -> Tensor:
    """Weights as 7-bit codes, one scale an output, times that scale; gradients pass through the rounding."""
    step = weight_steps(weight)
    return _rounded(weight / step) * step


def weight_steps(weight: Tensor) -> Tensor:
    return weight.detach().abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / WEIGHT_TOP


def _rounded(values: Tensor) -> Tensor:
    return values + (torch.round(values) - values).detach()
