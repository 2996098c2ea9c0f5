"""Rank by BM25: bounds on what tantivy computed, and exact scores from the texts where they decide."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
import tantivy
from numpy.typing import NDArray

from whichsense.index.lexical import (
    Lengths,
    content_analyzer,
    content_words,
    idf,
    query_terms,
    stem,
)
from whichsense.index.store import TEXT, TITLE
from whichsense.text.words import ASKING_NUMBERS, ASKING_WHEN, ASKING_WHO, HOW_MUCH, QUESTION_WORDS

# Rescoring of the best hits by cheap features of the text that neither BM25 nor a cosine sees.
#
# A linear model, fitted on AmbigNQ's training questions (listwise softmax), once for search by words,
# where BM25's score counts 1, and once for both searches together.

Floats = NDArray[np.float64]
# Title and text of a hit, in UTF-8: lower-casing bytes is many times faster, and question words are ASCII here.
Text = tuple[bytes, bytes]

_DIGITS = b"0123456789"
_CAPITALS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OTHERS = bytes(set(range(256)) - set(_DIGITS))
# All but digits become spaces: what is left of a year is " 0000 ".
_ONLY_DIGITS = bytes.maketrans(_OTHERS + _DIGITS, b" " * len(_OTHERS) + b"0" * 10)
# All digits become 0, all capitals A.
_KINDS = bytes.maketrans(_DIGITS + _CAPITALS, b"0" * 10 + b"A" * 26)


@dataclass(frozen=True, slots=True)
class Weights:
    """What each feature adds to the score."""

    lexical: float
    """BM25's score."""
    coverage: float
    """The question's content words are there (share, weighted by how rare they are)."""
    title: float
    """Every word of the title, without what stands in brackets, is in the question."""
    title_novelty: float
    """The share of the title's words that are not in the question: an answer is often a title itself."""
    pairs: float
    """Words that are neighbours in the question are neighbours there (share)."""
    lead: float
    """The text begins with the title: the first passage of an article."""
    length: float
    """The logarithm of the text's length."""
    year: float
    """Asked when: there is a year (from 1000 to 2999)."""
    names: float
    """Asked who: there are capitalised words (at most 20, as a share of 20)."""
    places: float
    """Asked where: the same."""
    numbers: float
    """Asked how many: there are numbers (at most 10, as a share of 10)."""


# Fitted on the first 50 hits of 2,500 training questions.
BY_WORDS = Weights(
    lexical=1.0,
    coverage=26.6,
    title=8.5,
    title_novelty=0.0,
    pairs=15.1,
    lead=3.3,
    length=1.0,
    year=20.5,
    names=17.6,
    places=9.2,
    numbers=26.4,
)
# Fitted on the eighth of the training questions that the static encoder has not seen; its cosine counts 60 beside them.
BY_BOTH = Weights(
    lexical=0.4,
    coverage=17.5,
    title=4.4,
    title_novelty=5.9,
    pairs=6.9,
    lead=0.0,
    length=2.1,
    year=17.0,
    names=17.3,
    places=15.1,
    numbers=11.4,
)


def rescore(
    words: Sequence[str],
    rarity: Callable[[str], float],
    scores: Sequence[float] | Floats,
    texts: Sequence[Text],
    weights: Weights,
) -> Floats:
    """Return new scores of the hits, in their order. `words` are the question's; `rarity` is the idf of a word."""
    new = weights.lexical * np.array(scores, dtype=np.float64)
    if not texts:
        return new
    new += _word_signs(words, rarity, texts, weights)
    new += weights.length * np.log([len(text) + 1 for _, text in texts])
    return new + _hints(set(words), texts, weights)


def _hints(asked: set[str], texts: Sequence[Text], weights: Weights) -> Floats:
    """Return what is added for texts that hold the kind of thing that is asked for."""
    names = 0.0
    if asked & ASKING_WHO:
        names = weights.names
    elif "where" in asked:
        names = weights.places
    year = weights.year if asked & ASKING_WHEN else 0.0
    numbers = weights.numbers if _asks_how_many(asked) else 0.0
    hints = np.zeros(len(texts))
    if names:
        hints += names / 20 * _counted(b" A", texts, 20)
    if year:
        hints += [year * _has_year(b"%b\n%b" % text) for text in texts]
    if numbers:
        hints += numbers / 10 * _counted(b" 0", texts, 10)
    return hints


