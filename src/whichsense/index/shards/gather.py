"""Search over shards: the question goes to all of them, and what they find is ranked as in one index.

Shards are asked twice: for the numbers of what may be among the best, and for the texts of what is. A shard that
does not answer gives None: its passages are missing, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whichsense.index.lexical.engine import Lengths
from whichsense.index.lexical.query import question_words
from whichsense.index.lexical.ranking import (
    RESCORED,
    Question,
    asked_terms,
    exact_scores,
    rank_by_words,
    score_by_both,
)
from whichsense.index.shards.shard import ByMeaning, ByWords, Query, Shard
from whichsense.index.store import unpack
from whichsense.types import Hit

Vector = NDArray[np.float32]
Found = tuple[ByWords, ByMeaning]
"""A shard's answer; what was not asked for is None there."""


class Shards(Protocol):
    """The shards of an index, wherever they are."""

    @property
    def lengths(self) -> Sequence[Lengths]:
        """Of each shard."""

    def frequencies(self, terms: Sequence[str]) -> tuple[Mapping[str, int], set[int]]:
        """How many passages of all shards have each term, and the shards that do not answer: these are estimated."""

    def ask(
        self, verb: str, arguments: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Any]:
        """The answers of some shards, by number. One that does not answer is left out."""


class LocalShards:
    """Shards in this process, asked one after another."""

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


@dataclass(frozen=True, slots=True)
class _Found:
    """Passages of all shards, one place each: shard, row, key, and further columns of numbers."""

    shards: NDArray[np.int64]
    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    numbers: tuple[NDArray[Any], ...] = ()

    @classmethod
    def of(cls, answers: Mapping[int, ByWords | ByMeaning]) -> _Found:
        shards = [np.empty(0, np.int64)]
        for number, answer in answers.items():
            shards.append(np.full(len(answer.rows), number))
        columns = []
        for column in zip(*answers.values(), strict=True):
            columns.append(np.concatenate(column))
        # Where no shard answers, nothing was found.
        rows, keys, *numbers = columns or [np.empty(0, np.int64)] * 4
        return cls(np.concatenate(shards), rows, keys, tuple(numbers))

    def take(self, places: NDArray[np.intp] | slice) -> _Found:
        numbers = tuple([column[places] for column in self.numbers])
        return _Found(
            self.shards[places], self.rows[places], self.keys[places], numbers
        )


