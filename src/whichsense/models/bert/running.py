"""Inference: device, precision, batches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from whichsense.jobs.limits import check_limits
from whichsense.models.bert.inputs import InputRow, by_length, padded

# Tokens in a batch, padding included: enough to keep the device busy, and within its memory.
_CPU_TOKENS = 4096
_GPU_TOKENS = 65_536


def best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def compile_layers(encoder: nn.Module, *arguments: Any, **options: Any) -> None:
    """Compile layer by layer, in place. The layers are alike: one compilation serves all."""
    for part in encoder.modules():
        if not isinstance(part, nn.ModuleList):
            continue
        for layer in part:
            layer.compile(*arguments, **options)


def in_full(tensor: torch.Tensor) -> torch.autocast:
    """A context in float32: bfloat16 is too coarse for scores that are compared."""
    return torch.autocast(tensor.device.type, enabled=False)


@contextlib.contextmanager
def inference(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, no gradients, bfloat16 on a GPU; the model's mode is restored afterwards.

    A compiled model runs in eager mode: batches of all shapes would be compiled one after another.
    """
    training = model.training
    kind = _device_of(model).type
    model.eval()
    eager = torch.compiler.set_stance("force_eager")
    try:
        with (
            eager,
            torch.inference_mode(),
            torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"),
        ):
            yield
    finally:
        model.train(training)


def outputs(
    model: nn.Module, rows: Sequence[InputRow], pad: int
) -> Iterator[tuple[list[int], Any]]:
    """The model's outputs for rows, in batches of similar length: the numbers of the rows, and their output."""
    device = _device_of(model)
    most = _CPU_TOKENS if device.type == "cpu" else _GPU_TOKENS
    for places in by_length(rows, most):
        check_limits()
        batch = padded([rows[place] for place in places], pad)
        inputs = {name: tensor.to(device) for name, tensor in batch.items()}
        yield places, model(inputs)
