"""The order of what the shards of an index find, as one index would give it.

Shards are asked for the numbers of what may be among the best, and for the texts of what is. Where messages cost time,
their first answer brings the texts that will probably be needed, and the rest is asked for only if there is any.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

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
from whichsense.index.shards.merge import Found, beside, head_by_words, nearest
from whichsense.index.shards.shard import Answer, Query

Vector = NDArray[np.float32]


class Ranked(NamedTuple):
    """Stored passages, best first, with their scores."""

    stored: list[bytes]
    scores: list[float]
    coverage: float
    """The share of the index's passages that was searched."""


class Ranker(Protocol):
    """Finds the best passages of an index for a question."""

    def by_words(self, text: str, k: int) -> Ranked:
        """BM25's best k, the first of them scored again."""

    def by_meaning(self, vector: Vector, k: int) -> Ranked:
        """The k passages whose vectors are nearest."""

    def by_both(
        self, text: str, vector: Vector, k: int, depth: int, weight: float
    ) -> Ranked:
        """The hits of either search, scored by their words and by their meaning together; a cosine counts `weight`."""


class Shards(Protocol):
    """The shards of an index, wherever they are."""

    reads_ahead: bool
    """Whether answers bring texts that may not be needed: another request would take longer."""

    @property
    def lengths(self) -> Sequence[Lengths]:
        """Of each shard."""

    def frequencies(self, terms: Sequence[str]) -> tuple[Mapping[str, int], set[int]]:
        """How many passages of all shards have each term, and the shards that do not answer: these are estimated."""

    def ask(
        self, verb: str, arguments: Mapping[int, tuple[Any, ...]]
    ) -> dict[int, Any]:
        """The answers of some shards, by number. One that does not answer is left out."""

    def ranker(self, passages: Sequence[int]) -> Ranker:
        """What ranks the passages of these shards; `passages` are those of each."""


@dataclass(frozen=True, slots=True)
class _Read:
    """Passages that were found and read."""

    found: Found
    stored: list[bytes]
    cosines: Vector
    lost: set[int]
    """Shards that were gone by then. What was not read from them is left out."""


