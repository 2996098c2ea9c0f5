"""Search over shards: the question goes to all of them, and what they find is ranked as in one index.

A shard that does not answer is left out: its passages are missing, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from whichsense.errors import ClusterFault
from whichsense.index.lexical.engine import Lengths
from whichsense.index.shards.ranker import MergingRanker, Ranked, Ranker, Shards, Vector
from whichsense.index.shards.shard import Shard
from whichsense.index.store import unpack
from whichsense.types import Hit


class LocalShards:
    """Shards in this process, asked one after another."""

    reads_ahead = False

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = shards
        self._frequencies: dict[str, int] = {}

    @property
    def lengths(self) -> list[Lengths]:
        return [shard.lengths() for shard in self.shards]

    def frequencies(self, terms: Sequence[str]) -> tuple[Mapping[str, int], set[int]]:
        for term in terms:
            if term not in self._frequencies:
                having = 0
                for shard in self.shards:
                    having += shard.document_frequencies([term])[0]
                self._frequencies[term] = having
        return self._frequencies, set()

    def ask(
        self, verb: str, arguments: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Any]:
        answers = {}
        for number, given in arguments.items():
            answers[number] = getattr(self.shards[number], verb)(*given)
        return answers

    def ranker(self, passages: Sequence[int]) -> Ranker:
        return MergingRanker(self, passages)


def ask_all(
    shards: Shards, verb: str, arguments: Mapping[int, tuple[Any, ...]]
) -> dict[int, Any]:
    """What these shards answer, all of them: half of a document is worse than none."""
    answers = shards.ask(verb, arguments)
    if len(answers) < len(arguments):
        raise ClusterFault(
            "A shard of the index does not answer. It is being started again: ask once more in a moment."
        )
    return answers


class Hits(list[Hit]):
    """Hits, best first, and which share of the index's passages was searched for them."""

    def __init__(self, hits: Iterable[Hit] = (), coverage: float = 1.0) -> None:
        super().__init__(hits)
        self.coverage = coverage


def coverage_of(hits: Sequence[Hit]) -> float:
    """The share of the index's passages that was searched for these hits."""
    return hits.coverage if isinstance(hits, Hits) else 1.0


def missing_note(hits: Sequence[Hit]) -> str:
    """What a person should know of hits for which not all was searched; empty where all was.

    >>> missing_note(Hits([], coverage=0.875))
    'Only 87.5% of the passages could be searched: a shard does not answer. Ask again in a moment.'
    """
    coverage = coverage_of(hits)
    if coverage == 1:
        return ""
    return (
        f"Only {coverage:.1%} of the passages could be searched: a shard does not answer. "
        "Ask again in a moment."
    )


class Gatherer:
    """The hits of an index, best first. `passages` are those of each shard."""

    def __init__(self, shards: Shards, passages: Sequence[int]) -> None:
        self._ranker = shards.ranker(passages)

    def by_words(self, text: str, k: int) -> Hits:
        """BM25's best k, the first of them scored again."""
        return _hits(self._ranker.by_words(text, k))

    def by_meaning(self, vector: Vector, k: int) -> Hits:
        """The k passages whose vectors are nearest."""
        return _hits(self._ranker.by_meaning(vector, k))

    def by_both(
        self, text: str, vector: Vector, k: int, depth: int, weight: float
    ) -> Hits:
        """The hits of either search, scored by their words and by their meaning together; a cosine counts `weight`."""
        return _hits(self._ranker.by_both(text, vector, k, depth, weight))


def _hits(ranked: Ranked) -> Hits:
    hits = []
    for stored, score in zip(ranked.stored, ranked.scores, strict=True):
        hits.append(Hit(unpack(stored), score))
    return Hits(hits, ranked.coverage)
