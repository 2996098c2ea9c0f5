"""Quantization-aware linear layers: 7-bit weights, 8-bit inputs with one fixed scale, as in the exported model."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from whichsense.models.compact.encoder.graph import GELU_FLOOR, WEIGHT_TOP

_TOP = 127
UNLEARNT = -3.0  # log(step) of an input's codes before calibration
_LEVELS = 256


class QuantizedLinear(nn.Linear):
    """A linear layer. `scale` is log(step) of its input's codes: learned, and fixed after training."""

    def __init__(self, inputs: int, outputs: int, *, after_gelu: bool = False) -> None:
        super().__init__(inputs, outputs)
        self.scale = nn.Parameter(torch.tensor(UNLEARNT))
        self.after_gelu = after_gelu
        self.quantize_weights = self.quantize_activations = False

    def forward(self, values: Tensor) -> Tensor:
        if self.quantize_activations:
            values = self.coded(values)
        return F.linear(values, self.used_weight(), self.bias)

    def used_weight(self) -> Tensor:
        return quantize_weight(self.weight) if self.quantize_weights else self.weight

    def coded(self, values: Tensor) -> Tensor:
        """Values rounded to their codes. Rounded values stay as they are."""
        step = self.scale.float().exp()
        # The gradient of the step is scaled down by the number of values that it serves (LSQ, Esser et al. 2020).
        share = (values.numel() * _TOP) ** -0.5
        step = step.detach() + (step - step.detach()) * share
        if self.after_gelu:
            low = -torch.round(GELU_FLOOR / step.detach())
        else:
            low = torch.full_like(step, -_TOP - 1)
        codes = _rounded((values.float() / step).clamp(low, low + _LEVELS - 1))
        return torch.mul(codes, step).to(values.dtype)

    def calibrate(self, values: Tensor) -> None:
        """Set the step from a batch, so that 99.99% of the values fit."""
        top = values.detach().abs().float().flatten()
        bound = torch.quantile(top[:: max(1, top.numel() // 1_000_000)], 0.9999)
        highest = 230 if self.after_gelu else _TOP
        self.scale.data.fill_(float(torch.log(bound / highest)))


def quantize_weight(weight: Tensor) -> Tensor:
    """Round weights to 7-bit codes with one step an output. Gradients pass through the rounding."""
    step = weight_steps(weight)
    return _rounded(weight / step) * step


def weight_steps(weight: Tensor) -> Tensor:
    """The step of each output's weights (outputs × 1)."""
    greatest = weight.detach().abs().amax(dim=1, keepdim=True)
    return greatest.clamp(min=1e-8) / WEIGHT_TOP


def _rounded(values: Tensor) -> Tensor:
    return values + (torch.round(values) - values).detach()
