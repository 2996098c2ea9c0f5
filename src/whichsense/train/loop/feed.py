"""The batches of one process: its share of an epoch, made ahead of need by a thread or by worker processes."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, Generic

from whichsense.errors import BadConfig
from whichsense.jobs.workers import usable_processes
from whichsense.train.loop.batches import prefetch, shard_batches
from whichsense.train.loop.processes import Processes
from whichsense.train.loop.settings import Settings
from whichsense.train.loop.task import BatchT, ModelT, Task
from whichsense.train.loop.workers import BatchWorkers, Place


class BatchFeed(Generic[ModelT, BatchT]):
    """Gives a run its batches. Worker processes are started once and live as long as the run."""

    def __init__(
        self, task: Task[ModelT, BatchT], settings: Settings, processes: Processes
    ) -> None:
        self._task = task
        self._settings = settings
        self._processes = processes
        self._workers: BatchWorkers | None = None

    def batches(self, epoch: int) -> Any:
        """All batches of an epoch: an Iterable, mostly a Sequence."""
        return self._task.batches(epoch, self._settings.seed)

    def remaining(
        self, batches: Iterable[BatchT], epoch: int, position: int
    ) -> Generator[BatchT, None, None]:
        """This process's share of an epoch's batches, after the first `position` steps."""
        shard = self._shard(batches, position)
        count = usable_processes(self._settings.workers)
        if not count or not isinstance(shard, Sequence) or not shard:
            return prefetch(shard)
        if self._workers is None:
            # Workers are forked: what a task computes once must be there before they are.
            shard[0]
            places = self._places(epoch, position)
            self._workers = BatchWorkers(self.batches, places, count)
        return self._workers.take(len(shard))

    def total_steps(self, batches: Iterable[BatchT]) -> int:
        """The steps of the whole run, which the learning rate's schedule needs."""
        settings = self._settings
        if not settings.epochs:
            return settings.steps
        if not isinstance(batches, Sequence):
            raise BadConfig(
                "This task does not know how long an epoch is: give train.steps in place of train.epochs."
            )
        own_batches = len(batches) // self._processes.count
        total = settings.epochs * math.ceil(own_batches / settings.accumulate)
        return min(total, settings.steps or total)

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()

    def _places(self, epoch: int, position: int) -> Iterator[Place]:
        """The places of this process's batches from here on, without end."""
        while True:
            numbers = range(len(self.batches(epoch)))
            for number in self._shard(numbers, position):
                yield epoch, number
            epoch += 1
            position = 0

    def _shard(self, batches: Iterable[Any], position: int) -> Iterable[Any]:
        rank, count = self._processes.rank, self._processes.count
        skip = position * self._settings.accumulate
        return shard_batches(batches, rank, count, skip)
