"""The same work on several machines, by Ray: shards that are searched where they are, and parts that are spread."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from whichsense import __version__
from whichsense.errors import BadInput, ClusterFault, DamagedIndex, WhichsenseError, require
from whichsense.index import Index
from whichsense.index import folder as folders
from whichsense.index.folder import Manifest, parts_of, verify_sizes
from whichsense.index.lexical import Lengths
from whichsense.index.object_store import fetch_manifest, fetch_parts, url_of
from whichsense.index.shards import Shard, check_label
from whichsense.jobs.workers import Executor

__all__ = ["Cluster", "ClusterIndex", "connect", "run_on"]


# The connection to a Ray cluster: there is one, and every node can run this very version of the
# package.

LOCAL = "local"
_PROBE_SECONDS = 60.0
_KNOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that this process is connected to."""

    address: str
    cpus: int
    gpus: float = 0
    gpus_of_a_node: float = 0
    """Of the one that has most."""


@contextlib.contextmanager
def connect(address: str) -> Iterator[Cluster]:
    """Use the cluster at an address ("local": one of this machine's own cores) until the block ends."""
    ray = require("ray", "cluster")
    ours = not ray.is_initialized()
    if ours:
        _init(ray, address)
    try:
        check_nodes(ray)
        has = ray.cluster_resources()
        most = 0.0
        for node in ray.nodes():
            if node["Alive"]:
                most = max(most, node["Resources"].get("GPU", 0.0))
        yield Cluster(address, int(has.get("CPU", 1)), has.get("GPU", 0.0), most)
    finally:
        if ours:
            ray.shutdown()


def _init(ray: Any, address: str) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        # Without an address, Ray would join a cluster that runs here already.
        ray.init(address=LOCAL, include_dashboard=False, **quiet)
        return
    try:
        _knock(address)
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise ClusterFault(
            f"No Ray cluster answers at '{address}' ({reason}). Start one with `ray start --head`, "
            "give its address as HOST:PORT, or use --cluster local for this machine."
        ) from None


def _knock(address: str) -> None:
    """Raise OSError where nothing listens at HOST:PORT: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:
        socket.create_connection((host, int(port)), timeout=_KNOCK_SECONDS).close()


def check_nodes(ray: Any) -> None:
    """Raise ClusterFault where a node lacks the package, or has another version of it."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    probe = ray.remote(num_cpus=0, max_retries=0)(_probe())
    refs = {}
    for node in ray.nodes():
        if node["Alive"]:
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ref = probe.options(scheduling_strategy=there).remote()
            refs[ref] = node["NodeManagerHostname"]
    for ref, host in refs.items():
        try:
            version = ray.get(ref, timeout=_PROBE_SECONDS)
        except ray.exceptions.RayError as error:
            raise ClusterFault(
                f"Node '{host}' of the cluster does not answer ({type(error).__name__}). Restart Ray there."
            ) from None
        if version != __version__:
            has = f"has version {version}" if version else "does not have the package"
            raise ClusterFault(
                f"Node '{host}' of the cluster {has}; this is {__version__}. "
                f"Run there: pip install 'whichsense[cluster]=={__version__}'"
            )


def _probe() -> Any:
    def version() -> str | None:
        try:
            from whichsense import __version__ as installed
        except ImportError:
            return None
        return installed

    # It travels whole: a node without the package could not import it.
    version.__module__ = "__main__"
    return version


# An executor on a cluster: workers that keep what they load, and of which any may die.

Item = TypeVar("Item")
Result = TypeVar("Result")

