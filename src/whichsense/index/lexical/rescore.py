"""Rescoring of the best hits by cheap features of the text that neither BM25 nor a cosine sees.

A linear model, fitted on AmbigNQ's training questions (listwise softmax), once for search by words, where BM25's score
counts 1, and once for both searches together.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from whichsense.index.lexical.query import content_words, stem
from whichsense.text.function_words import QUESTION_WORDS

# Title and text of a hit, in UTF-8: lower-casing bytes is many times faster, and question words are ASCII here.
Text = tuple[bytes, bytes]

_WHO, _WHEN = {"who", "whom", "whose"}, {"when", "year", "date"}
_HOW = set(
    "many much old long far tall high large big deep fast often heavy wide".split()
)
_NUMBER = {"number", "population", "percentage", "percent", "age"}
# Counting " A" and " 0" in translated bytes finds names and numbers many times faster than patterns do.
_CAPITALS, _DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"0123456789"
_KINDS = bytes.maketrans(_CAPITALS + _DIGITS, b"A" * 26 + b"0" * 10)
_OTHERS = bytes(set(range(256)) - set(_DIGITS))
# All but digits become spaces: what is left of a year is " 0000 ".
_ONLY_DIGITS = bytes.maketrans(_OTHERS + _DIGITS, b" " * len(_OTHERS) + b"0" * 10)


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
    scores: Sequence[float] | NDArray[np.float64],
    texts: Sequence[Text],
    weights: Weights,
) -> NDArray[np.float64]:
    """New scores of the hits, in their order. `words` are the question's; `rarity` is the idf of a word."""
    new = weights.lexical * np.array(scores, dtype=np.float64)
    if not texts:
        return new
    new += _word_signs(words, rarity, texts, weights)
    if weights.length:
        new += weights.length * np.log([len(text) + 1 for _, text in texts])
    return new + _hints(set(words), texts, weights)


def _hints(
    asked: set[str], texts: Sequence[Text], weights: Weights
) -> NDArray[np.float64]:
    """What is added for texts that hold the kind of thing that is asked for."""
    hints = np.zeros(len(texts))
    names = 0.0
    if asked & _WHO:
        names = weights.names
    elif "where" in asked:
        names = weights.places
    if names:
        hints += [names / 20 * _count(text, b" A", 20) for text in texts]
    if weights.year and asked & _WHEN:
        hints += [weights.year * _has_year(b"%b\n%b" % text) for text in texts]
    if weights.numbers and (asked & _NUMBER or ("how" in asked and asked & _HOW)):
        hints += [weights.numbers / 10 * _count(text, b" 0", 10) for text in texts]
    return hints


def _count(text: Text, kind: bytes, most: int) -> int:
    """How many words begin with a capital (" A") or a digit (" 0"), up to `most`."""
    both = b"%b\n%b" % text
    return min(both.translate(_KINDS).count(kind), most)


def _word_signs(
    words: Sequence[str],
    rarity: Callable[[str], float],
    texts: Sequence[Text],
    weights: Weights,
) -> list[float]:
    """What coverage, pairs, title and lead add to each text."""
    keys = _content_keys(words, rarity, weights.coverage)
    pairs = []
    for first, second in itertools.pairwise(words):
        if not QUESTION_WORDS & {first, second}:
            pairs.append(f"{first} {second}".encode())
    per_pair = weights.pairs / (len(pairs) or 1)
    # A title's word is known by the form that the question has, or by its stem.
    known = set(map(str.encode, (*words, *map(stem, words))))
    signs = []
    # The hot loop of a search: plain statements, no generators.
    for title, text in texts:
        both = b" %b  %b" % (title, text)
        both = both.lower()
        sign = 0.0
        for key, value in keys:
            if key in both:
                sign += value
        for pair in pairs:
            if pair in both:
                sign += per_pair
        head = both[1 : len(title) + 1]
        if head:
            sign += _title_sign(head, known, weights)
            if both.startswith(head, len(title) + 3):
                sign += weights.lead
        signs.append(sign)
    return signs


def _content_keys(
    words: Sequence[str], rarity: Callable[[str], float], coverage: float
) -> list[tuple[bytes, float]]:
    """The prefix of each content word, and what it adds to a text that has it: its share of `coverage`."""
    content = content_words(words)
    rarities = [rarity(word) for word in content]
    total = sum(rarities) or 1.0
    keys = []
    for word, value in zip(content, rarities, strict=True):
        keys.append((_prefix(word), coverage * value / total))
    return keys


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
    """What a word and its stem share, at the start of a word: found in plain text without stemming it."""
    shared = os.path.commonprefix([word, stem(word)]) if len(word) > 3 else word  # noqa: RUF071 (characters are meant)
    return f" {shared}".encode()
