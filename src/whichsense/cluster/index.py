"""An index whose shards are searched on a cluster."""

from __future__ import annotations

import atexit
from pathlib import Path
from typing import Self

from whichsense.cluster.connection import connect
from whichsense.cluster.shards import RemoteShards
from whichsense.index import Index
from whichsense.index import folder as folders
from whichsense.index.object_store import fetch_manifest, fetch_parts, url_of


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
        """The same on the cluster at an address, to which this process stays connected until it ends."""
        connection = connect(address)
        connection.__enter__()
        atexit.register(connection.__exit__, None, None, None)
        return cls.on_cluster(folder, replicas)

    replicas: int = 1

    def refreshed(self) -> Index:
        """This index, or its newer generation on actors of its own. Close this one when its last search has ended."""
        newest = folders.read_manifest(self.folder)
        if newest.generation == self.manifest.generation:
            return self
        return type(self).on_cluster(self.folder, self.replicas)

    def close(self) -> None:
        """End the actors."""
        super().close()
        if isinstance(self._shards, RemoteShards):
            self._shards.close()
