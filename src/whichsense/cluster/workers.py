"""An executor on a cluster: workers that keep what they load, and of which any may die."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from whichsense.cluster.connection import Cluster
from whichsense.errors import BadInput, ClusterFault
from whichsense.jobs.workers import Executor

Item = TypeVar("Item")
Result = TypeVar("Result")

# An item that is lost this often kills its worker itself, by its memory for example.
_ATTEMPTS = 20
_PAUSE = 0.5  # seconds before another worker is hired for one that could not be started
_PATIENCE = 120.0  # seconds in which none could be started
_NO_ROOM = 600.0  # seconds in which the cluster had no room for any: a machine takes minutes to join


class _Worker:
    """Runs in a process of its own, on any node. Threads of native code are limited to its share of the cores.

    It works in the folder of the command, where its node has that: relative paths mean the same there.
    """

    def __init__(self, work: Callable[[Any], Any], folder: str, gpus: float) -> None:
        if not gpus:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray would leave all of them to it
        with contextlib.suppress(OSError):
            os.chdir(folder)
        self._work = work

    def do(self, item: Any) -> Any:
        return self._work(item)

    def answer(self) -> None:
        """Nothing: a worker that answers is there."""


def run_on(cluster: Cluster, workers: int | None = None, gpus: float = 0) -> Executor:
    """An executor of workers on a cluster: one for each core, or as many as are given.

    `gpus` of each worker may be a fraction: then several share one. A worker that dies is started again, and its item
    is done once more. What the function raises is raised here.
    """
    if gpus > 1 and gpus != int(gpus):
        raise BadInput(f"{gpus:g} GPUs: give a whole number, or a part of one.")
    if gpus > cluster.gpus_of_a_node:
        raise ClusterFault(
            f"Workers with {gpus:g} GPUs each: a machine of the cluster has at most {cluster.gpus_of_a_node:g}. "
            "Start Ray on one that has more, or change --gpus."
        )
    usual = int(cluster.gpus / gpus) if gpus else cluster.cpus

    def execute(
        work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result]]:
        import ray

        worker = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=-1)(_Worker)

        def hire() -> Any:
            return worker.remote(work, os.getcwd(), gpus)

        crew = _Crew(ray, hire, min(workers or usual, len(items)))
        try:
            yield from crew.do(items)
        finally:
            crew.dismiss()

    return execute


class _Crew:
    """The workers of a job: each is starting, free, or at work.

    One that is starting gets work when it answers: the cluster may not have room for it. Ray starts those again that
    die; one that cannot be started is gone for good, and another is hired.
    """

    def __init__(self, ray: Any, hire: Callable[[], Any], count: int) -> None:
        self._ray = ray
        self._hire = hire
        self._starting: dict[Any, Any] = {}  # by the answer that is waited for
        self._free: deque[Any] = deque()
        self._running: dict[Any, tuple[int, int, Any]] = {}  # item, attempt, worker
        self._idle_since = time.monotonic()  # since when nobody has worked
        for _ in range(count):
            self._start(hire())

    def do(self, items: Sequence[Item]) -> Iterator[tuple[Item, Any]]:
        waiting = deque((number, 1) for number in range(len(items)))
        while waiting or self._running:
            while waiting and self._free:
                number, attempt = waiting.popleft()
                worker = self._free.popleft()
                self._running[worker.do.remote(items[number])] = number, attempt, worker
            if self._running:
                self._idle_since = time.monotonic()
            for ref in self._ready():
                if ref in self._starting:
                    self._take_answer(ref)
                    continue
                number, attempt, worker = self._running.pop(ref)
                try:
                    result = self._ray.get(ref)
                except self._ray.exceptions.RayTaskError as error:
                    raise error.cause from None
                except self._ray.exceptions.RayError as error:
                    if attempt == _ATTEMPTS:
                        raise ClusterFault(
                            f"A worker was lost {_ATTEMPTS} times over one piece of work: {_reason(error)} "
                            "Does it have too little memory? Run the same command again on larger machines: it resumes."
                        ) from None
                    waiting.appendleft((number, attempt + 1))
                    self._start(worker)
                    continue
                self._free.append(worker)
                yield items[number], result

    def dismiss(self) -> None:
        at_work = [worker for _, _, worker in self._running.values()]
        for worker in (*self._starting.values(), *self._free, *at_work):
            self._ray.kill(worker)

    def _start(self, worker: Any) -> None:
        self._starting[worker.answer.remote()] = worker

    def _ready(self) -> list[Any]:
        refs = [*self._running, *self._starting]
        # A timeout, so that Ctrl-C is heard.
        ready: list[Any] = self._ray.wait(refs, num_returns=1, timeout=1.0)[0]
        if not ready and time.monotonic() - self._idle_since > _NO_ROOM:
            raise ClusterFault(
                f"The cluster had no room for a worker for {_NO_ROOM / 60:g} minutes. `ray status` says who uses it. "
                "Run the same command again when it is free: it resumes."
            )
        return ready

    def _take_answer(self, ref: Any) -> None:
        worker = self._starting.pop(ref)
        try:
            self._ray.get(ref)
        except self._ray.exceptions.ActorDiedError as error:
            if time.monotonic() - self._idle_since > _PATIENCE:
                raise ClusterFault(
                    f"No worker could be started for {_PATIENCE:g} seconds: {_reason(error)} "
                    "Mend that and run the same command again: it resumes."
                ) from None
            time.sleep(_PAUSE)
            self._start(self._hire())
        except self._ray.exceptions.RayError:
            self._start(worker)  # it died once more, and Ray starts it again
        else:
            self._free.append(worker)


def _reason(error: BaseException) -> str:
    return str(error).strip().splitlines()[-1][:200]
