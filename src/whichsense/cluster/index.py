"""An index whose shards are searched on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from whichsense.cluster.shards import RemoteShards
from whichsense.index import Index
from whichsense.index import folder as folders


class ClusterIndex(Index):
    """Open with `ClusterIndex.on_cluster(folder)`, inside `with connect(address)`. An index without shards is one."""

    @classmethod
    def on_cluster(cls, folder: str | Path, replicas: int = 1) -> Self:
        """Start an actor for each shard, or several."""
        folder = Path(folder)
        manifest = folders.read_manifest(folder)
        shards = RemoteShards(folder, manifest, replicas)
        index = cls(folder, manifest, shards=shards)
        index.replicas = replicas
        return index

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
