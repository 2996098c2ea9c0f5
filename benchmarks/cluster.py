"""A cluster of several nodes in processes of this machine: predictions by some workers, and searches while actors die.

    python benchmarks/cluster.py predict --folder work [--questions 200] [--workers 1 2 4] [--index DIR] [--out FILE]
    python benchmarks/cluster.py chaos --index DIR [--seconds 300] [--every 2] [--out FILE]
    python benchmarks/cluster.py overhead SOURCE… --folder work [--workers 1] [--questions 300] [--out FILE]

`predict` compares each file with that of one process (`alone.json`, which is used again), and gives the rates: with
the loading of models, and from the moment when as many batches were done as there are workers, so that all are loaded.
All use one thread each: run it with OMP_NUM_THREADS=1, on a machine that does nothing else, and see `busy_cores`.
`chaos` kills an actor of a sharded index every few seconds while it is searched: a hit list that says it is complete
must be the right one, and every search must end. `overhead` builds and searches by words, plainly and with a shard for
each worker; `empty_call_p50_ms` is what Ray takes for a request that does nothing. A plain build uses two cores, and a
worker is meant to have one: `taskset -c 0` gives both the same.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster as Nodes

from whichsense import sample
from whichsense.index import Index, Spread
from whichsense.index.cluster import ClusterIndex, connect, run_on
from whichsense.index.shards import coverage_of
from whichsense.jobs.workers import Executor, LoadedOnce, run_here
from whichsense.lab.datasets import load
from whichsense.lab.evaluation.prediction import predict
from whichsense.lab.provenance import provenance
from whichsense.systems import build, built_answerer, describe, load_settings
from whichsense.types import FOR_BENCHMARKS, Hit

BATCH = 4


def start_nodes(count: int) -> Any:
    """Nodes of one core each."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1})
    for _ in range(count - 1):
        nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    return nodes


class _Clock:
    """An executor that notes when each batch was done, and how busy the machine was."""

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor = executor
        self._workers = workers
        self._began = time.perf_counter()
        self._cores_began = _core_seconds()
        self._questions: list[int] = []  # of each batch
        self._moments: list[float] = []

    def __call__(self, work: Any, items: Any) -> Iterator[tuple[Any, Any]]:
        for item, result in self._executor(work, items):
            self._questions.append(len(item))
            self._moments.append(time.perf_counter())
            yield item, result

    def rates(self) -> dict[str, Any]:
        seconds = self._moments[-1] - self._began
        rates = {
            "seconds": seconds,
            "questions_a_second": sum(self._questions) / seconds,
            "busy_cores": (_core_seconds() - self._cores_began) / seconds,
        }
        loaded = self._workers
        if len(self._moments) > loaded:
            after = self._moments[-1] - self._moments[loaded - 1]
            rest = sum(self._questions[loaded:])
            rates["questions_a_second_after_loading"] = rest / after
        return rates


def _core_seconds() -> float:
    """Processor time that all processes of this machine have used."""
    user, nice, system = Path("/proc/stat").read_text().split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def predictions(given: argparse.Namespace) -> dict[str, Any]:
    index = sample.open_index(given.index)
    settings = load_settings("compact")
    options = {
        "dataset": given.dataset,
        "limit": given.questions,
        "batch": BATCH,
        "system": describe(settings, index),
    }
    given.folder.mkdir(parents=True, exist_ok=True)
    alone = given.folder / "alone.json"
    rows: list[dict[str, Any]] = []
    if not alone.exists():
        system = build(settings, index, FOR_BENCHMARKS, threads=1)
        clock = _Clock(run_here, 1)
        predict(system.answerer, out=alone, executor=clock, **options)
        rows.append({"workers": 0} | clock.rates())
        print(rows[-1], flush=True)
    if not given.workers:
        return {"rows": rows}
    nodes = start_nodes(max(given.workers))
    load_once = partial(built_answerer, settings, index.folder, FOR_BENCHMARKS, 1)
    with connect(nodes.address) as cluster:
        for workers in given.workers:
            out = given.folder / f"{workers}.json"
            clock = _Clock(run_on(cluster, workers), workers)
            predict(LoadedOnce(load_once), out=out, executor=clock, **options)
            same = out.read_bytes() == alone.read_bytes()
            rows.append({"workers": workers} | clock.rates() | {"identical": same})
            print(rows[-1], flush=True)
    return {"questions": given.questions, "dataset": given.dataset, "rows": rows}