# An item that is lost this often kills its worker itself, by its memory for example.
_ATTEMPTS = 20
_LOST = object()
_PAUSE = 0.5  # seconds before another worker is hired for one that could not be started
_PATIENCE = 120.0  # seconds in which none could be started
_NO_ROOM = (
    600.0  # seconds in which the cluster had no room for any: a machine takes minutes to join
)


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
    """Return an executor of workers on a cluster: one for each core, or as many as are given.

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
                result = self._take_result(ref, attempt)
                if result is _LOST:
                    waiting.appendleft((number, attempt + 1))
                    self._start(worker)
                    continue
                self._free.append(worker)
                yield items[number], result

    def _take_result(self, ref: Any, attempt: int) -> Any:
        """Return what a worker gives, or `_LOST` where it died."""
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            if attempt == _ATTEMPTS:
                raise ClusterFault(
                    f"A worker was lost {_ATTEMPTS} times over one piece of work: {_reason(error)} "
                    "Does it have too little memory? Run the same command again on larger machines: it resumes."
                ) from None
        return _LOST

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


# Shards on a cluster: each is an actor near its folder; a question goes to all of them at once.
#
# A shard that is slow is asked a second time, after its own 95th percentile; the first answer counts,
# the other request is cancelled. A shard that is gone is left out, and the hits say so
# (`Hits.coverage`). Ray starts its actor again; where that fails, because its folder cannot be read
# for a while, another actor takes its place.

_WINDOW = 200  # latencies from which a percentile is taken
_FEWEST = 20
_SOONEST = 0.02  # seconds before a second request, however fast a shard is
_SHARDS_PATIENCE = 5.0  # seconds after which a shard counts as gone
_GRACE = 0.25  # seconds that a shard is given whose actor is being started again
_OPENING = 120.0  # seconds for an actor to start, where nothing is fetched
_FETCHING = 7200.0
_REPLACING = 5.0  # seconds between two attempts to put another actor in the place of one


@dataclass(frozen=True, slots=True)
class ShardAddress:
    """Which shard an actor opens."""

    place: str
    """The index: a folder that every node sees, or a URL."""
    manifest: Manifest
    number: int


class _ShardActor:
    """A shard that is open, in a process of its own."""

    def __init__(self, address: ShardAddress) -> None:
        manifest, number = address.manifest, address.number
        folder = _local(address)
        root = manifest.roots(folder)[number]
        if manifest.sharding:
            count = len(manifest.sharding.rows)
            check_label(root, manifest.sharding.build, number, count)
        below = f"{root.name}/" if manifest.sharding else ""
        verify_sizes(folder, manifest, below)
        self._shard = Shard(root, dense=bool(manifest.encoder))

    def ask(self, verb: str, given: tuple[Any, ...]) -> Any:
        return getattr(self._shard, verb)(*given)


def _local(address: ShardAddress) -> Path:
    """Return the index's folder on this node; of an index at a URL, a copy of this shard alone."""
    url = url_of(address.place)
    if url is None:
        return Path(address.place)
    folder, _ = fetch_manifest(url)
    manifest = address.manifest
    parts = parts_of(manifest)
    if manifest.sharding:
        parts = [manifest.roots(folder)[address.number].name]
    fetch_parts(url, folder, manifest, parts)
    return folder


class Latencies:
    """How long a shard took lately.

    >>> latencies = Latencies()
    >>> for _ in range(100):
    ...     latencies.add(0.1)
    >>> latencies.patience
    0.1
    """

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=_WINDOW)

    def add(self, seconds: float) -> None:
        self._seconds.append(seconds)

    @property
    def patience(self) -> float:
        """Seconds after which a shard is asked again: its 95th percentile."""
        if len(self._seconds) < _FEWEST:
            return _SHARDS_PATIENCE / 2
        ordered = sorted(self._seconds)
        return max(_SOONEST, ordered[int(0.95 * (len(ordered) - 1))])


