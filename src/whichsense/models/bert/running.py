"""Models in use: which device, which precision, how much at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn

from whichsense.jobs.limits import check_limits
from whichsense.models.bert.inputs import Row, by_length, padded

# Tokens in a batch, padding included: enough to keep the device busy, little enough for its memory.
_CPU_TOKENS, _GPU_TOKENS = 4096, 65_536


def best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def compile_layers(encoder: nn.Module, *arguments: Any, **options: Any) -> None:
    """Layer by layer, in place: they are alike, so one is compiled and serves all."""
    for layer in (
        one
        for part in encoder.modules()
        if isinstance(part, nn.ModuleList)
        for one in part
    ):
        layer.compile(*arguments, **options)


def in_full(tensor: torch.Tensor) -> torch.autocast:
    """Where bfloat16 would round away what matters: scores, which are compared, are computed in float32."""
    return torch.autocast(tensor.device.type, enabled=False)


@contextlib.contextmanager
def inference(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, no gradients, bfloat16 on a GPU; the model's mode is put back afterwards.

    A model whose training is compiled is used as it is: batches of all shapes would be compiled one after another.
    """
    training, kind = model.training, device_of(model).type
    model.eval()
    as_it_is = torch.compiler.set_stance("force_eager")
    try:
        with (
            as_it_is,
            torch.inference_mode(),
            torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"),
        ):
            yield
    finally:
        model.train(training)


def outputs(
    model: nn.Module, rows: Sequence[Row], pad: int
) -> Iterator[tuple[list[int], Any]]:
    """What the model gives for rows, batched by length: the rows' numbers, and the output for them."""
    device = device_of(model)
    for places in by_length(rows, _CPU_TOKENS if device.type == "cpu" else _GPU_TOKENS):
        check_limits()
        batch = padded([rows[place] for place in places], pad)
        yield places, model({name: tensor.to(device) for name, tensor in batch.items()})
