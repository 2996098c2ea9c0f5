"""AdamW with parameter groups, what the settings change about a model, batches on a device."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from whichsense.errors import BadConfig
from whichsense.train.loop.settings import Settings


def build_optimizer(model: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """AdamW. Parameters are grouped by learning rate and by whether they are decayed (matrices are)."""
    # (learning rate, weight decay) → parameters
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    unused = set(settings.learning_rates)
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        prefixes = _matching_prefixes(name, settings)
        unused -= set(prefixes)
        rate = settings.learning_rate
        if prefixes:
            rate = settings.learning_rates[max(prefixes, key=len)]
        decay = settings.weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((rate, decay), []).append(parameter)
    if unused:
        names = sorted({name.split(".")[0] for name, _ in model.named_parameters()})
        raise BadConfig(
            f"train.learning_rates: no parameter begins with '{min(unused)}'. There are: {', '.join(names)}."
        )
    if not groups:
        raise BadConfig("The model has no parameter that could be trained.")
    tables = []
    for (rate, decay), parameters in groups.items():
        # full_rate: what the schedule's share is taken of at every step.
        table = {"params": parameters, "lr": rate, "full_rate": rate}
        tables.append(table | {"weight_decay": decay})
    first, second = settings.betas
    return torch.optim.AdamW(tables, betas=(first, second), eps=settings.epsilon)


def _matching_prefixes(name: str, settings: Settings) -> list[str]:
    """The prefixes with a learning rate of their own that a parameter's name begins with."""
    prefixes = []
    for prefix in settings.learning_rates:
        if fnmatchcase(name, f"{prefix}*"):
            prefixes.append(prefix)
    return prefixes


def _checkpoint_activations(part: Any) -> None:
    """Newer releases of transformers have another name for it; our own networks have the older one."""
    options = {"use_reentrant": False}
    if hasattr(part, "activation_checkpointing_enable"):
        part.activation_checkpointing_enable(options)
    else:
        part.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)


def prepare_model(model: nn.Module, settings: Settings) -> None:
    """Turn on gradient checkpointing, float8 products and compilation, in place, where the settings ask for them."""
    if settings.gradient_checkpointing:
        parts = _parts_with(model, "gradient_checkpointing_enable")
        if not parts:
            raise BadConfig(
                "This model cannot trade time for memory: leave train.gradient_checkpointing out."
            )
        for part in parts:
            _checkpoint_activations(part)
    if settings.float8:
        parts = _parts_with(model, "float8_enable")
        if not parts:
            raise BadConfig(
                "This model is not built for products in eight bits: leave train.float8 out."
            )
        for part in parts:
            part.float8_enable()
    if settings.compile:
        # Sizes of another recipe in the same process would make this one's variable.
        torch.compiler.reset()
        model.compile()  # in place: the weights keep their names


def _parts_with(model: nn.Module, method: str) -> list[Any]:
    return [part for part in model.modules() if hasattr(part, method)]


def to_device(batch: Any, device: torch.device) -> Any:
    """Move every tensor of a batch to the device; anything else stays as it is."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(to_device(value, device) for value in batch)
    return batch
