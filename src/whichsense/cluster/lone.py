"""The only shard of an index, on a cluster: it ranks what it finds by itself, in one round of messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from whichsense.index.shards.gather import LocalShards
from whichsense.index.shards.ranker import Ranked, Shards, Vector
from whichsense.index.shards.shard import Shard


class LoneShard(Shard):
    """A shard that holds all passages of an index."""

    def __init__(self, root: Path, *, dense: bool, passages: int) -> None:
        super().__init__(root, dense=dense)
        self._ranker = LocalShards([self]).ranker([passages])

    def rank(self, verb: str, given: tuple[Any, ...]) -> Ranked:
        """What a verb of a ranker gives."""
        ranked: Ranked = getattr(self._ranker, verb)(*given)
        return ranked


class LoneRanker:
    """Lets the only shard of an index rank, wherever it is."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    def by_words(self, text: str, k: int) -> Ranked:
        return self._rank("by_words", text, k)

    def by_meaning(self, vector: Vector, k: int) -> Ranked:
        return self._rank("by_meaning", vector, k)

    def by_both(
        self, text: str, vector: Vector, k: int, depth: int, weight: float
    ) -> Ranked:
        return self._rank("by_both", text, vector, k, depth, weight)

    def _rank(self, verb: str, *given: Any) -> Ranked:
        answers = self._shards.ask("rank", {0: (verb, given)})
        # A shard that is gone leaves nothing.
        ranked: Ranked = answers.get(0, Ranked([], [], 0.0))
        return ranked
