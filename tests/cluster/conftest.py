"""A cluster of two nodes, and an index of two shards, for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ray = pytest.importorskip("ray", reason="needs pip install 'whichsense[cluster]'")

from ray.cluster_utils import Cluster as Nodes

from whichsense import sample
from whichsense.cluster import Cluster, connect
from whichsense.index import Index, Spread
from whichsense.jobs.workers import run_here
from whichsense.models.vectors.encoders import load_encoder


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Two nodes of one core each, in processes of this machine."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    try:
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
