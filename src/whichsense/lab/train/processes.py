"""Several processes that train one model, and workers that make its batches."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from whichsense.jobs.workers import Workers
from whichsense.models.bert.inputs import best_device
from whichsense.types import frozen

# Devices and processes: all that the loop knows about several GPUs.
#
# `torchrun --nproc-per-node 8 -m whichsense train RECIPE.toml` (or `accelerate launch`) starts one
# process for each GPU and tells each its number through the environment. Every process takes its own
# batches; gradients are averaged before each step, so that n processes are one with a batch n times
# as large. Only the first one evaluates and writes.

Value = TypeVar("Value")
_BUCKET = 2**24  # numbers that are sent at once
_TIMEOUT = timedelta(hours=12)  # the others wait while the first one evaluates


@frozen
class Processes:
    """This process among those of a launcher; one of one where there is none."""

    device: torch.device
    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def any(self, flag: bool) -> bool:
        """Tell whether `flag` is true in any process: all must decide alike."""
        if self.count == 1:
            return flag
        maximum = torch.tensor(float(flag), device=self.device)
        dist.all_reduce(maximum, op=dist.ReduceOp.MAX)
        return bool(maximum.item())

    def broadcast(self, value: Value) -> Value:
        """Return the value of the first process, in every process."""
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
        for bucket in _buckets(self._used_gradients(model)):
            flat = torch.cat([gradient.flatten() for gradient in bucket])
            dist.all_reduce(flat)
            flat /= self.count
            means = torch.split(flat, [gradient.numel() for gradient in bucket])
            for gradient, mean in zip(bucket, means, strict=True):
                gradient.copy_(mean.view_as(gradient))

    def _used_gradients(self, model: nn.Module) -> list[Tensor]:
        """Return the gradients of parameters that any process used."""
        parameters = []
        has_gradient = []
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameters.append(parameter)
                has_gradient.append(float(parameter.grad is not None))
        used = torch.tensor(has_gradient, device=self.device)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        gradients = []
        for parameter, flag in zip(parameters, used.tolist(), strict=True):
            if flag:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                gradients.append(parameter.grad)
        return gradients

    def gather(self, rows: Tensor) -> Tensor:
        """Return the rows of all processes in their order, with gradients: in-batch negatives reach across GPUs."""
        if self.count == 1:
            return rows
        everything: Tensor = _Gather.apply(rows, self)  # type: ignore[no-untyped-call]
        return everything

    def gather_constants(self, rows: Tensor) -> Tensor:
        """Return the rows of all processes in their order, without gradients."""
        if self.count == 1:
            return rows
        parts = [torch.empty_like(rows) for _ in range(self.count)]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    def seed(self, seed: int, step: int) -> None:
        """Seed all generators by seed, step and process, so that a resumed run need not store their states."""
        number = (seed * 1_000_003 + step) * 4099 + self.rank
        random.seed(number)
        np.random.seed(number % 2**32)
        torch.manual_seed(number % 2**63)


class _Gather(torch.autograd.Function):
    """Every process uses the rows of all. Backwards, a row's gradients are summed where the row came from."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, processes: Processes) -> Tensor:
        ctx.processes, ctx.count = processes, len(rows)
        return processes.gather_constants(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        total = gradients[0].clone()
        dist.all_reduce(total)
        first = ctx.processes.rank * ctx.count
        return total[first : first + ctx.count], None


def _buckets(gradients: list[Tensor]) -> Iterator[list[Tensor]]:
    """Yield gradients of one type that are sent together: few messages, little memory."""
    bucket: list[Tensor] = []
    size = 0
    for gradient in gradients:
        if bucket and (bucket[0].dtype != gradient.dtype or size > _BUCKET):
            yield bucket
            bucket = []
            size = 0
        bucket.append(gradient)
        size += gradient.numel()
    if bucket:
        yield bucket


@contextmanager
def start_processes(device: str = "") -> Iterator[Processes]:
    """Join the processes that a launcher started; without a launcher this process is alone."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes(torch.device(device or best_device()))
        return
    rank = int(os.environ["RANK"])
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if kind == "cuda":
        own = torch.device(kind, local_rank)
        torch.cuda.set_device(own)
    else:
        own = torch.device(kind)
    backend = "nccl" if own.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=_TIMEOUT)
    try:
        yield Processes(own, rank, count)
    finally:
        dist.destroy_process_group()


def is_first_process() -> bool:
    """Tell whether this process is the first of a launcher's, or the only one: the one that prints and searches."""
    return os.environ.get("RANK", "0") == "0"


def current_processes() -> Processes:
    """Return the processes as a task's loss sees them (for `gather`); one alone without a launcher."""
    if not dist.is_available() or not dist.is_initialized():
        return Processes(torch.device("cpu"))
    device = torch.device("cpu")
    if dist.get_backend() == "nccl":
        device = torch.device("cuda", torch.cuda.current_device())
    return Processes(device, dist.get_rank(), dist.get_world_size())


# Worker processes that make batches: Python code that takes long would share one core with the
# training step.

_AHEAD = (
    2  # batches that each worker makes ahead of need: a container may have little shared memory
)
_ADVICE = "Fewer may do: run the same command with --set train.workers=2, or 0 for none."

Place = tuple[int, int]
"""An epoch, and a batch's number in it."""


class BatchWorkers:
    """Workers that live as long as a run, over epochs: what a task caches in one epoch serves the next."""

    def __init__(
        self, batches: Callable[[int], Sequence[Any]], places: Iterable[Place], count: int
    ) -> None:
        """`batches` gives those of an epoch. `places` are made in their order; there may be no end of them."""
        make = _BatchMaker(batches).make
        self._workers: Workers[Place, Any] = Workers.forked(make, count, _ADVICE)
        self._batches = self._workers.map(places, _AHEAD)

    def take(self, count: int) -> Generator[Any, None, None]:
        """Yield the next `count` batches."""
        yield from islice(self._batches, count)

    def close(self) -> None:
        self._workers.close()


class _BatchMaker:
    """Makes batches by their places. Each worker has its own, which holds the epoch that it is in."""

    def __init__(self, batches: Callable[[int], Sequence[Any]]) -> None:
        self._batches = batches
        self._epoch = -1
        self._current: Sequence[Any] = ()

    def make(self, place: Place) -> Any:
        epoch, number = place
        if epoch != self._epoch:
            self._epoch = epoch
            self._current = self._batches(epoch)
        return self._current[number]