def _asks_how_many(asked: set[str]) -> bool:
    return bool(asked & ASKING_NUMBERS or ("how" in asked and asked & HOW_MUCH))


def _counted(kind: bytes, texts: Sequence[Text], most: int) -> NDArray[np.int64]:
    """Return how many words of each text follow a space and begin as `kind` does, `most` at most."""
    counts = [(b"%b\n%b" % text).translate(_KINDS).count(kind) for text in texts]
    return np.minimum(counts, most)


def _word_signs(
    words: Sequence[str], rarity: Callable[[str], float], texts: Sequence[Text], weights: Weights
) -> list[float]:
    """Return what coverage, pairs, title and lead add to each text."""
    signs = _content_keys(words, rarity, weights.coverage)
    pairs = [
        f"{first} {second}".encode()
        for first, second in itertools.pairwise(words)
        if not QUESTION_WORDS & {first, second}
    ]
    signs += [(pair, weights.pairs / len(pairs)) for pair in pairs]
    # A title's word is known by the form that the question has, or by its stem.
    known = set(map(str.encode, (*words, *map(stem, words))))
    return [_sign(title.lower(), text.lower(), signs, known, weights) for title, text in texts]


def _sign(
    title: bytes,
    text: bytes,
    signs: Sequence[tuple[bytes, float]],
    known: set[bytes],
    weights: Weights,
) -> float:
    # A pair never goes from the title to the text: two spaces are between them.
    whole = b" %b  %b" % (title, text)
    total = 0.0
    for sign, value in signs:
        if sign in whole:
            total += value
    if title:
        total += _title_sign(title, known, weights)
        if text.startswith(title):
            total += weights.lead
    return total


def _content_keys(
    words: Sequence[str], rarity: Callable[[str], float], coverage: float
) -> list[tuple[bytes, float]]:
    """Return how each content word begins, and what it adds to a text that has it: its share of `coverage`."""
    content = content_words(words)
    rarities = [rarity(word) for word in content]
    total = sum(rarities) or 1.0
    return [
        (b" " + _prefix(word), coverage * value / total)
        for word, value in zip(content, rarities, strict=True)
    ]


def _title_sign(title: bytes, known: set[bytes], weights: Weights) -> float:
    named = title.partition(b"(")[0].split()
    unknown = 0
    for word in named:
        if word not in known and _stem(word) not in known:
            if not weights.title_novelty:
                return 0.0
            unknown += 1
    if unknown:
        return weights.title_novelty * unknown / len(named)
    return weights.title if named else 0.0


@lru_cache(maxsize=100_000)
def _stem(word: bytes) -> bytes:
    return stem(word.decode("utf-8", "replace")).encode()


def _has_year(text: bytes) -> bool:
    digits = b" %b " % text.translate(_ONLY_DIGITS)
    at = digits.find(b" 0000 ")
    while at >= 0:
        if text[at] in b"12":
            return True
        at = digits.find(b" 0000 ", at + 5)
    return False


def _prefix(word: str) -> bytes:
    """Return what a word and its stem share, at the start of a word: found in plain text without stemming it."""
    shared = os.path.commonprefix([word, stem(word)]) if len(word) > 3 else word  # noqa: RUF071 (characters are meant)
    return shared.encode()


# The order of passages by their words, worked out from what the shards of an index found.
#
# tantivy adds float32 numbers in an order of its own, and a shard's average length is not that of the
# whole index. Its scores are therefore exact to a few digits only. Wherever that could change the
# order, BM25 is worked out again from the texts, so that one index and its shards give the same
# passages, the same order and the same scores.

# How many of BM25's hits are scored again. With 150, two thirds of a point more answers are among the first hundred
# (none among the first twenty), for half the speed.
RESCORED = 50
# The share by which tantivy's scores may be off through rounding.
_ROUNDING = 1e-5
_LOWER = {*b"abcdefghijklmnopqrstuvwxyz0123456789"}
# Lower-cases letters; all but letters and digits become spaces.
_WORDS = bytes.maketrans(
    bytes({*range(128)} - _LOWER - {*_CAPITALS}) + _CAPITALS,
    b" " * (128 - len(_LOWER) - len(_CAPITALS)) + _CAPITALS.lower(),
)

_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
# No term of a question has this byte: it is in no UTF-8.
_NOT_ASCII = bytes.maketrans(bytes(range(128, 256)), b"\xff" * 128)


@cache
def _analyzer() -> tantivy.TextAnalyzer:
    return content_analyzer()


