"""The connection to a Ray cluster: there is one, and every node can run this very version of the package."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from whichsense.errors import ClusterFault, require
from whichsense.version import __version__

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
            from whichsense.version import __version__ as installed
        except ImportError:
            return None
        return installed

    # It travels whole: a node without the package could not import it.
    version.__module__ = "__main__"
    return version
