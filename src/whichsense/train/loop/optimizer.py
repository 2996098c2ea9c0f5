"""AdamW with parameter groups, and what the settings change about a model."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from whichsense.errors import BadConfig
from whichsense.train.loop.settings import Settings


def make_optimizer(model: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """AdamW. Parameters are grouped by learning rate and by whether they are decayed (matrices are)."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    unused = set(settings.learning_rates)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            fits = [
                start
                for start in settings.learning_rates
                if fnmatchcase(name, f"{start}*")
            ]
            unused -= set(fits)
            rate = (
                settings.learning_rates[max(fits, key=len)]
                if fits
                else settings.learning_rate
            )
            decay = settings.weight_decay if parameter.ndim > 1 else 0.0
            groups.setdefault((rate, decay), []).append(parameter)
    if unused:
        names = sorted({name.split(".")[0] for name, _ in model.named_parameters()})
        raise BadConfig(
            f"train.learning_rates: no parameter begins with '{min(unused)}'. There are: {', '.join(names)}."
        )
    tables = [
        {"params": parameters, "lr": rate, "full_rate": rate, "weight_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]
    if not tables:
        raise BadConfig("The model has no parameter that could be trained.")
    first, second = settings.betas
    return torch.optim.AdamW(tables, betas=(first, second), eps=settings.epsilon)


def prepared(model: nn.Module, settings: Settings) -> None:
    """Gradient checkpointing, products in eight bits and compilation, in place, where the settings ask for them."""
    if settings.gradient_checkpointing:
        able: list[Any] = [
            part
            for part in model.modules()
            if hasattr(part, "gradient_checkpointing_enable")
        ]
        if not able:
            raise BadConfig(
                "This model cannot trade time for memory: leave train.gradient_checkpointing out."
            )
        for part in able:
            part.gradient_checkpointing_enable(
                gradient_checkpointing_kwargs={"use_reentrant": False}
            )
    if settings.float8:
        eight: list[Any] = [
            part for part in model.modules() if hasattr(part, "float8_enable")
        ]
        if not eight:
            raise BadConfig(
                "This model is not built for products in eight bits: leave train.float8 out."
            )
        for part in eight:
            part.float8_enable()
    if settings.compile:
        torch.compiler.reset()  # another recipe's sizes, in the same process, would make these ones variable
        model.compile()  # in place: the weights keep their names


def to_device(batch: Any, device: torch.device) -> Any:
    """Every tensor of a batch on the device; what is no tensor stays as it is."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(to_device(value, device) for value in batch)
    return batch
