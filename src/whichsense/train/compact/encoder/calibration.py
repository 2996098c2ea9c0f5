"""First scales of the int8 codes, taken from the activations of a batch."""

from __future__ import annotations

from typing import Any

import torch

from whichsense.models.compact.encoder.net import CompactNet
from whichsense.models.compact.encoder.quantized import UNLEARNT, QuantizedLinear
from whichsense.train.compact.data.pairs import PairTensors


def is_calibrated(net: CompactNet) -> bool:
    """Whether the scales of a network were learnt or calibrated before."""
    return bool(_quantized_layers(net)[0].scale.item() != UNLEARNT)


def calibrate(net: CompactNet, pairs: PairTensors) -> None:
    """Set the scale of every quantized layer by what it is given when these pairs are read."""

    def calibrate_layer(layer: QuantizedLinear, inputs: tuple[Any, ...]) -> None:
        layer.calibrate(inputs[0])

    # A hook sees the inputs of its layer in a normal forward pass.
    hooks = []
    for layer in _quantized_layers(net):
        hooks.append(layer.register_forward_pre_hook(calibrate_layer))
    # Dropout would change the range of activations.
    net.eval()
    with torch.no_grad():
        net.read(*pairs[:3])
    for hook in hooks:
        hook.remove()


def _quantized_layers(net: CompactNet) -> list[QuantizedLinear]:
    return [part for part in net.modules() if isinstance(part, QuantizedLinear)]
