"""The same work on several machines, by Ray: shards that are searched where they are, and parts that are spread."""

from __future__ import annotations

from whichsense.cluster.connection import Cluster, connect
from whichsense.cluster.index import ClusterIndex
from whichsense.cluster.workers import run_on

__all__ = ["Cluster", "ClusterIndex", "connect", "run_on"]