def chaos(given: argparse.Namespace) -> dict[str, Any]:
    texts = [question.text for question in islice(load("ambignq/dev"), 200)]
    here = Index.open(given.index)
    expected = [_found(here.search(text)) for text in texts]
    rng = random.Random(0)
    counts = {"searches": 0, "complete": 0, "partial": 0, "wrong": 0, "kills": 0}
    seconds = []
    nodes = start_nodes(2)
    with connect(nodes.address):
        index = ClusterIndex.on_cluster(given.index, given.replicas)
        actors = [actor for group in index._shards._replicas for actor in group]  # type: ignore[attr-defined]
        ends = time.monotonic() + given.seconds
        next_kill = time.monotonic() + given.every
        while time.monotonic() < ends:
            if time.monotonic() >= next_kill:
                counts["kills"] += _kill(rng.choice(actors))
                next_kill += given.every
            number = counts["searches"] % len(texts)
            began = time.perf_counter()
            hits = index.search(texts[number])
            seconds.append(time.perf_counter() - began)
            counts["searches"] += 1
            if coverage_of(hits) < 1:
                counts["partial"] += 1
            else:
                counts["complete"] += 1
                counts["wrong"] += not _same(_found(hits), expected[number])
    seconds.sort()
    return counts | {
        "p50_ms": 1000 * statistics.median(seconds),
        "p99_ms": 1000 * seconds[int(0.99 * (len(seconds) - 1))],
        "longest_ms": 1000 * seconds[-1],
    }


def overhead(given: argparse.Namespace) -> dict[str, Any]:
    texts = [question.text for question in islice(load("ambignq/dev"), given.questions)]
    nodes = start_nodes(given.workers)
    cores = len(os.sched_getaffinity(0))
    result: dict[str, Any] = {"workers": given.workers, "cores": cores}
    with connect(nodes.address) as cluster:
        workers = run_on(cluster, given.workers)
        spread = Spread(given.workers, "hash", workers, remote=True)
        for name, shards in (("plain", None), ("cluster", spread)):
            began, cores_began = time.perf_counter(), _core_seconds()
            Index.build(given.sources, given.folder / name, shards=shards)
            result[f"{name}_build_seconds"] = time.perf_counter() - began
            result[f"{name}_build_cpu"] = _core_seconds() - cores_began
            print(result, flush=True)
        plain = Index.open(given.folder / "plain")
        result["passages"] = len(plain)
        there = ClusterIndex.on_cluster(given.folder / "cluster")
        same = 0
        empty = ray.remote(num_cpus=0, max_concurrency=4)(_Empty).remote()
        for name, work in (
            ("plain", plain.search),
            ("cluster", there.search),
            ("empty_call", lambda _: ray.get(empty.call.remote())),
        ):
            seconds = []
            for text in texts[:20] + texts:
                began = time.perf_counter()
                work(text)
                seconds.append(time.perf_counter() - began)
            result[f"{name}_p50_ms"] = 1000 * statistics.median(seconds[20:])
        for text in texts:
            same += _same(_found(plain.search(text)), _found(there.search(text)))
        result["same"] = f"{same} of {len(texts)}"
    return result


class _Empty:
    """An actor that does nothing."""

    def call(self) -> None:
        pass


def _kill(actor: Any) -> int:
    """Kill an actor's process. One that is away already is left alone."""
    ref = actor.__ray_call__.remote(lambda _: os.getpid())
    try:
        os.kill(ray.get(ref, timeout=0.5), signal.SIGKILL)
    except (ray.exceptions.RayError, ProcessLookupError):
        return 0
    return 1


def _found(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in hits]


def _same(one: list[tuple[str, float]], other: list[tuple[str, float]]) -> bool:
    if [name for name, _ in one] != [name for name, _ in other]:
        return False
    pairs = zip(one, other, strict=True)
    return all(abs(a - b) <= 1e-6 * max(1.0, abs(a)) for (_, a), (_, b) in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("predict")
    one.add_argument("--folder", type=Path, required=True)
    one.add_argument("--index", type=Path)
    one.add_argument("--dataset", default="ambignq/dev")
    one.add_argument("--questions", type=int, default=200)
    one.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    other = verbs.add_parser("chaos")
    other.add_argument("--index", type=Path, required=True)
    other.add_argument("--seconds", type=float, default=300.0)
    other.add_argument("--every", type=float, default=2.0)
    other.add_argument("--replicas", type=int, default=1)
    third = verbs.add_parser("overhead")
    third.add_argument("sources", nargs="+")
    third.add_argument("--folder", type=Path, required=True)
    third.add_argument("--workers", type=int, default=1)
    third.add_argument("--questions", type=int, default=300)
    for verb in (one, other, third):
        verb.add_argument("--out", type=Path)
    given = parser.parse_args()
    work = {"predict": predictions, "chaos": chaos, "overhead": overhead}
    result = work[given.verb](given)
    result["load"] = os.getloadavg()
    result["provenance"] = provenance(getattr(given, "sources", ()), seed=0)
    print(json.dumps(result, indent=1))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
