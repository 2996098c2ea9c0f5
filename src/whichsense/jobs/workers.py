"""Worker processes: one pool for forked copies of this process and for fresh interpreters.

A forked worker shares the memory of its parent, so that it can read a large index or a closure without a copy. It is
for Linux only. A fresh interpreter imports its function by name. It does not import the caller's main module, so that
a script needs no `if __name__` guard, and it is replaced when it hangs or dies.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing.util import Finalize
from typing import Any, Generic, Protocol, TypeVar

from whichsense.jobs.processes import Worker, fork, start_interpreter

Item = TypeVar("Item")
Result = TypeVar("Result")
Loaded_co = TypeVar("Loaded_co", covariant=True)


class Executor(Protocol):
    """Applies a function to items, in any order and anywhere: here, in processes, on a cluster."""

    def __call__(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result]]: ...


def run_here(
    work: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[tuple[Item, Result]]:
    """The executor that runs in this process, one item after another."""
    for item in items:
        yield item, work(item)


def run_forked(processes: int) -> Executor:
    """An executor of forked workers; it runs in this process where fewer than two can work."""

    def execute(
        work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result]]:
        count = min(usable_processes(processes), len(items))
        if count < 2:
            yield from run_here(work, items)
            return
        advice = (
            "Run the same command again: it resumes. With fewer cores it needs less "
            f"memory: taskset -c 0-{count // 2 - 1} whichsense …"
        )

        def work_on(number: int) -> Result:
            return work(items[number])  # the items came with the fork

        with Workers.forked(work_on, count, advice) as workers:
            for number, result in workers.as_completed(range(len(items))):
                yield items[number], result

    return execute


_elsewhere: ContextVar[Executor | None] = ContextVar("elsewhere", default=None)


@contextmanager
def spread_over(executor: Executor) -> Iterator[None]:
    """Within the block, work that can travel (`run_spread`) is done by this executor."""
    token = _elsewhere.set(executor)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def run_spread(processes: int) -> Executor:
    """The executor of `spread_over`, or else forked workers. What the work needs travels, or is `LoadedOnce`."""
    return _elsewhere.get() or run_forked(processes)


class LoadedOnce(Generic[Loaded_co]):
    """A model or an index that is loaded where it is first used, and kept. It travels unloaded."""

    def __init__(self, load: Callable[[], Loaded_co]) -> None:
        self._load = load
        self._loaded: Loaded_co | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_load": self._load, "_loaded": None}

    def __call__(self) -> Loaded_co:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded


def usable_processes(wanted: int) -> int:
    """How many forked workers may run: at most this process's share of the cores, and 0 where forking is not safe."""
    if sys.platform != "linux":
        return 0
    cores = len(os.sched_getaffinity(0))
    # All processes that a launcher (torchrun) starts on this machine share its cores.
    launched = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return min(wanted, max(1, cores // launched))


class Workers(Generic[Item, Result]):
    """Processes that apply one function to items. Use it in a `with` block, which ends them.

    One thread of this process feeds each worker, so that workers stay busy while the caller does something else.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers
        # None ends the thread that takes it.
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        # An interpreter that exits waits for its children: they must have been ended before.
        self._end = Finalize(self, _end_all, args=(workers,), exitpriority=10)
        for worker in workers:
            thread = threading.Thread(
                target=_feed, args=(worker, self._jobs), daemon=True
            )
            thread.start()
            self._threads.append(thread)

    @classmethod
    def forked(
        cls, work: Callable[[Item], Result], count: int, advice: str = ""
    ) -> Workers[Item, Result]:
        """Copies of this process. `advice` ends the error that is raised where one of them dies."""
        workers = []
        for _ in range(count):
            started = fork(work)
            workers.append(Worker(started, None, advice))
        return cls(workers)

    @classmethod
    def fresh(cls, function: str, count: int) -> Workers[Any, Any]:
        """New interpreters that import `function`, written 'module:name'. They start when first needed."""
        workers = []
        for _ in range(count):
            workers.append(Worker(None, lambda: start_interpreter(function)))
        return Workers(workers)

    def __enter__(self) -> Workers[Item, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, item: Item, seconds: float | None = None) -> Future[Result]:
        """Queue an item. The future raises WorkerLost if it takes over `seconds` once it is begun."""
        future: Future[Result] = Future()
        self._jobs.put(_Job(future, item, seconds))
        return future

    def map(self, items: Iterable[Item], ahead: int = 2) -> Iterator[Result]:
        """Results in the order of the items, of which there may be no end. `ahead` items for each worker are begun
        before their results are asked for."""
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(self.submit(item))
            if len(waiting) > ahead * len(self._workers):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def as_completed(self, items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
        """Each item with its result, as they are completed."""
        pending: dict[Future[Result], Item] = {}
        for item in items:
            pending[self.submit(item)] = item
        while pending:
            completed, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in completed:
                item = pending.pop(future)  # results that were handed out are let go
                yield item, future.result()

    def close(self) -> None:
        """End all workers at once. Items that were not begun are dropped."""
        with suppress(queue.Empty):
            while job := self._jobs.get_nowait():
                job.future.cancel()
        for _ in self._threads:
            self._jobs.put(None)
        self._end()
        for thread in self._threads:
            thread.join(0.5)  # its process is gone, so that it ends at once


@dataclass(frozen=True, slots=True)
class _Job:
    future: Future[Any]
    item: Any
    seconds: float | None


def _end_all(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.end(for_good=True)


def _feed(worker: Worker, jobs: queue.SimpleQueue[_Job | None]) -> None:
    """Hand jobs to one worker until None comes."""
    while (job := jobs.get()) is not None:
        if not job.future.set_running_or_notify_cancel():
            continue
        try:
            job.future.set_result(worker.ask(job.item, job.seconds))
        except BaseException as error:
            job.future.set_exception(error)
