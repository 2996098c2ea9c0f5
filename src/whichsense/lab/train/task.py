"""What the loop asks of a task, and how a task makes batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, Generic, Protocol, TypeVar, overload

from torch import Tensor, nn

from whichsense.types import frozen

# What the training loop asks of a task. `whichsense.lab.train` tells how to write one.

ModelT = TypeVar("ModelT", bound=nn.Module)
BatchT = TypeVar("BatchT")
OptionsT = TypeVar("OptionsT")
Loss = Tensor | tuple[Tensor, Mapping[str, float | Tensor]]
"""The mean loss of a batch; with it, if wanted, its parts for the log."""


class Task(Protocol[ModelT, BatchT]):
    """Something to train. The loop asks for nothing else."""

    metric: str
    """The key of `evaluate` that selects the best model."""
    higher_is_better: bool
    options: Any
    """A recipe's tables, if it has some."""

    def build(self) -> ModelT:
        """Build the model with the weights that training starts from. Random weights must follow torch's seed."""

    def batches(self, epoch: int, seed: int) -> Iterable[BatchT]:
        """The batches of an epoch, decided by `epoch` and `seed` alone. A Sequence is skipped through for free."""

    def loss(self, model: ModelT, batch: BatchT) -> Loss:
        """Return the mean loss of a batch, whose tensors are on the model's device."""

    def evaluate(self, model: ModelT) -> Mapping[str, float]:
        """Compute the task's metrics, without gradients; the model is in evaluation mode."""

    def save(self, model: ModelT, folder: Path) -> None:
        """Write the model as it is used later: weights, tokenizer, settings."""

    def data(self) -> Sequence[Path]:
        """Return the files that it learns from, whose checksums go into the run's record: those of its options."""
        paths: Sequence[Path] = self.options.data.paths()
        return paths

    def finish(self, folder: Path) -> None:
        """Make what is made once, when training is over, of the best model in `folder`. Most tasks need nothing."""
        return


@frozen
class TaskSpec(Generic[OptionsT]):
    """A task as the catalogue knows it."""

    options: type[OptionsT]
    """A frozen dataclass: the recipe's tables other than `[train]`."""
    build: Callable[[OptionsT], Task[Any, Any]]


# Batches: in an order that the epoch and the seed alone decide, made when they are needed, a few
# ahead.

Item = TypeVar("Item")
Batch = TypeVar("Batch")
_STRETCH = 50  # batches within which items are sorted by length


def shuffle_batches(
    count: int, size: int, epoch: int, seed: int, lengths: Sequence[int] | None = None
) -> list[list[int]]:
    """Return the numbers below `count` in batches of `size`, in another order in each epoch.

    With `lengths`, batches hold items of about one length (shuffled first, sorted within stretches of 50 batches), so
    that little is spent on padding.

    >>> shuffle_batches(5, 2, epoch=0, seed=1) == shuffle_batches(5, 2, epoch=0, seed=1)
    True
    >>> shuffle_batches(5, 2, epoch=0, seed=1) == shuffle_batches(5, 2, epoch=1, seed=1)
    False
    """
    rng = random.Random(f"{seed}/{epoch}")
    order = list(range(count))
    rng.shuffle(order)
    if lengths is not None:
        order = _sort_stretches(order, lengths, _STRETCH * size)
    batches = [order[start : start + size] for start in range(0, count, size)]
    if lengths is not None:
        # The sorted order would show short items first in every stretch.
        rng.shuffle(batches)
    return batches


def _sort_stretches(order: Sequence[int], lengths: Sequence[int], stretch: int) -> list[int]:
    result: list[int] = []
    for start in range(0, len(order), stretch):
        numbers = order[start : start + stretch]
        result += sorted(numbers, key=lengths.__getitem__)
    return result


@frozen
class Lazy(Sequence[Batch], Generic[Item, Batch]):
    """A sequence whose entries are made on access: a run that resumes in mid-epoch skips without making."""

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


def shard_batches(batches: Iterable[Batch], rank: int, count: int, skip: int) -> Iterable[Batch]:
    """Every `count`-th batch from number `rank`, without the first `skip` of them. All ranks get equally many."""
    if isinstance(batches, Sequence):
        whole = len(batches) // count * count
        shard: Iterable[Batch] = batches[rank + skip * count : whole : count]
        return shard
    return islice(_whole_rounds(batches, rank, count), skip, None)


def _whole_rounds(batches: Iterable[Batch], rank: int, count: int) -> Iterator[Batch]:
    stream = iter(batches)
    while len(round_ := list(islice(stream, count))) == count:
        yield round_[rank]


def group_batches(batches: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    """Yield batches that make one step together; the last group of an epoch may be smaller."""
    stream = iter(batches)
    while group := list(islice(stream, size)):
        yield group


def prefetch(items: Iterable[Item], count: int = 4) -> Generator[Item, None, None]:
    """The same items, made by a thread while the device works. Making them must not touch the global random state."""
    # Queue entries: (True, item), (False, error) or, at the end, (False, None).
    ready: Queue[tuple[bool, Any]] = Queue(count)
    over = Event()
    thread = Thread(target=_fill, args=(items, ready, over), daemon=True)
    thread.start()
    try:
        while True:
            has_item, value = ready.get()
            if has_item:
                yield value
            elif value is not None:
                raise value
            else:
                return
    finally:
        over.set()
        thread.join(timeout=5)


def _fill(items: Iterable[Any], ready: Queue[tuple[bool, Any]], over: Event) -> None:
    def put(has_item: bool, value: Any) -> None:
        # With a timeout, as nobody may take from a full queue any more.
        while not over.is_set():
            try:
                return ready.put((has_item, value), timeout=0.2)
            except Full:
                continue

    try:
        for item in items:
            put(True, item)
            if over.is_set():
                return
        put(False, None)
    except BaseException as error:  # raised where the item is awaited
        put(False, error)
