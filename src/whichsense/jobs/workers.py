"""Worker processes: started fresh, given work by name, replaced when they hang or die."""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from typing import Any, Generic, Protocol, TypeVar

from whichsense.errors import BadInput, WhichsenseError

# One worker process: how it starts, what it serves, how its errors come back, how it ends.

_READY = "ready"
_WATCH_SECONDS = 2.0  # how often a worker checks that its parent lives


class WorkerLost(BadInput):
    """A worker process died or took too long."""


@dataclass(frozen=True, slots=True)
class StartedProcess:
    """A process that runs, and this process's end of the connection to it."""

    connection: Connection
    kill: Callable[[], None]


class Worker:
    """One process. With `start`, it is started when it is first needed, and again after it was lost."""

    def __init__(
        self,
        started: StartedProcess | None,
        start: Callable[[], StartedProcess] | None,
        advice: str = "",
    ) -> None:
        self._started = started
        self._start = start
        self._advice = advice
        self._lock = threading.Lock()
        self._closed = False

    def ask(self, item: Any, seconds: float | None) -> Any:
        """Return the function's result for one item. Raises what the function raises, or WorkerLost."""
        connection = self._connect()
        reply = None
        if connection is not None:
            with suppress(OSError, EOFError, pickle.UnpicklingError):
                connection.send(item)
                if connection.poll(seconds):
                    reply = connection.recv()
        if reply is None:
            self.end()
            raise WorkerLost(
                f"A worker process was ended; was there too little memory? {self._advice}".rstrip()
            )
        succeeded, result = reply
        if not succeeded:
            raise result
        return result

    def _connect(self) -> Connection | None:
        with self._lock:
            if self._started is None and self._start and not self._closed:
                self._started = self._start()
            return self._started.connection if self._started else None

    def end(self, for_good: bool = False) -> None:
        with self._lock:
            started, self._started = self._started, None
            self._closed = self._closed or for_good
        if started is not None:
            started.kill()
            started.connection.close()


def fork(work: Callable[[Any], Any]) -> StartedProcess:
    ours, theirs = Pipe()
    process = get_context("fork").Process(
        target=_serve, args=(work, theirs, os.getpid()), daemon=True
    )
    with _fork_warnings_ignored():
        process.start()
    theirs.close()  # so that this process sees the end of the connection when the worker dies

    def kill() -> None:
        process.kill()
        process.join()

    return StartedProcess(ours, kill)


def start_interpreter(function: str) -> StartedProcess:
    ours, theirs = socket.socketpair()
    code = (
        "import sys; from whichsense.jobs.workers import _serve_fresh; _serve_fresh(*sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(theirs.fileno()), str(os.getpid()), function],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # Ctrl-C is for the parent, which ends its workers in order
    )
    theirs.close()
    connection = Connection(ours.detach())

    def kill() -> None:
        process.kill()
        process.wait()

    # The time that the interpreter takes to start does not count as an item's time.
    ready = None
    with suppress(OSError, EOFError, pickle.UnpicklingError):
        ready = connection.recv()
    if ready != _READY:
        kill()
        connection.close()
        raise WhichsenseError(
            f"'{sys.executable}' cannot run whichsense in a worker process. Reinstall it."
        )
    return StartedProcess(connection, kill)


def _serve_fresh(connection: str, parent: str, function: str) -> None:
    """The main function of a fresh interpreter: serve the function of this name."""
    module, name = function.split(":")
    work = getattr(importlib.import_module(module), name)
    channel = Connection(int(connection))
    channel.send(_READY)
    _serve(work, channel, int(parent))


def _serve(work: Callable[[Any], Any], connection: Connection, parent: int) -> None:
    """The worker's side: items in, results out, until the connection or the parent ends."""
    # Ctrl-C and a batch system's SIGTERM reach all processes. The parent decides and kills its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if "torch" in sys.modules:  # a forked copy lacks the threads that torch counts on
        sys.modules["torch"].set_num_threads(1)
    while True:
        try:
            item = connection.recv()
        except (EOFError, OSError):
            return
        try:
            reply = (True, work(item))
        except Exception as error:
            reply = (False, _portable(error))
        try:
            connection.send(reply)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            connection.send((False, _portable(error)))


def _watch(parent: int) -> None:
    """End this process, even in the middle of an item, when its parent is gone."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)


def _portable(error: Exception) -> Exception:
    """Return the error as it can be pickled. One that cannot becomes a RuntimeError with its traceback."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(text)
    if not isinstance(error, WhichsenseError):
        error.add_note(f"In a worker process:\n{text}")
    return error


@contextmanager
def _fork_warnings_ignored() -> Iterator[None]:
    """Python warns when a process with threads forks. The workers need none of these threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


# Worker processes: one pool for forked copies of this process and for fresh interpreters.
#
# A forked worker shares the memory of its parent, so that it can read a large index or a closure
# without a copy. It is for Linux only. A fresh interpreter imports its function by name. It does not
# import the caller's main module, so that a script needs no `if __name__` guard, and it is replaced
# when it hangs or dies.

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
    """Apply the function in this process, one item after another."""
    for item in items:
        yield item, work(item)


def run_forked(processes: int) -> Executor:
    """Return an executor of forked workers; it runs in this process where fewer than two can work."""

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
    """Return the executor of `spread_over`, or else forked workers. What the work needs travels, or is `LoadedOnce`."""
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
    """Return how many forked workers may run: at most this process's share of the cores, and 0 where forking is not
    safe.
    """
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
            thread = threading.Thread(target=_feed, args=(worker, self._jobs), daemon=True)
            thread.start()
            self._threads.append(thread)

    @classmethod
    def forked(
        cls, work: Callable[[Item], Result], count: int, advice: str = ""
    ) -> Workers[Item, Result]:
        """Copies of this process. `advice` ends the error that is raised where one of them dies."""
        workers = [Worker(fork(work), None, advice) for _ in range(count)]
        return cls(workers)

    @classmethod
    def fresh(cls, function: str, count: int) -> Workers[Any, Any]:
        """New interpreters that import `function`, written 'module:name'. They start when first needed."""
        workers = [Worker(None, lambda: start_interpreter(function)) for _ in range(count)]
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
        """Yield results in the order of the items, of which there may be no end. `ahead` items for each worker are
        begun before their results are asked for.
        """
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(self.submit(item))
            if len(waiting) > ahead * len(self._workers):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def as_completed(self, items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result, as they are completed."""
        pending = {self.submit(item): item for item in items}
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
