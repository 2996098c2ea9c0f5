"""One training step: the gradients of a group of batches, clipping, the learning rate, the optimizer's update."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Generic

import torch
from torch import Tensor, nn

from whichsense.errors import BadInput
from whichsense.train.loop.optimizer import to_device
from whichsense.train.loop.processes import Processes
from whichsense.train.loop.settings import Settings, rate_share
from whichsense.train.loop.task import BatchT, ModelT, Task


class TrainingStep(Generic[ModelT, BatchT]):
    """Updates the model, and sums the losses since the last log."""

    def __init__(
        self,
        task: Task[ModelT, BatchT],
        model: ModelT,
        optimizer: torch.optim.Optimizer,
        settings: Settings,
        processes: Processes,
    ) -> None:
        self._task = task
        self._model = model
        self._optimizer = optimizer
        self._settings = settings
        self._processes = processes
        # Tensors stay on the device until they are logged: reading a number makes the device wait.
        self._sums: dict[str, float | Tensor] = {}
        self._steps = 0.0

    def update(
        self, group: Sequence[BatchT], step: int, total: int
    ) -> tuple[Tensor, float]:
        """Train on the batches of one step; returns the gradient's norm, on the device, and the learning rate."""
        settings, processes = self._settings, self._processes
        processes.seed(settings.seed, step)
        for batch in group:
            self._add_gradients(batch, len(group))
        processes.average_gradients(self._model)
        longest = settings.clip or math.inf
        norm = nn.utils.clip_grad_norm_(self._model.parameters(), longest)
        share = rate_share(step, total, settings)
        for parameters in self._optimizer.param_groups:
            parameters["lr"] = parameters["full_rate"] * share
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return norm, settings.learning_rate * share

    def pop_means(self, step: int) -> dict[str, float]:
        """The mean loss and its parts since the last call; a loss that is not finite is an error."""
        means = {}
        for name, value in self._sums.items():
            means[name] = float(value) / self._steps
        self._sums = {}
        self._steps = 0.0
        if not math.isfinite(means["loss"]):
            raise BadInput(
                f"The loss is {means['loss']} at step {step}. "
                "Lower train.learning_rate, or train without bf16."
            )
        return means

    def _add_gradients(self, batch: BatchT, group_size: int) -> None:
        device = self._processes.device
        with torch.autocast(device.type, torch.bfloat16, enabled=self._settings.bf16):
            loss = self._task.loss(self._model, to_device(batch, device))
        parts: Mapping[str, float | Tensor] = {}
        if isinstance(loss, tuple):
            loss, parts = loss
        # The mean over the group, whatever its size.
        (loss / group_size).backward()  # type: ignore[no-untyped-call]
        for name, part in {"loss": loss, **parts}.items():
            value = part.detach() if isinstance(part, Tensor) else part
            self._sums[name] = self._sums.get(name, 0.0) + value / group_size
        self._steps += 1 / group_size
