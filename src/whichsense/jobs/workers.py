"""Processes that help: with batches that take Python long to make, where a thread would share its one core, and with
other work that falls into parts."""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import active_children, get_context
from threading import Thread
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from whichsense.errors import BadInput, WhichsenseError

_READY = 2  # batches that each process makes ahead of need: a container may have little shared memory
_WATCH = 2.0  # seconds
Place = tuple[int, int]
"""An epoch, and a batch's number in it."""


def able(wanted: int) -> int:
    """How many processes may help: no more than cores, which all that a launcher started here share, and none where a
    process cannot be forked safely."""
    if sys.platform != "linux":
        return 0
    return min(
        wanted,
        max(
            1,
            len(os.sched_getaffinity(0))
            // int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        ),
    )


class Crew:
    """They live as long as a run, over epochs: what a task remembers of one serves in the next."""

    def __init__(
        self,
        batches: Callable[[int], Sequence[Any]],
        places: Iterable[Place],
        count: int,
    ) -> None:
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
            with _unwarned():
                self._made = iter(self._loader)
        try:
            for batch in islice(self._made, count):
                if isinstance(batch, WhichsenseError):
                    raise batch
                yield batch
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            advice = "Fewer of them may do: run the same command with --set train.workers=2, or 0 for none."
            raise BadInput(
                f"A process that makes batches was ended; was there too little memory? {advice}"
            ) from None

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
        try:
            return self.current[number]
        except (
            WhichsenseError
        ) as error:  # handed over as it is: it says all that a person needs
            return error


def side_by_side(
    work: Callable[[int], None], numbers: Sequence[int], processes: int
) -> Iterator[int]:
    """Work that leaves its results in files, by its numbers: done by copies of this process, or here. Gives numbers as
    they are done. Stopped, it loses what is in hand."""
    several = min(able(processes), len(numbers))
    if several < 2:
        for number in numbers:
            work(number)
            yield number
        return
    before = set(active_children())
    under_way: list[Future[int]] = []
    with ProcessPoolExecutor(
        several, get_context("fork"), _begin, (work, os.getpid())
    ) as pool:
        try:
            with _unwarned():
                under_way += [pool.submit(_do, number) for number in numbers]
            for one in as_completed(under_way):
                yield one.result()
        except BrokenProcessPool:
            raise BadInput(
                "A process was ended from outside; was there too little memory? Run the same command again: it goes "
                f"on. With fewer cores it needs less memory: taskset -c 0-{several // 2 - 1} whichsense …"
            ) from None
        except BaseException:
            for one in under_way:
                one.cancel()
            for child in set(active_children()) - before:
                child.terminate()
            raise


_work: list[Callable[[int], None]] = []  # of a process: what it was forked for


def _begin(work: Callable[[int], None], parent: int) -> None:
    """Ctrl-C reaches all processes of a terminal: the first one decides, and ends these. Torch's threads are not in a
    copy, and a copy that is left behind ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    Thread(target=_watch, args=(parent,), daemon=True).start()
    _work.append(work)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)


def _do(number: int) -> int:
    _work[-1](number)
    return number


@contextmanager
def _unwarned() -> Iterator[None]:
    """A process that has threads is not forked without a warning; none of these threads is needed in the copies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _as_it_is(batch: Any) -> Any:
    return batch


def _deaf(number: int) -> None:
    """Ctrl-C and a batch system's end reach all processes; the first one decides, after a step that needs batches."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