class MergingRanker:
    """Asks all shards of an index, and ranks what they find. `passages` are those of each shard."""

    def __init__(self, shards: Shards, passages: Sequence[int]) -> None:
        self._shards = shards
        self._passages = passages

    def by_words(self, text: str, k: int) -> Ranked:
        question, uncounted = self._question(text)
        wanted = max(k, RESCORED)
        answers = self._search(Query(wanted, question.weights, question.slack))
        head = head_by_words(answers, wanted, question.slack)
        read = self._read(head, None, answers)
        head, stored = read.found, read.stored
        scores = exact_scores(question, head.numbers[0], stored, RESCORED)
        best = np.lexsort((head.keys, -scores))[:wanted]
        stored = [stored[place] for place in best.tolist()]
        places, scores = rank_by_words(question, scores[best], stored)
        coverage = self._coverage(answers, uncounted | read.lost)
        ranked = [stored[place] for place in places[:k]]
        return Ranked(ranked, scores[:k].tolist(), coverage)

    def by_meaning(self, vector: Vector, k: int) -> Ranked:
        answers = self._search(Query(k, vector=vector, vectors=sum(self._passages)))
        read = self._read(nearest(answers, k), None, answers)
        cosines = read.found.numbers[1].tolist()
        return Ranked(read.stored, cosines, self._coverage(answers, read.lost))

    def by_both(
        self, text: str, vector: Vector, k: int, depth: int, weight: float
    ) -> Ranked:
        question, uncounted = self._question(text)
        answers = self._search(
            Query(depth, question.weights, question.slack, vector, sum(self._passages))
        )
        head = head_by_words(answers, depth, question.slack)
        near = nearest(answers, depth)
        union = Found(
            np.concatenate([head.shards, near.shards]),
            np.concatenate([head.rows, near.rows]),
            np.concatenate([head.keys, near.keys]),
            # BM25 gives no score to what it did not find.
            (np.concatenate([head.numbers[0], np.full(len(near.keys), np.nan)]),),
        )
        _, first = np.unique(union.keys, return_index=True)
        read = self._read(union.take(np.sort(first)), vector, answers)
        union, stored = read.found, read.stored
        by_bm25 = np.flatnonzero(~np.isnan(union.numbers[0]))
        scores = exact_scores(
            question,
            union.numbers[0][by_bm25],
            [stored[place] for place in by_bm25.tolist()],
            depth,
        )
        best = np.lexsort((union.keys[by_bm25], -scores))[:depth]
        places = beside(union, near, by_bm25[best])
        stored = [stored[place] for place in places]
        others = weight * read.cosines[places].astype(np.float64)
        together = score_by_both(question, scores[best], stored, others)
        order = np.argsort(-together, kind="stable")[:k]
        coverage = self._coverage(answers, uncounted | read.lost)
        ranked = [stored[place] for place in order.tolist()]
        return Ranked(ranked, together[order].tolist(), coverage)

    def _question(self, text: str) -> tuple[Question, set[int]]:
        """The question, weighed, and the shards whose terms could not be counted."""
        words = question_words(text)
        having, uncounted = self._shards.frequencies(asked_terms(words))
        return Question.of(words, having, self._shards.lengths), uncounted

    def _search(self, query: Query) -> dict[int, Answer]:
        total = sum(self._passages) or 1
        arguments = {}
        for number, passages in enumerate(self._passages):
            own = query
            if self._shards.reads_ahead:
                ahead = likely_most(query.k, passages / total)
                own = dataclasses.replace(query, ahead=ahead)
            arguments[number] = (own,)
        return self._shards.ask("search", arguments)

    def _read(
        self, found: Found, vector: Vector | None, answers: Mapping[int, Answer]
    ) -> _Read:
        """The passages, as stored, and their cosines: from the answers, or asked for now."""
        # (shard, row) → stored passage, cosine
        read: dict[tuple[int, int], tuple[bytes, float]] = {}
        for number, answer in answers.items():
            _note(read, number, *answer.entries)
        places = list(zip(found.shards.tolist(), found.rows.tolist(), strict=True))
        missing: dict[int, list[int]] = {}
        for number, row in places:
            if (number, row) not in read:
                missing.setdefault(number, []).append(row)
        arguments = {number: (rows, vector) for number, rows in missing.items()}
        late = self._shards.ask("read", arguments)
        for number, (stored, cosines) in late.items():
            _note(read, number, missing[number], stored, cosines)
        lost = set(missing) - set(late)
        if lost:
            there = [place for place, key in enumerate(places) if key in read]
            found = found.take(np.array(there, dtype=np.intp))
            places = [places[place] for place in there]
        entries = [read[place] for place in places]
        similarities = np.array([cosine for _, cosine in entries], dtype=np.float32)
        return _Read(found, [stored for stored, _ in entries], similarities, lost)

    def _coverage(
        self, answers: Mapping[int, Any], incomplete: Collection[int]
    ) -> float:
        """The share of the passages that counted in full: searched and read, and their terms counted."""
        if len(answers) == len(self._passages) and not incomplete:
            return 1.0
        searched = 0
        for number in answers:
            if number not in incomplete:
                searched += self._passages[number]
        return searched / (sum(self._passages) or 1)


def likely_most(k: int, share: float) -> int:
    """How many of the best k are in a shard that has this share of the passages, in nearly all cases.

    Three standard deviations above the mean of a binomial distribution.

    >>> likely_most(100, 0.5), likely_most(100, 0.125), likely_most(100, 1)
    (65, 23, 100)
    """
    mean = k * share
    return min(k, math.ceil(mean + 3 * math.sqrt(mean * (1 - share))))


def _note(
    read: dict[tuple[int, int], tuple[bytes, float]],
    number: int,
    rows: Sequence[int],
    stored: Sequence[bytes],
    cosines: Vector | None,
) -> None:
    """Note what was read from a shard."""
    similarities = [0.0] * len(rows) if cosines is None else cosines.tolist()
    for row, entry, cosine in zip(rows, stored, similarities, strict=True):
        read[number, row] = (entry, cosine)