class RemoteShards:
    """The shards of an index as actors. Several threads may ask at the same time."""

    reads_ahead = True

    def __init__(self, place: str, manifest: Manifest, replicas: int = 1) -> None:
        import ray

        self._ray = ray
        self._place = place
        self._manifest = manifest
        self._passages = manifest.shard_passages
        self._replicas: list[list[Any]] = []
        for number in range(len(self._passages)):
            self._replicas.append([self._start(number) for _ in range(replicas)])
        self._replaced = [0.0] * len(self._passages)  # when, for each shard
        self._latencies = [Latencies() for _ in self._passages]
        self._frequencies: dict[str, int] = {}
        self._lock = threading.Lock()
        self.away: set[int] = set()
        """Shards whose actor died and has not answered since: others do not wait for them."""
        self.lengths = self._open(place)

    def _start(self, number: int) -> Any:
        ray = self._ray
        actor = ray.remote(num_cpus=0, max_restarts=-1, max_concurrency=4)(_ShardActor)
        spread = actor.options(scheduling_strategy="SPREAD")
        return spread.remote(ShardAddress(self._place, self._manifest, number))

    def replace(self, number: int, actor: Any) -> None:
        """Put another actor in the place of one that is gone for good."""
        with self._lock:
            actors, now = self._replicas[number], time.monotonic()
            if actor in actors and now - self._replaced[number] > _REPLACING:
                actors[actors.index(actor)] = self._start(number)
                self._replaced[number] = now

    def _open(self, place: str) -> Sequence[Lengths]:
        """Wait until all shards are open: an index begins whole."""
        lengths = []
        for number, actors in enumerate(self._replicas):
            refs = [actor.ask.remote("lengths", ()) for actor in actors]
            try:
                limit = _FETCHING if url_of(place) else _OPENING
                lengths.append(self._ray.get(refs, timeout=limit)[0])
            except self._ray.exceptions.RayError as error:
                self.close()
                raise _explained(error, place, number) from None
        return lengths

    def frequencies(self, terms: Sequence[str]) -> tuple[Mapping[str, int], set[int]]:
        unknown = [term for term in terms if term not in self._frequencies]
        if not unknown:
            return self._frequencies, set()
        everywhere = dict.fromkeys(range(len(self._passages)), (unknown,))
        answers = self.ask("document_frequencies", everywhere)
        searched = sum(self._passages[number] for number in answers)
        counted = {}
        for place, term in enumerate(unknown):
            having = sum(answer[place] for answer in answers.values())
            if len(answers) < len(self._passages):
                # What is gone is taken to be like the rest, for this question alone.
                having = round(having * sum(self._passages) / max(searched, 1))
            counted[term] = having
        if len(answers) == len(self._passages):
            with self._lock:
                self._frequencies.update(counted)
        silent = set(everywhere) - set(answers)
        return {**self._frequencies, **counted}, silent

    def ask(self, verb: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        return _Round(self, verb, arguments).run()

    def close(self) -> None:
        for actors in self._replicas:
            for actor in actors:
                self._ray.kill(actor)


class _Round:
    """One verb, asked of some shards at once."""

    def __init__(
        self, shards: RemoteShards, verb: str, arguments: Mapping[int, tuple[Any, ...]]
    ) -> None:
        self._shards = shards
        self._ray = shards._ray
        self._verb = verb
        self._arguments = arguments
        self._running: dict[Any, tuple[int, Any]] = {}  # shards and their actors
        self._asked = dict.fromkeys(arguments, 0)
        self._began = time.monotonic()
        self._changed = self._began  # when a shard answered last
        self._answers: dict[int, Any] = {}

    def run(self) -> dict[int, Any]:
        for number in self._arguments:
            self._send(number)
        while self._running and len(self._answers) < len(self._arguments):
            left = self._began + _SHARDS_PATIENCE - time.monotonic()
            if left <= 0:
                break
            if self._only_away():
                left = min(left, self._changed + _GRACE - time.monotonic())
                if left <= 0:
                    break
            wait = min(left, self._next_hedge())
            refs = list(self._running)
            ready, _ = self._ray.wait(refs, num_returns=1, timeout=max(wait, 0.001))
            for ref in ready:
                self._take(ref)
            self._hedge()
        for ref in self._running:
            self._ray.cancel(ref)
        return {number: self._answers[number] for number in sorted(self._answers)}

    def _send(self, number: int) -> None:
        actors = self._shards._replicas[number]
        actor = actors[self._asked[number] % len(actors)]
        self._asked[number] += 1
        ref = actor.ask.remote(self._verb, self._arguments[number])
        self._running[ref] = number, actor

    def _take(self, ref: Any) -> None:
        number, actor = self._running.pop(ref)
        if number in self._answers:
            return
        try:
            self._answers[number] = self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, WhichsenseError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayError as error:
            # Its actor died. Another replica may live.
            self._shards.away.add(number)
            if isinstance(error, self._ray.exceptions.ActorDiedError):
                self._shards.replace(number, actor)
            if self._asked[number] <= len(self._shards._replicas[number]):
                self._send(number)
            return
        self._shards.away.discard(number)
        self._changed = time.monotonic()
        self._shards._latencies[number].add(self._changed - self._began)

    def _only_away(self) -> bool:
        """Tell whether all that is still waited for are shards whose actor died."""
        return set(self._arguments) - set(self._answers) <= self._shards.away

    def _slow(self) -> dict[int, float]:
        """Return when to ask again the shards that were asked once and have not answered."""
        moments = {}
        for number, _ in self._running.values():
            if number not in self._answers and self._asked[number] == 1:
                patience = self._shards._latencies[number].patience
                moments[number] = self._began + patience
        return moments

    def _next_hedge(self) -> float:
        return min(self._slow().values(), default=float("inf")) - time.monotonic()

    def _hedge(self) -> None:
        for number, moment in self._slow().items():
            if time.monotonic() >= moment:
                self._send(number)


def _explained(error: Any, place: str, number: int) -> WhichsenseError:
    cause = getattr(error, "cause", None)
    if isinstance(cause, WhichsenseError):
        return cause
    reason = str(cause or error).strip().splitlines()[-1]
    # Of an actor that could not start, Ray gives the error as text.
    _, is_damage, message = reason.partition(f"{DamagedIndex.__name__}: ")
    if is_damage:
        return DamagedIndex(message)
    reason = reason[:300]
    return ClusterFault(
        f"Shard {number + 1} of '{place}' could not be opened on the cluster ({reason}). "
        "Every node must see that folder under the same path: use a shared file system."
    )


# An index whose shards are searched on a cluster.


class ClusterIndex(Index):
    """Open with `ClusterIndex.on_cluster(folder)`, inside `with connect(address)`. An index without shards is one."""

    @classmethod
    def on_cluster(cls, folder: str | Path, replicas: int = 1) -> Self:
        """Start an actor for each shard, or several."""
        url = url_of(folder)
        if url:
            # Each actor fetches its own shard.
            copy, manifest = fetch_manifest(url)
            fetch_parts(url, copy, manifest, ["names.sqlite"])
        else:
            copy = Path(folder).resolve()
            manifest = folders.read_manifest(copy)
        shards = RemoteShards(url or str(copy), manifest, replicas)
        index = cls(copy, manifest, shards=shards)
        index.origin = folder
        index.replicas = replicas
        return index

    @classmethod
    def connected(cls, address: str, folder: str | Path, replicas: int = 1) -> Self:
        """Return the same on the cluster at an address, to which this process stays connected until it ends."""
        connection = connect(address)
        connection.__enter__()
        atexit.register(connection.__exit__, None, None, None)
        return cls.on_cluster(folder, replicas)

    replicas: int = 1

    def refreshed(self) -> Index:
        """Return this index, or its newer generation on actors of its own. Close this one when its last search has
        ended.
        """
        newest = folders.read_manifest(self.folder)
        if newest.generation == self.manifest.generation:
            return self
        return type(self).on_cluster(self.folder, self.replicas)

    def close(self) -> None:
        """End the actors."""
        super().close()
        if isinstance(self._shards, RemoteShards):
            self._shards.close()