def asked_terms(words: Sequence[str]) -> list[str]:
    """Return the terms that a question of these words asks for."""
    return [term for term, _ in query_terms(content_words(words))]


@dataclass(frozen=True)
class Question:
    """A question's words, and what each of its terms weighs among all passages of an index."""

    words: Sequence[str]
    weights: Mapping[str, float]
    """Term → boost × idf × (k1 + 1). A term that no passage has is not there."""
    rarities: Mapping[str, float]
    saturation: float
    slack: float
    """Scores of a shard that differ by less than this share may be in the wrong order."""
    certain: bool
    """Whether scores that differ by more than `slack` are right to the digits that count."""

    @classmethod
    def of(
        cls, words: Sequence[str], having: Mapping[str, int], shards: Sequence[Lengths]
    ) -> Question:
        """Weigh the words of a question; `having` says how many passages have each term."""
        together = Lengths.together(shards)
        terms = query_terms(content_words(words))
        rarities = {}
        weights: dict[str, float] = {}
        for term, boost in terms:
            rarities[term] = idf(having[term], together.passages)
            if having[term]:
                weight = boost * rarities[term] * 2.2
                weights[term] = weights.get(term, 0.0) + weight
        saturation = together.saturation
        slack = 2 * _ROUNDING
        for shard in shards:
            if shard.passages:
                slack = max(slack, 2 * (abs(shard.saturation - saturation) + _ROUNDING))
        return cls(words, weights, rarities, saturation, slack, len(shards) == 1)

    def rarity(self, term: str) -> float:
        """Return the idf of a word of the question."""
        return self.rarities[term]

    @cached_property
    def spaced_terms(self) -> list[tuple[bytes, float]]:
        """Terms between spaces, to be counted in a text, and their weights."""
        return [(f" {term} ".encode(), weight) for term, weight in self.weights.items()]


def boosts(
    weights: Mapping[str, float], frequencies: Sequence[int], lengths: Lengths
) -> list[tuple[str, float]]:
    """Return the terms that a shard has, boosted so that its own idf gives the weights of the whole index."""
    terms = []
    for (term, weight), having in zip(weights.items(), frequencies, strict=True):
        if having:
            own = 2.2 * idf(having, lengths.passages)
            terms.append((term, weight / own))
    return terms


def exact_scores(
    question: Question, scores: Floats, stored: Sequence[bytes], settled: int
) -> Floats:
    """Return BM25's scores of passages, best first, worked out from their texts where tantivy's digits do not suffice.

    The first `settled` will be ordered by more than these scores (`corrections`), so that only the last of them counts.
    """
    if not question.certain or not len(scores):
        return bm25_scores(question, stored)
    # Lengths do not count, so that passages with the same terms as often have one score, and tantivy gives most of
    # them the same bits: their order is the corpus's. Only values that are near each other are worked out, each once.
    values, first, same = np.unique(-scores, return_index=True, return_inverse=True)
    exact = -values
    last = scores[min(settled, len(scores)) - 1]
    again = _near_neighbours(exact, question.slack)
    again &= exact <= last * (1 + question.slack)
    texts = [stored[index] for index in first[again].tolist()]
    exact[again] = bm25_scores(question, texts)
    return exact[same]


def corrections(
    question: Question, scores: Floats, stored: Sequence[bytes], together: Floats
) -> Floats:
    """Return what is missing from BM25's scores, given for passages whose scores by all features are nearly equal.

    There are as many `scores` as BM25 found passages; more passages may stand behind them.
    """
    missing = np.zeros(len(together))
    if question.certain:
        order = np.argsort(-together, kind="stable")
        near = _near_neighbours(together[order], question.slack)
        places = order[near & (order < len(scores))]
        texts = [stored[place] for place in places.tolist()]
        missing[places] = bm25_scores(question, texts) - scores[places]
    return missing


def _near_neighbours(scores: Floats, slack: float) -> NDArray[np.bool_]:
    """Return which of some falling scores have a neighbour within a share of them.

    >>> _near_neighbours(np.array([9.0, 5.0, 4.999, 2.0]), 0.01).tolist()
    [False, True, True, False]
    """
    near = np.zeros(len(scores), dtype=bool)
    close = scores[:-1] - scores[1:] <= slack * np.abs(scores[:-1])
    near[:-1] |= close
    near[1:] |= close
    return near


