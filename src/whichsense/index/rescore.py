"""A second look at the best lexical hits: cheap signs, read off the text, that BM25 does not see.

A linear model over six features, fitted on 4,500 AmbigNQ training questions (listwise softmax, BM25's score counts 1).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from whichsense.index.query import QUESTION_WORDS, content_words, stem

# Title and text of a hit, in UTF-8: lower-casing bytes is many times faster, and question words are ASCII here.
Text = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Weights:
    """What each sign adds to the score."""

    coverage: float = 20.1
    """The question's content words are there (share, weighted by how rare they are)."""
    title: float = 4.8
    """Every word of the title, without what stands in brackets, is in the question."""
    pairs: float = 10.4
    """Words that are neighbours in the question are neighbours there (share)."""
    lead: float = 2.2
    """The text begins with the title: the first passage of an article."""
    year: float = 15.2
    """Asked when: there is a year."""
    names: float = 12.9
    """Asked who: there are capitalised words (at most 20, as a share of 20)."""


def rescored(
    words: Sequence[str],
    rarity: Callable[[str], float],
    scores: Sequence[float],
    texts: Sequence[Text],
    weights: Weights | None = None,
) -> NDArray[np.float64]:
    """New scores of the hits, in their order. `words` are the question's; `rarity` is the idf of a word."""
    weights = weights or Weights()
    new = np.array(scores, dtype=np.float64)
    new += _word_signs(words, rarity, texts, weights)
    asked = set(words)
    if texts and asked & {"who", "whom"}:
        new += weights.names / 20 * np.minimum(_count(_capitals, texts), 20)
    if texts and asked & {"when", "year", "date"}:
        new += weights.year * (_count(_years, texts) > 0)
    return new


def _word_signs(
    words: Sequence[str], rarity: Callable[[str], float], texts: Sequence[Text], weights: Weights
) -> list[float]:
    rare = [(_prefix(word), rarity(word)) for word in content_words(words)]
    total = sum(value for _, value in rare) or 1.0
    keys = [(prefix, weights.coverage * value / total) for prefix, value in rare]
    pairs = [f"{a} {b}".encode() for a, b in itertools.pairwise(words) if not QUESTION_WORDS & {a, b}]
    per_pair = weights.pairs / (len(pairs) or 1)
    known = {word.encode() for word in (*words, *map(stem, words))}
    signs = []
    for title, text in texts:  # the hot loop of a search: plain statements, no generators
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
        named = head.partition(b"(")[0].split()
        if named and (known.issuperset(named) or known.issuperset(map(_stem, named))):
            sign += weights.title
        if head and both.startswith(head, len(title) + 3):
            sign += weights.lead
        signs.append(sign)
    return signs


@lru_cache(maxsize=100_000)
def _stem(word: bytes) -> bytes:
    return stem(word.decode("utf-8", "replace")).encode()


def _prefix(word: str) -> bytes:
    """What a word and its stem share, at the start of a word: found in plain text without stemming it."""
    shared = os.path.commonprefix([word, stem(word)]) if len(word) > 3 else word  # noqa: RUF071 (characters are meant)
    return f" {shared}".encode()


def _count(marks: Callable[[NDArray[np.uint8]], NDArray[np.bool_]], texts: Sequence[Text]) -> NDArray[np.int32]:
    """How often a mark stands in each text: counted over the bytes of all of them at once.

    Each text begins with a line break, because a mark is noted at the byte before the thing it marks.
    """
    bodies = [b"\n%b\n%b" % text for text in texts]
    starts = np.zeros(len(bodies), dtype=np.int64)
    np.cumsum([len(body) for body in bodies[:-1]], out=starts[1:])
    joined = np.frombuffer(b"".join(bodies) + b"\n    ", dtype=np.uint8)
    return np.asarray(np.add.reduceat(marks(joined), starts, dtype=np.int32), dtype=np.int32)


def _capitals(text: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """A space and a capital letter."""
    return np.asarray((text[:-1] == 32) & (text[1:] >= 65) & (text[1:] <= 90))


def _years(text: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Four digits, the first of them 1 or 2, with no digit before or behind."""
    digit = (text >= 48) & (text <= 57)
    four = digit[1:-4] & digit[2:-3] & digit[3:-2] & digit[4:-1]
    return four & ~digit[:-5] & ~digit[5:] & (text[1:-4] >= 49) & (text[1:-4] <= 50)
