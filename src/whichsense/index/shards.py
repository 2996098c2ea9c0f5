"""An index in shards: how passages are spread over them, and how what they find is ranked as one."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput, ClusterFault, DamagedIndex
from whichsense.files import lock, write_atomically
from whichsense.index.bm25 import (
    RESCORED,
    Question,
    asked_terms,
    boosts,
    exact_scores,
    rank_by_words,
    score_by_both,
)
from whichsense.index.folder import Sharding, shard_root
from whichsense.index.lexical import Lengths, Texts, question_words
from whichsense.index.store import name_key, unpack
from whichsense.jobs.workers import Executor, run_forked
from whichsense.types import Hit, Passage

if TYPE_CHECKING:
    from whichsense.index.dense import Vectors


# A shard: a folder of passages with their vectors that answers for its part of an index, or for the
# whole of it.
#
# What it finds is ranked elsewhere, together with what others found. Its answers are plain numbers
# and bytes, so that a shard may be in this process or on another machine.

KEYS = "keys.npy"
_TWO_THREADS = 50_000  # with fewer vectors, starting a thread costs what it saves


class ByWords(NamedTuple):
    """Passages that BM25 found. Keys order the passages of all shards as one index would."""

    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    scores: NDArray[np.float64]


class ByMeaning(NamedTuple):
    """Passages whose vectors are near, by int8 products (`rough`) and by cosine."""

    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    rough: NDArray[np.float32]
    cosines: NDArray[np.float32]


class Entries(NamedTuple):
    """Passages as they are stored, and their cosines with a question's vector, if it has one."""

    rows: list[int]
    stored: list[bytes]
    cosines: NDArray[np.float32] | None


class Answer(NamedTuple):
    """What a shard found. What was not asked for is None."""

    by_words: ByWords | None
    by_meaning: ByMeaning | None
    entries: Entries
    """Of what is probably among the best of all shards, so that it need not be read by another request."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question as a shard needs it."""

    k: int
    weights: Mapping[str, float] | None = None
    """Of its terms, among all passages; None where words do not count."""
    slack: float = 0.0
    vector: NDArray[np.float32] | None = None
    """None where meaning does not count."""
    vectors: int = 0
    """How many vectors all shards have."""
    ahead: int = 0
    """How many of the best by words, and of the nearest, come with their texts."""


