"""Shards on a cluster: each is an actor near its folder; a question goes to all of them at once.

A shard that is slow is asked a second time, after its own 95th percentile; the first answer counts, the other request
is cancelled. A shard that is gone is left out, and the hits say so (`Hits.coverage`). Ray starts its actor again; where
that fails, because its folder cannot be read for a while, another actor takes its place.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense.cluster.lone import LoneRanker, LoneShard
from whichsense.errors import ClusterFault, DamagedIndex, WhichsenseError
from whichsense.index.folder import Manifest, parts_of, verify_sizes
from whichsense.index.lexical.engine import Lengths
from whichsense.index.object_store import fetch_manifest, fetch_parts, url_of
from whichsense.index.shards.layout import check_label
from whichsense.index.shards.ranker import MergingRanker, Ranker
from whichsense.index.shards.shard import Shard

_WINDOW = 200  # latencies from which a percentile is taken
_FEWEST = 20
_SOONEST = 0.02  # seconds before a second request, however fast a shard is
_PATIENCE = 5.0  # seconds after which a shard counts as gone
_GRACE = 0.25  # seconds that a shard is given whose actor is being started again
_OPENING = 120.0  # seconds for an actor to start, where nothing is fetched
_FETCHING = 7200.0
_REPLACING = (
    5.0  # seconds between two attempts to put another actor in the place of one
)


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
        dense = bool(manifest.encoder)
        if len(manifest.shard_passages) == 1:
            self._shard: Shard = LoneShard(
                root, dense=dense, passages=manifest.passages
            )
        else:
            self._shard = Shard(root, dense=dense)

    def ask(self, verb: str, given: tuple[Any, ...]) -> Any:
        return getattr(self._shard, verb)(*given)


def _local(address: ShardAddress) -> Path:
    """The index's folder on this node; of an index at a URL, a copy of this shard alone."""
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
            return _PATIENCE / 2
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

    def ask(
        self, verb: str, arguments: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Any]:
        return _Round(self, verb, arguments).run()

    def ranker(self, passages: Sequence[int]) -> Ranker:
        if len(passages) == 1:
            return LoneRanker(self)
        return MergingRanker(self, passages)

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
            left = self._began + _PATIENCE - time.monotonic()
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
        """Whether all that is still waited for are shards whose actor died."""
        return set(self._arguments) - set(self._answers) <= self._shards.away

    def _slow(self) -> dict[int, float]:
        """When to ask again the shards that were asked once and have not answered."""
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
