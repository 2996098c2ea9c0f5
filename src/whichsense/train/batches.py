"""Batches: in an order that the epoch and the seed alone decide, made when they are needed, a few ahead."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, Generic, TypeVar, overload

Item = TypeVar("Item")
Batch = TypeVar("Batch")


def shuffled(count: int, size: int, epoch: int, seed: int, lengths: Sequence[int] | None = None) -> list[list[int]]:
    """The numbers below `count` in batches of `size`, in another order in each epoch.

    With `lengths`, batches hold items of about one length (shuffled first, sorted within stretches of 50 batches), so
    that little is spent on padding.

    >>> shuffled(5, 2, epoch=0, seed=1) == shuffled(5, 2, epoch=0, seed=1) != shuffled(5, 2, epoch=1, seed=1)
    True
    """
    dice = random.Random(f"{seed}/{epoch}")
    order = list(range(count))
    dice.shuffle(order)
    if lengths is not None:
        stretch = 50 * size
        pieces = [sorted(order[i : i + stretch], key=lengths.__getitem__) for i in range(0, count, stretch)]
        order = [number for piece in pieces for number in piece]
    batches = [order[start : start + size] for start in range(0, count, size)]
    if lengths is not None:
        dice.shuffle(batches)
    return batches


@dataclass(frozen=True, slots=True)
class Lazy(Sequence[Batch], Generic[Item, Batch]):
    """A sequence whose entries are made when they are asked for: resuming in mid-epoch skips without making."""

    items: Sequence[Item]
    make: Callable[[Item], Batch]

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, place: int) -> Batch: ...
    @overload
    def __getitem__(self, place: slice) -> Lazy[Item, Batch]: ...
    def __getitem__(self, place: int | slice) -> Batch | Lazy[Item, Batch]:
        if isinstance(place, slice):
            return Lazy(self.items[place], self.make)
        return self.make(self.items[place])


def own_share(batches: Iterable[Batch], rank: int, count: int, skip: int) -> Iterable[Batch]:
    """Every `count`-th batch from this process's first, without the `skip` that it has had. All get equally many."""
    if isinstance(batches, Sequence):
        whole = len(batches) // count * count
        found: Iterable[Batch] = batches[rank + skip * count : whole : count]
        return found
    return islice(_whole_rounds(batches, rank, count), skip, None)


def _whole_rounds(batches: Iterable[Batch], rank: int, count: int) -> Iterator[Batch]:
    stream = iter(batches)
    while len(round_ := list(islice(stream, count))) == count:
        yield round_[rank]


def grouped(batches: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    """Batches that make one step together; the last group of an epoch may be smaller."""
    stream = iter(batches)
    while group := list(islice(stream, size)):
        yield group


def ahead(items: Iterable[Item], count: int = 4, *, workers: int = 0) -> Generator[Item, None, None]:
    """The same items, made while the device works: by a thread, or a sequence's by so many processes, in its order.

    Making them must not touch the global random state.
    """
    if workers and isinstance(items, Sequence):
        yield from _in_processes(items, workers)
        return
    ready: Queue[tuple[bool, Any]] = Queue(count)
    over = Event()
    thread = Thread(target=_fill, args=(items, ready, over), daemon=True)
    thread.start()
    try:
        while True:
            more, value = ready.get()
            if more:
                yield value
            elif value is not None:
                raise value
            else:
                return
    finally:
        over.set()
        thread.join(timeout=5)


def _in_processes(items: Sequence[Item], workers: int) -> Iterator[Item]:
    import torch
    from torch.utils.data import DataLoader

    with warnings.catch_warnings():  # of threads, none of which the processes need, and of fewer cores than processes
        warnings.simplefilter("ignore")
        # Forked, as what makes the items may hold gigabytes and functions that cannot be sent.
        loader: DataLoader[Item] = DataLoader(
            items,  # type: ignore[arg-type]  # a sequence is all that is needed of a dataset
            batch_size=None,
            collate_fn=_as_it_is,  # else tuples would come as lists, and arrays as tensors
            num_workers=workers,
            multiprocessing_context="fork",
            prefetch_factor=2,
            generator=torch.Generator(),  # else its seed would be drawn from the global random state
        )
        ready = iter(loader)
    yield from ready


def _as_it_is(item: Item) -> Item:
    return item


def _fill(items: Iterable[Any], ready: Queue[tuple[bool, Any]], over: Event) -> None:
    def put(more: bool, value: Any) -> None:
        while not over.is_set():
            try:
                return ready.put((more, value), timeout=0.2)
            except Full:
                continue

    try:
        for item in items:
            put(True, item)
            if over.is_set():
                return
        put(False, None)
    except BaseException as error:  # handed to the one who waits for the item
        put(False, error)
