"""Processes that make batches, for tasks whose batches take Python long to make: a thread would share its one core."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader, Dataset

_READY = 4  # batches that each process makes ahead of need
Place = tuple[int, int]
"""An epoch, and a batch's number in it."""


def able(wanted: int) -> int:
    """How many processes may help: no more than cores, and none where a process cannot be forked safely."""
    if sys.platform != "linux":
        return 0
    return min(wanted, len(os.sched_getaffinity(0)))


class Crew:
    """They live as long as a run, over epochs: what a task remembers of one serves in the next."""

    def __init__(self, batches: Callable[[int], Sequence[Any]], places: Iterable[Place], count: int) -> None:
        """`batches` gives those of an epoch. `places` are made one after another; there may be no end of them."""
        self._loader: DataLoader[Any] = DataLoader(
            _Epochs(batches),
            sampler=places,
            batch_size=None,
            collate_fn=_as_it_is,
            num_workers=count,
            prefetch_factor=_READY,
            multiprocessing_context="fork",
            worker_init_fn=_deaf,
        )
        self._made: Iterator[Any] | None = None

    def take(self, count: int) -> Generator[Any, None, None]:
        """The next so many batches."""
        if self._made is None:
            with warnings.catch_warnings():  # of threads, none of which they need: they only make batches
                warnings.simplefilter("ignore", DeprecationWarning)
                self._made = iter(self._loader)
        yield from islice(self._made, count)

    def dismiss(self) -> None:
        self._made = None


class _Epochs(Dataset[Any]):
    """Batches by their places. Each process has its own, and remembers the epoch that it is in."""

    def __init__(self, batches: Callable[[int], Sequence[Any]]) -> None:
        self.batches = batches
        self.epoch = -1
        self.current: Sequence[Any] = ()

    def __getitem__(self, place: Place) -> Any:
        epoch, number = place
        if epoch != self.epoch:
            self.epoch, self.current = epoch, self.batches(epoch)
        return self.current[number]


def _as_it_is(batch: Any) -> Any:
    return batch


def _deaf(number: int) -> None:
    """Ctrl-C reaches all processes of a terminal; the first one decides, after a step that needs batches."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
