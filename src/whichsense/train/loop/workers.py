"""Worker processes that make batches: Python code that takes long would share one core with the training step."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from typing import Any

from whichsense.jobs.workers import Workers

_AHEAD = 2  # batches that each worker makes ahead of need: a container may have little shared memory
_ADVICE = (
    "Fewer may do: run the same command with --set train.workers=2, or 0 for none."
)

Place = tuple[int, int]
"""An epoch, and a batch's number in it."""


class BatchWorkers:
    """Workers that live as long as a run, over epochs: what a task caches in one epoch serves the next."""

    def __init__(
        self,
        batches: Callable[[int], Sequence[Any]],
        places: Iterable[Place],
        count: int,
    ) -> None:
        """`batches` gives those of an epoch. `places` are made in their order; there may be no end of them."""
        make = _BatchMaker(batches).make
        self._workers: Workers[Place, Any] = Workers.forked(make, count, _ADVICE)
        self._batches = self._workers.map(places, _AHEAD)

    def take(self, count: int) -> Generator[Any, None, None]:
        """The next `count` batches."""
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