class Gatherer:
    """Ranks what the shards of an index find. `passages` are those of each shard."""

    def __init__(self, shards: Shards, passages: Sequence[int]) -> None:
        self._shards = shards
        self._passages = passages

    def by_words(self, text: str, k: int) -> Hits:
        """BM25's best k, the first of them scored again."""
        question, uncounted = self._question(text)
        wanted = max(k, RESCORED)
        answers = self._search(Query(wanted, question.weights, question.slack))
        head = _head_by_words(answers, wanted, question.slack)
        head, stored, _ = self._read(head, None)
        scores = exact_scores(question, head.numbers[0], stored, RESCORED)
        best = np.lexsort((head.keys, -scores))[:wanted]
        stored = [stored[place] for place in best.tolist()]
        places, scores = rank_by_words(question, scores[best], stored)
        hits = []
        for place, score in zip(places[:k], scores[:k].tolist(), strict=True):
            hits.append(Hit(unpack(stored[place]), score))
        return Hits(hits, self._coverage(answers, uncounted))

    def by_meaning(self, vector: Vector, k: int) -> Hits:
        """The k passages whose vectors are nearest."""
        answers = self._search(Query(k, vector=vector, vectors=sum(self._passages)))
        near, stored, _ = self._read(_nearest(answers, k), None)
        hits = []
        for entry, cosine in zip(stored, near.numbers[1].tolist(), strict=True):
            hits.append(Hit(unpack(entry), cosine))
        return Hits(hits, self._coverage(answers))

    def by_both(
        self, text: str, vector: Vector, k: int, depth: int, weight: float
    ) -> Hits:
        """The hits of either search, scored by their words and by their meaning together; a cosine counts `weight`."""
        question, uncounted = self._question(text)
        answers = self._search(
            Query(depth, question.weights, question.slack, vector, sum(self._passages))
        )
        head = _head_by_words(answers, depth, question.slack)
        near = _nearest(answers, depth)
        union = _Found(
            np.concatenate([head.shards, near.shards]),
            np.concatenate([head.rows, near.rows]),
            np.concatenate([head.keys, near.keys]),
            # BM25 gives no score to what it did not find.
            (np.concatenate([head.numbers[0], np.full(len(near.keys), np.nan)]),),
        )
        _, first = np.unique(union.keys, return_index=True)
        union, stored, cosines = self._read(union.take(np.sort(first)), vector)
        by_bm25 = np.flatnonzero(~np.isnan(union.numbers[0]))
        scores = exact_scores(
            question,
            union.numbers[0][by_bm25],
            [stored[place] for place in by_bm25.tolist()],
            depth,
        )
        best = np.lexsort((union.keys[by_bm25], -scores))[:depth]
        places = _beside(union, near, by_bm25[best])
        stored = [stored[place] for place in places]
        others = weight * cosines[places].astype(np.float64)
        together = score_by_both(question, scores[best], stored, others)
        hits = []
        for place in np.argsort(-together, kind="stable")[:k].tolist():
            hits.append(Hit(unpack(stored[place]), float(together[place])))
        return Hits(hits, self._coverage(answers, uncounted))

    def _question(self, text: str) -> tuple[Question, set[int]]:
        """The question, weighed, and the shards whose terms could not be counted."""
        words = question_words(text)
        having, uncounted = self._shards.frequencies(asked_terms(words))
        return Question.of(words, having, self._shards.lengths), uncounted

    def _search(self, query: Query) -> dict[int, Found]:
        everywhere = dict.fromkeys(range(len(self._passages)), (query,))
        return self._shards.ask("search", everywhere)

    def _read(
        self, found: _Found, vector: Vector | None
    ) -> tuple[_Found, list[bytes], Vector]:
        """The passages, as stored, and their cosines. Those of a shard that is gone by now are left out."""
        arguments = {}
        for number in np.unique(found.shards).tolist():
            rows = found.rows[found.shards == number].tolist()
            arguments[number] = (rows, vector)
        answers = self._shards.ask("read", arguments)
        if len(answers) < len(arguments):
            found = found.take(np.flatnonzero(np.isin(found.shards, list(answers))))
        stored = [b""] * len(found.rows)
        cosines = np.zeros(len(found.rows), dtype=np.float32)
        for number, (entries, similarities) in answers.items():
            places = np.flatnonzero(found.shards == number)
            for place, entry in zip(places.tolist(), entries, strict=True):
                stored[place] = entry
            if similarities is not None:
                cosines[places] = similarities
        return found, stored, cosines

    def _coverage(
        self, answers: Mapping[int, Any], uncounted: Collection[int] = ()
    ) -> float:
        """The share of the passages that counted in full: searched, and their terms counted."""
        if len(answers) == len(self._passages) and not uncounted:
            return 1.0
        searched = 0
        for number in answers:
            if number not in uncounted:
                searched += self._passages[number]
        return searched / (sum(self._passages) or 1)


def _head_by_words(answers: Mapping[int, Found], k: int, slack: float) -> _Found:
    """What may be among BM25's best k of all shards: those of the best k scores, and what is within `slack` of them."""
    found = _Found.of({number: by_words for number, (by_words, _) in answers.items()})
    scores = found.numbers[0]
    order = np.lexsort((found.keys, -scores))
    if len(order) > k:
        lowest = scores[order[k - 1]] * (1 - slack)
        order = order[scores[order] >= lowest]
    return found.take(order)


def _nearest(answers: Mapping[int, Found], k: int) -> _Found:
    from whichsense.index.dense.vectors import (
        nearest_of,  # loaded only where it is used
    )

    found = _Found.of({number: near for number, (_, near) in answers.items()})
    rough, cosines = found.numbers[:2]
    return found.take(nearest_of(found.keys, rough, cosines, k))


def _beside(union: _Found, near: _Found, best: NDArray[np.intp]) -> list[int]:
    """Places in `union`: BM25's best, then the other near passages, nearest first."""
    places: list[int] = best.tolist()
    listed = set(places)
    place_of = {key: place for place, key in enumerate(union.keys.tolist())}
    for key in near.keys.tolist():
        place = place_of.get(key)  # None where its shard is gone by now
        if place is not None and place not in listed:
            places.append(place)
    return places
