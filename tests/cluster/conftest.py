"""A cluster of two nodes, and an index of two shards, for all tests of this folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray", reason="needs pip install 'whichsense[cluster]'")

from ray._private import services
from ray.cluster_utils import Cluster as Nodes

from patience import LONGEST, wait_for
from whichsense import sample
from whichsense.index import Index, Spread
from whichsense.index import cluster as cluster_module
from whichsense.index.cluster import Cluster, connect
from whichsense.jobs.workers import run_here
from whichsense.models.static import load_encoder

RAYS_PATIENCE = {
    "RAY_gcs_server_port_wait_time_s": LONGEST,
    "RAY_worker_register_timeout_seconds": LONGEST,
    "RAY_agent_register_timeout_ms": 1000 * LONGEST,
    "RAY_health_check_timeout_ms": 1000 * LONGEST,
}
"""Ray's own limits, which are meant for machines that have little else to do."""


def patiently(get_node: Callable[..., Any]) -> Callable[..., Any]:
    """What waits for a node to start, which Ray does for half a minute."""

    def got(*given: Any, **options: Any) -> Any:
        found: list[Any] = []

        def is_there() -> bool:
            with contextlib.suppress(RuntimeError):
                found.append(get_node(*given, **options))
            return bool(found)

        wait_for(is_there)
        return found[0]

    return got


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine an actor takes its time, and is not gone for that."""
    monkeypatch.setattr(cluster_module, "_SHARDS_PATIENCE", 2 * LONGEST)
    monkeypatch.setattr(cluster_module, "_OPENING", LONGEST)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two nodes of one core each, in processes of this machine."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    for name, longest in RAYS_PATIENCE.items():
        os.environ[name] = str(int(longest))
    nodes = Nodes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services, "get_node", patiently(services.get_node))
        for _ in range(2):
            nodes.add_node(wait=False, num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    try:
        wait_for(lambda: [node["Alive"] for node in ray.nodes()] == [True, True])
        with connect(nodes.address) as connected:
            yield connected
    finally:
        ray.shutdown()
        nodes.shutdown()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sharded") / "index"
    spread = Spread(2, "hash", run_here)
    Index.build(sample.PASSAGES, place, encoder=load_encoder("static"), shards=spread)
    return place