class Shard:
    """One immutable folder, opened. Rows are its own; keys are those of the whole index."""

    def __init__(self, root: Path, *, dense: bool) -> None:
        self.root = root
        self.texts = Texts(root)
        self.vectors = _open_vectors(root / "vectors") if dense else None
        # The key of each row; None where rows are keys.
        self._keys: NDArray[np.int64] | None = None
        if (root / KEYS).exists():
            self._keys = np.asarray(np.load(root / KEYS, mmap_mode="r"))

    def lengths(self) -> Lengths:
        return self.texts.lengths

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """Return how many passages have each term."""
        return self.texts.lexical.document_frequencies(terms)

    def search(self, query: Query) -> Answer:
        """Return what may be among the best k of all shards, by words and by meaning."""
        by_both = query.weights is not None and query.vector is not None
        if by_both and self.vectors and self.vectors.count >= _TWO_THREADS:
            # Both engines let go of the interpreter, so that two cores work.
            with ThreadPoolExecutor(1) as thread:
                words = thread.submit(self._by_words, query)
                by_meaning = self._by_meaning(query)
                by_words = words.result()
        else:
            by_words, by_meaning = self._by_words(query), self._by_meaning(query)
        ahead = _first_rows(by_words, by_meaning, query.ahead)
        entries = Entries(ahead, *self.read(ahead, query.vector))
        return Answer(by_words, by_meaning, entries)

    def _by_words(self, query: Query) -> ByWords | None:
        if query.weights is None:
            return None
        having = self.document_frequencies(list(query.weights))
        terms = boosts(query.weights, having, self.texts.lengths)
        rows, scores = self.texts.lexical.search(terms, query.k, query.slack)
        return ByWords(rows, self.keys(rows), scores)

    def _by_meaning(self, query: Query) -> ByMeaning | None:
        if query.vector is None or self.vectors is None:
            return None
        found, rough, cosines = self.vectors.candidates(query.vector, query.k, query.vectors)
        rows = found.astype(np.int64)
        return ByMeaning(rows, self.keys(rows), rough, cosines)

    def read(
        self, rows: Sequence[int], vector: NDArray[np.float32] | None = None
    ) -> tuple[list[bytes], NDArray[np.float32] | None]:
        """Return the stored passages of these rows, and their cosines with a vector."""
        stored = self.texts.passages.stored(rows)
        if vector is None or self.vectors is None:
            return stored, None
        return stored, self.vectors.similarities(vector, rows)

    def named(self, ids: Iterable[str], sources: Iterable[str] = ()) -> list[tuple[int, Passage]]:
        """Return passages with one of these document or passage ids, or sources, by key."""
        return self._by_key(self.texts.named(ids, sources))

    def every(self) -> list[tuple[int, Passage]]:
        """Return all passages, by key."""
        return self._by_key(self.texts.every())

    def _by_key(self, passages: Mapping[int, Passage]) -> list[tuple[int, Passage]]:
        keys = self.keys(np.fromiter(passages, dtype=np.int64))
        return list(zip(keys.tolist(), passages.values(), strict=True))

    def keys(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the keys of these rows."""
        return rows if self._keys is None else self._keys[rows]


def _first_rows(by_words: ByWords | None, by_meaning: ByMeaning | None, count: int) -> list[int]:
    """Return the rows of the best by words and of the nearest, as many of each."""
    rows: set[int] = set()
    if by_words is not None:
        rows.update(by_words.rows[:count].tolist())
    if by_meaning is not None:
        nearest = np.argsort(-by_meaning.cosines, kind="stable")[:count]
        rows.update(by_meaning.rows[nearest].tolist())
    return sorted(rows)


def _open_vectors(folder: Path) -> Vectors:
    from whichsense.index.dense import Vectors  # loaded only where it is used

    return Vectors.open(folder)


# Passages that several shards found, as one table: which of them may be among the best of all.


@dataclass(frozen=True, slots=True)
class Found:
    """Passages of all shards, one place each: shard, row, key, and further columns of numbers."""

    shards: NDArray[np.int64]
    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    numbers: tuple[NDArray[Any], ...] = ()

    @classmethod
    def of(cls, answers: Mapping[int, ByWords | ByMeaning | None]) -> Found:
        shards = [np.empty(0, np.int64)]
        found = []
        for number, answer in answers.items():
            if answer is not None:
                shards.append(np.full(len(answer.rows), number))
                found.append(answer)
        columns = [np.concatenate(column) for column in zip(*found, strict=True)]
        # Where no shard answers, nothing was found.
        rows, keys, *numbers = columns or [np.empty(0, np.int64)] * 4
        return cls(np.concatenate(shards), rows, keys, tuple(numbers))

    def take(self, places: NDArray[np.intp] | slice) -> Found:
        numbers = tuple([column[places] for column in self.numbers])
        return Found(self.shards[places], self.rows[places], self.keys[places], numbers)


def head_by_words(answers: Mapping[int, Answer], k: int, slack: float) -> Found:
    """Return what may be among BM25's best k of all shards: those of the best k scores, and what is within `slack` of
    them.
    """
    found = Found.of({number: one.by_words for number, one in answers.items()})
    scores = found.numbers[0]
    order = np.lexsort((found.keys, -scores))
    if len(order) > k:
        lowest = scores[order[k - 1]] * (1 - slack)
        order = order[scores[order] >= lowest]
    return found.take(order)


def nearest(answers: Mapping[int, Answer], k: int) -> Found:
    from whichsense.index.dense import nearest_of

    found = Found.of({number: one.by_meaning for number, one in answers.items()})
    rough, cosines = found.numbers[:2]
    return found.take(nearest_of(found.keys, rough, cosines, k))


def beside(union: Found, near: Found, best: NDArray[np.intp]) -> list[int]:
    """Return places in `union`: BM25's best, then the other near passages, nearest first."""
    places: list[int] = best.tolist()
    listed = set(places)
    place_of = {key: place for place, key in enumerate(union.keys.tolist())}
    for key in near.keys.tolist():
        place = place_of.get(key)  # None where its shard is gone by now
        if place is not None and place not in listed:
            places.append(place)
    return places


# The order of what the shards of an index find, as one index would give it.
#
# Shards are asked for the numbers of what may be among the best, and for the texts of what is. Where
# messages cost time, their first answer brings the texts that will probably be needed, and the rest
# is asked for only if there is any.

Vector = NDArray[np.float32]
_Place = tuple[int, int]
"""A shard, and a row of it."""


class Ranked(NamedTuple):
    """Stored passages, best first, with their scores."""

    stored: list[bytes]
    scores: list[float]
    coverage: float
    """The share of the index's passages that was searched."""


class Shards(Protocol):
    """The shards of an index, wherever they are."""

    reads_ahead: bool
    """Whether answers bring texts that may not be needed: another request would take longer."""

    @property
    def lengths(self) -> Sequence[Lengths]:
        """Of each shard."""

    def frequencies(self, terms: Sequence[str]) -> tuple[Mapping[str, int], set[int]]:
        """Return how many passages of all shards have each term, and the shards that do not answer: these are
        estimated.
        """

    def ask(self, verb: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Return the answers of some shards, by number. One that does not answer is left out."""


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

    def by_both(self, text: str, vector: Vector, k: int, depth: int, weight: float) -> Ranked:
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
        """Return the question, weighed, and the shards whose terms could not be counted."""
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

    def _read(self, found: Found, vector: Vector | None, answers: Mapping[int, Answer]) -> _Read:
        """Return the passages, as stored, and their cosines: from the answers, or asked for now."""
        if not self._shards.reads_ahead and len(self._passages) == 1:
            return self._read_alone(found, vector)
        places = list(zip(found.shards.tolist(), found.rows.tolist(), strict=True))
        read, lost = self._read_missing(places, vector, answers)
        if lost:
            there = [place for place, key in enumerate(places) if key in read]
            found = found.take(np.array(there, dtype=np.intp))
        entries = [read[place] for place in places if place in read]
        similarities = np.array([cosine for _, cosine in entries], dtype=np.float32)
        return _Read(found, [stored for stored, _ in entries], similarities, lost)

    def _read_alone(self, found: Found, vector: Vector | None) -> _Read:
        """Return the same of an only shard in this process."""
        stored, cosines = self._shards.ask("read", {0: (found.rows.tolist(), vector)})[0]
        if cosines is None:
            cosines = np.empty(0, np.float32)
        return _Read(found, stored, cosines, set())

    def _read_missing(
        self, places: Sequence[_Place], vector: Vector | None, answers: Mapping[int, Answer]
    ) -> tuple[dict[_Place, tuple[bytes, float]], set[int]]:
        """Return stored passages with cosines, asking for what no answer brought, and the shards that are gone."""
        read: dict[_Place, tuple[bytes, float]] = {}
        for number, answer in answers.items():
            _note(read, number, *answer.entries)
        missing: dict[int, list[int]] = {}
        for number, row in places:
            if (number, row) not in read:
                missing.setdefault(number, []).append(row)
        late = self._shards.ask(
            "read", {number: (rows, vector) for number, rows in missing.items()}
        )
        for number, (stored, cosines) in late.items():
            _note(read, number, missing[number], stored, cosines)
        return read, missing.keys() - late.keys()

    def _coverage(self, answers: Mapping[int, Any], incomplete: Collection[int]) -> float:
        """Return the share of the passages that counted in full: searched and read, and their terms counted."""
        if len(answers) == len(self._passages) and not incomplete:
            return 1.0
        searched = 0
        for number in answers:
            if number not in incomplete:
                searched += self._passages[number]
        return searched / (sum(self._passages) or 1)


def likely_most(k: int, share: float) -> int:
    """Return how many of the best k are in a shard that has this share of the passages, in nearly all cases.

    Three standard deviations above the mean of a binomial distribution.

    >>> likely_most(100, 0.5), likely_most(100, 0.125), likely_most(100, 1)
    (65, 23, 100)
    """
    mean = k * share
    return min(k, math.ceil(mean + 3 * math.sqrt(mean * (1 - share))))


def _note(
    read: dict[_Place, tuple[bytes, float]],
    number: int,
    rows: Sequence[int],
    stored: Sequence[bytes],
    cosines: Vector | None,
) -> None:
    """Note what was read from a shard."""
    similarities = [0.0] * len(rows) if cosines is None else cosines.tolist()
    for row, entry, cosine in zip(rows, stored, similarities, strict=True):
        read[number, row] = (entry, cosine)


# Search over shards: the question goes to all of them, and what they find is ranked as in one index.
#
# A shard that does not answer is left out: its passages are missing, and nothing else changes.


class LocalShards:
    """Shards in this process, asked one after another."""

    reads_ahead = False

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = shards

    @property
    def lengths(self) -> list[Lengths]:
        return [shard.lengths() for shard in self.shards]

    def frequencies(self, terms: Sequence[str]) -> tuple[Mapping[str, int], set[int]]:
        counts = [shard.document_frequencies(terms) for shard in self.shards]
        return dict(zip(terms, map(sum, zip(*counts, strict=True)), strict=True)), set()

    def ask(self, verb: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        return {
            number: getattr(self.shards[number], verb)(*given)
            for number, given in arguments.items()
        }


def ask_all(shards: Shards, verb: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
    """Return what these shards answer, all of them: half of a document is worse than none."""
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
    """Return the share of the index's passages that was searched for these hits."""
    return hits.coverage if isinstance(hits, Hits) else 1.0


def missing_note(hits: Sequence[Hit]) -> str:
    """Return what a person should know of hits for which not all was searched; empty where all was.

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


def hits_of(ranked: Ranked) -> Hits:
    """Unpack the passages that a ranker found."""
    hits = [
        Hit(unpack(stored), score)
        for stored, score in zip(ranked.stored, ranked.scores, strict=True)
    ]
    return Hits(hits, ranked.coverage)


# How an index is spread over shards, and the label by which each shard's folder is known.

BY = ("hash", "source")
_LABEL = "shard.json"
_MOST = 10_000
_ALL_CORES = run_forked(os.cpu_count() or 1)


@dataclass(frozen=True)
class Spread:
    """How many shards there are, which passage goes where, and who does the work."""

    count: int
    by: str = "hash"
    """hash: all shards alike. source: all passages of one source in the same shard."""
    executor: Executor = _ALL_CORES
    remote: bool = False
    """Whether the executor's workers are on other machines, so that they encode passages, too."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= _MOST:
            raise BadInput(f"{self.count} shards: choose a number from 1 to {_MOST:,}.")
        if self.by not in BY:
            raise BadInput(f"No way to shard by '{self.by}'. Choose hash or source.")

    @classmethod
    def of(cls, sharding: Sharding, executor: Executor | None = None) -> Spread:
        """Return the spread that an index has; the work is done here, or by an executor elsewhere."""
        count, by = len(sharding.rows), sharding.by
        if executor is None:
            return cls(count, by)
        return cls(count, by, executor, remote=True)

    def shard_of(self, fingerprint: int, source: str) -> int:
        """Return the number of a passage's shard."""
        if self.by == "hash":
            return fingerprint % self.count
        return name_key(source) % self.count


def new_build() -> str:
    """Return the id of a generation, which all its shards have."""
    return secrets.token_hex(8)


def without(sharding: Sharding, deleted: Sequence[int]) -> Sharding:
    """Return the next generation of the shards, with as many passages deleted from each."""
    passages = [before - gone for before, gone in zip(sharding.passages, deleted, strict=True)]
    return dataclasses.replace(sharding, build=new_build(), passages=tuple(passages))


def write_labels(content: Path, sharding: Sharding) -> None:
    """Write into each shard which one it is, and of which build."""
    of = len(sharding.rows)
    for number in range(of):
        label = json.dumps(_label(sharding.build, number, of))
        write_atomically(shard_root(content, number) / _LABEL, label)


@contextlib.contextmanager
def alone_with(root: Path) -> Iterator[None]:
    """No other worker writes this shard meanwhile: one that was thought to be lost may still be at it."""
    with open(root.parent.parent / f"{root.name}.lock", "ab") as file:
        lock(file, wait=True)
        yield


def check_labels(roots: Sequence[Path], sharding: Sharding) -> None:
    """Raise DamagedIndex where a shard is missing, or is not the one that the manifest means."""
    for number, root in enumerate(roots):
        check_label(root, sharding.build, number, len(sharding.rows))


def check_label(root: Path, build: str, number: int, of: int) -> None:
    """The same for one shard."""
    advice = "Restore that folder from a copy of this index, or build the index again."
    name = f"Shard {number + 1} of {of}"
    try:
        written = json.loads((root / _LABEL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DamagedIndex(f"{name} is missing: there is no '{root / _LABEL}'. {advice}") from None
    except ValueError:
        raise DamagedIndex(f"{name}: '{root / _LABEL}' is damaged. {advice}") from None
    if written != _label(build, number, of):
        raise DamagedIndex(f"{name}: '{root}' is from another build of the index. {advice}")


def _label(build: str, number: int, of: int) -> dict[str, Any]:
    return {"build": build, "shard": number, "of": of}
