"""One worker process: how it starts, what it serves, how its errors come back, how it ends."""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from typing import Any

from whichsense.errors import BadInput, WhichsenseError

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
        """The function's result for one item. Raises what the function raises, or WorkerLost."""
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
    code = "import sys; from whichsense.jobs.processes import _serve_fresh; _serve_fresh(*sys.argv[1:])"
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
    """The error as it can be pickled. One that cannot becomes a RuntimeError with its traceback."""
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
