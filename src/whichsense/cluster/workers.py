"""An executor on a cluster: workers that keep what they load, and of which any may die."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from whichsense.cluster.connection import Cluster
from whichsense.errors import ClusterFault
from whichsense.jobs.workers import Executor

Item = TypeVar("Item")
Result = TypeVar("Result")

# An item that is lost this often kills its worker itself, by its memory for example.
_ATTEMPTS = 20
_PAUSE = 0.2  # seconds before a worker that is being started again is asked once more
_PATIENCE = 120.0  # seconds in which none could be started


class _Worker:
    """Runs in a process of its own, on any node. Threads of native code are limited to its share of the cores.

    It works in the folder of the command, where its node has that: relative paths mean the same there.
    """

    def __init__(self, work: Callable[[Any], Any], folder: str) -> None:
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
    if gpus > cluster.gpus:
        raise ClusterFault(
            f"Workers with {gpus:g} GPUs each: the cluster has {cluster.gpus:g}. "
            "Start Ray on a machine that has some, or leave out --gpus."
        )
    usual = int(cluster.gpus / gpus) if gpus else cluster.cpus

    def execute(
        work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Result]]:
        import ray

        count = min(workers or usual, len(items))
        worker = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=-1)(_Worker)
        crew = [worker.remote(work, os.getcwd()) for _ in range(count)]
        try:
            yield from _spread(ray, crew, items)
        finally:
            for actor in crew:
                ray.kill(actor)

    return execute


def _spread(
    ray: Any, crew: Sequence[Any], items: Sequence[Item]
) -> Iterator[tuple[Item, Any]]:
    waiting = deque((number, 1) for number in range(len(items)))
    running: dict[Any, tuple[int, int, Any]] = {}
    # Those that are being started get work when they answer: for some, the cluster may never have room.
    starting = {actor.answer.remote(): actor for actor in crew}
    free: deque[Any] = deque()
    failing_since = 0.0
    while waiting or running:
        while waiting and free:
            number, attempt = waiting.popleft()
            actor = free.popleft()
            running[actor.do.remote(items[number])] = (number, attempt, actor)
        # A timeout, so that Ctrl-C is heard.
        ready, _ = ray.wait([*running, *starting], num_returns=1, timeout=1.0)
        for ref in ready:
            if ref in starting:
                actor = starting.pop(ref)
                fault = _fault(ray, ref)
                if fault is None:
                    free.append(actor)
                    failing_since = 0.0
                    continue
                failing_since = failing_since or time.monotonic()
                if not running and time.monotonic() - failing_since > _PATIENCE:
                    raise ClusterFault(
                        f"No worker could be started for {_PATIENCE:g} seconds: {fault} "
                        "Mend that and run the same command again: it resumes."
                    )
                time.sleep(_PAUSE)
                starting[actor.answer.remote()] = actor
                continue
            number, attempt, actor = running.pop(ref)
            try:
                result = ray.get(ref)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except ray.exceptions.RayError as error:
                if attempt == _ATTEMPTS:
                    raise ClusterFault(
                        f"A worker was lost {_ATTEMPTS} times over one piece of work: {_reason(error)} "
                        "Does it have too little memory? Run the same command again on larger machines: it resumes."
                    ) from None
                waiting.appendleft((number, attempt + 1))
                starting[actor.answer.remote()] = actor
                continue
            free.append(actor)
            yield items[number], result


def _fault(ray: Any, ref: Any) -> str | None:
    """Why a worker did not answer; None where it did."""
    try:
        ray.get(ref)
    except ray.exceptions.RayError as error:
        return _reason(error)
    return None


def _reason(error: BaseException) -> str:
    return str(error).strip().splitlines()[-1][:200]