def bm25_scores(question: Question, stored: Sequence[bytes]) -> Floats:
    """Return BM25's scores of passages, worked out from their texts.

    The words of all passages are one text in which each term is looked for: a few long scans, not many short ones.
    """
    bodies = []
    ends = []  # of each passage in the joined text
    length = 0
    for entry in stored:
        body = _indexed_words(entry)
        bodies.append(body)
        length += len(body)
        ends.append(length)
    words = b"".join(bodies)
    scores = [0.0] * len(stored)
    for term, weight in question.spaced_terms:
        for place, frequency in _frequencies(words, ends, term).items():
            scores[place] += weight * frequency / (frequency + question.saturation)
    return np.array(scores)


def _frequencies(words: bytes, ends: Sequence[int], term: bytes) -> dict[int, int]:
    """Return how often a term occurs in each of some passages that are one text; those without it are left out.

    >>> _frequencies(b" the cat  a cat  cat cat ", [9, 16, 25], b" cat ")
    {0: 1, 1: 1, 2: 2}
    """
    frequencies: dict[int, int] = {}
    number = 0  # of the passage
    place = words.find(term)
    while place >= 0:
        while place >= ends[number]:
            number += 1
        frequencies[number] = frequencies.get(number, 0) + 1
        place = words.find(term, place + 1)  # one space may end a word and begin the next
    return frequencies


def _indexed_words(stored: bytes) -> bytes:
    """Return the words of a stored passage as tantivy indexes them, the title's twice, between spaces.

    Its analyzer is slow, and needed only for words that are not ASCII: they follow the others.

    >>> _indexed_words("7\\nÖtzi\\n\\n\\n0\\n5\\nA man".encode())
    b' \\xff\\xfftzi \\xff\\xfftzi a man otzi otzi '
    """
    fields = stored.split(b"\n", TEXT)
    body = b" %b\n%b\n%b " % (fields[TITLE], fields[TITLE], fields[TEXT])
    words = body.translate(_WORDS)
    if body.isascii():
        return words
    other = b" ".join(_words_beyond_ascii(words))
    folded = " ".join(_analyzer().analyze(other.decode()))
    return b"%b%b " % (words.translate(_NOT_ASCII), folded.encode())


def _words_beyond_ascii(words: bytes) -> list[bytes]:
    """Return the words of a text between spaces that are not ASCII, without splitting all of it."""
    beyond = []
    end = 0
    for match in _HIGH_BYTES.finditer(words):
        if match.start() >= end:
            start = words.rfind(b" ", 0, match.start()) + 1
            end = words.find(b" ", match.start())
            beyond.append(words[start:end])
    return beyond


def rescored(
    question: Question, scores: Floats, stored: Sequence[bytes], weights: Weights
) -> Floats:
    """Return new scores of passages, by features of their texts beside BM25's score."""
    texts = []
    for entry in stored:
        fields = entry.split(b"\n", TEXT)
        texts.append((fields[TITLE], fields[TEXT]))
    return rescore(question.words, question.rarity, scores, texts, weights)


def rank_by_words(
    question: Question, scores: Floats, stored: Sequence[bytes]
) -> tuple[list[int], Floats]:
    """Return the order of BM25's hits, best first, the first of them scored again: places and scores, both in that
    order.
    """
    first = rescored(question, scores[:RESCORED], stored[:RESCORED], BY_WORDS)
    first += corrections(question, scores[:RESCORED], stored, first)
    count = len(first)
    order = np.argsort(-first, kind="stable")
    if not count:
        return [], first
    # BM25's scores lack what rescoring added. They are lowered, so that they continue below the rescored ones.
    lowered = float(first.min()) - scores[count - 1]
    rest = scores[count:] + lowered
    # Beyond the first, BM25's order stands.
    places = [*order.tolist(), *range(count, len(scores))]
    return places, np.concatenate([first[order], rest])


def score_by_both(
    question: Question, scores: Floats, stored: Sequence[bytes], others: Floats
) -> Floats:
    """Return scores of passages by their words, with `others` added: what else speaks for each.

    BM25 found the first of them, as many as there are scores. The rest starts with the last of these.
    """
    lowest = scores[-1:] if len(scores) else np.zeros(1)
    lexical = np.concatenate([scores, lowest.repeat(len(stored) - len(scores))])
    together = rescored(question, lexical, stored, BY_BOTH) + others
    missing = corrections(question, scores, stored, together)
    return together + BY_BOTH.lexical * missing
