"""Devices and processes: all that the loop knows about several GPUs.

`torchrun --nproc-per-node 8 -m whichsense train RECIPE.toml` (or `accelerate launch`) starts one process for each GPU
and tells each its number through the environment. Every process takes its own batches; gradients are averaged before
each step, so that n processes are one with a batch n times as large. Only the first one evaluates and writes.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from whichsense.models.bert.running import best_device

Value = TypeVar("Value")
_BUCKET = 2**24  # numbers that are sent at once
_PATIENCE = timedelta(hours=12)  # the others wait while the first one evaluates


@dataclass(frozen=True, slots=True)
class Processes:
    """This process among its equals."""

    device: torch.device
    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def any(self, flag: bool) -> bool:
        """Whether it is true in any process: all must decide alike."""
        if self.count == 1:
            return flag
        found = torch.tensor(float(flag), device=self.device)
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
        return bool(found.item())

    def from_first(self, value: Value) -> Value:
        """What the first process has, in every process."""
        if self.count == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, device=self.device)
        return box[0]

    def share_weights(self, model: nn.Module) -> None:
        """Every process begins with the weights of the first."""
        if self.count > 1:
            for tensor in (*model.parameters(), *model.buffers()):
                dist.broadcast(tensor.data, src=0)

    def average_gradients(self, model: nn.Module) -> None:
        """The mean over the processes. A parameter that only some of them used counts as zero in the others."""
        if self.count == 1:
            return
        parameters = [
            parameter for parameter in model.parameters() if parameter.requires_grad
        ]
        used = torch.tensor(
            [float(parameter.grad is not None) for parameter in parameters],
            device=self.device,
        )
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        gradients = []
        for parameter, flag in zip(parameters, used.tolist(), strict=True):
            if flag:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                gradients.append(parameter.grad)
        for bucket in _buckets(gradients):
            flat = torch.cat([gradient.flatten() for gradient in bucket])
            dist.all_reduce(flat)
            flat /= self.count
            for gradient, mean in zip(
                bucket, torch.split(flat, [g.numel() for g in bucket]), strict=True
            ):
                gradient.copy_(mean.view_as(gradient))

    def gathered(self, rows: Tensor) -> Tensor:
        """The rows of all processes in their order, with gradients: in-batch negatives reach across GPUs."""
        if self.count == 1:
            return rows
        found: Tensor = _Gather.apply(rows, self)  # type: ignore[no-untyped-call]
        return found

    def gathered_plain(self, rows: Tensor) -> Tensor:
        """The same for numbers that have no gradient."""
        if self.count == 1:
            return rows
        found = [torch.empty_like(rows) for _ in range(self.count)]
        dist.all_gather(found, rows.contiguous())
        return torch.cat(found)

    def seed(self, seed: int, step: int) -> None:
        """The same random numbers at the same step, whatever ran before it: a resumed run need not store states."""
        number = (seed * 1_000_003 + step) * 4099 + self.rank
        random.seed(number)
        np.random.seed(number % 2**32)
        torch.manual_seed(number % 2**63)


class _Gather(torch.autograd.Function):
    """Every process used the rows of all: what it has for each goes back to where the row came from, added up."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, processes: Processes) -> Tensor:
        ctx.processes, ctx.count = processes, len(rows)
        return processes.gathered_plain(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        total = gradients[0].clone()
        dist.all_reduce(total)
        first = ctx.processes.rank * ctx.count
        return total[first : first + ctx.count], None


def _buckets(gradients: list[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    for gradient in gradients:
        if bucket and (
            bucket[0].dtype != gradient.dtype
            or sum(g.numel() for g in bucket) > _BUCKET
        ):
            yield bucket
            bucket = []
        bucket.append(gradient)
    if bucket:
        yield bucket


@contextmanager
def started(device: str = "") -> Iterator[Processes]:
    """This process: alone, or one of those that a launcher started."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes(torch.device(device or best_device()))
        return
    rank, local = int(os.environ["RANK"]), int(os.environ.get("LOCAL_RANK", "0"))
    kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
    own = torch.device(kind, local) if kind == "cuda" else torch.device(kind)
    if own.type == "cuda":
        torch.cuda.set_device(own)
    dist.init_process_group("nccl" if own.type == "cuda" else "gloo", timeout=_PATIENCE)
    try:
        yield Processes(own, rank, count)
    finally:
        dist.destroy_process_group()


def speaks() -> bool:
    """Whether this process is the one that a person hears: the first, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def current() -> Processes:
    """The processes as a task's loss sees them (for `gathered`); one alone where none were started."""
    if dist.is_available() and dist.is_initialized():
        device = (
            torch.device("cuda", torch.cuda.current_device())
            if dist.get_backend() == "nccl"
            else "cpu"
        )
        return Processes(torch.device(device), dist.get_rank(), dist.get_world_size())
    return Processes(torch.device("cpu"))
