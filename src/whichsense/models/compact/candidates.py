"""From span scores to candidate answers: strings, where they stand, and how much speaks for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whichsense.answers import fullest, merged
from whichsense.models.compact.inputs import Pair
from whichsense.models.compact.runtime import Floats, Late
from whichsense.text import sentences
from whichsense.types import Hit, Passage

LONGEST_SPAN = 16  # tokens
_SPANS = 12  # best ones of each passage that are looked at
_LEAST = 1e-4  # of a passage's probability: what is below says nothing
_SENTENCE_MARKS = (". ", "! ", "? ", '." ', ".) ", "\n")
_EDGES = " \t\n,;:"
_AROUND = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"), ('"', '"'))


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of a passage, as the reader found it. `tokens` are (first, last + 1) of the pair."""

    passage: int
    """Its place among the passages that were read."""
    surface: str
    start: int
    end: int
    in_title: bool
    tokens: tuple[int, int]
    probability: float
    """Of the span, given the passage."""
    mass: float
    """The same times the passage's probability."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with everything that was found to mean the same."""

    text: str
    mentions: tuple[Mention, ...]
    """Those with most mass first."""

    @property
    def mass(self) -> float:
        return sum(mention.mass for mention in self.mentions)


@dataclass(frozen=True)
class Evidence:
    """A question's passages as the encoder read them, best first. Nothing about them is worked out twice."""

    question: str
    hits: tuple[Hit, ...]
    """With the score that the encoder gave; `found` is the place and score in the search."""
    pairs: tuple[Pair, ...]
    read: tuple[Late, ...]
    found: tuple[tuple[int, float], ...]

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(hit.passage for hit in self.hits)


def passage_probabilities(read: Sequence[Late]) -> tuple[Floats, float]:
    """Of each passage to hold the answer, and of none: a null passage with score 0 stands among them."""
    scores = np.array([*(one.relevance for one in read), 0.0])
    weights = np.exp(scores - scores.max())
    found = weights / weights.sum()
    return found[:-1].astype(np.float32), float(found[-1])


def mentions(evidence: Evidence, tokens: Sequence[str]) -> list[Mention]:
    """The best spans of every passage. `tokens` names the vocabulary: an answer is made of whole words."""
    shares, _ = passage_probabilities(evidence.read)
    return [
        mention for place, share in enumerate(shares.tolist()) for mention in _mentions(evidence, place, share, tokens)
    ]


def _mentions(evidence: Evidence, place: int, share: float, tokens: Sequence[str]) -> list[Mention]:
    pair, passage = evidence.pairs[place], evidence.passages[place]
    probabilities = span_probabilities(pair, evidence.read[place].span)
    best = np.argsort(-probabilities, axis=None, kind="stable")[: 8 * _SPANS]
    inside = [tokens[number].startswith("##") for number in pair.ids] + [False]
    found: list[Mention] = []
    for flat in best.tolist():
        first, length = divmod(flat, LONGEST_SPAN)
        last = first + length
        probability = float(probabilities[first, length])
        if len(found) == _SPANS or probability < _LEAST:
            break
        if inside[first] or inside[last + 1]:
            continue
        in_title = pair.title[0] <= first < pair.title[1]
        text = passage.title if in_title else passage.text
        start, end = trimmed(text, pair.starts[first], pair.ends[last])
        if start < end and not cuts_number(text, start, end) and not crosses_sentences(text[start:end]):
            where = (first, last + 1)
            found.append(Mention(place, text[start:end], start, end, in_title, where, probability, share * probability))
    return found


def span_probabilities(pair: Pair, scores: Floats) -> Floats:
    """P(first token) P(last token) of spans of up to 16 tokens inside the title or inside the text.

    As first token × length - 1. What is given to ends that fit no beginning is lost: it adds up to less than 1.
    """
    count = len(pair)
    region = np.zeros(count, dtype=bool)
    for first, last in (pair.title, pair.text):
        region[first:last] = True
    if not region.any():
        return np.zeros((count, LONGEST_SPAN), dtype=np.float32)
    weights = np.where(region[:, None], np.exp(scores - scores[region].max(axis=0)), 0)
    weights /= weights.sum(axis=0)
    ends = np.concatenate([weights[:, 1], np.zeros(LONGEST_SPAN)])
    places = np.arange(count)[:, None] + np.arange(LONGEST_SPAN)
    allowed = np.zeros((count, LONGEST_SPAN), dtype=bool)
    for first, last in (pair.title, pair.text):
        allowed[first:last] = places[first:last] < last
    return np.asarray(np.where(allowed, weights[:, :1] * ends[places], 0), dtype=np.float32)


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without commas and lone brackets or quotes at its edges.

    >>> text = 'It was (Tony Goldwyn), the "star".'
    >>> [text[slice(*trimmed(text, start, end))] for start, end in ((7, 21), (7, 22), (27, 32), (7, 21))]
    ['Tony Goldwyn', 'Tony Goldwyn', 'star', 'Tony Goldwyn']
    """
    while start < end:
        inner = text[start:end]
        if _loose(inner[-1], inner):
            end -= 1
        elif _loose(inner[0], inner):
            start += 1
        elif len(inner) > 2 and (inner[0], inner[-1]) in _AROUND:
            start, end = start + 1, end - 1
        else:
            break
    return start, end


def _loose(edge: str, inner: str) -> bool:
    """A comma or space, or one half of brackets or quotes whose other half is not there."""
    halves = [pair for pair in _AROUND if edge in pair]
    return edge in _EDGES or any(sum(map(inner.count, set(pair))) == 1 for pair in halves)


def cuts_number(text: str, start: int, end: int) -> bool:
    """Whether a span begins or ends inside a number: 500 of 1,500."""
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    begins = len(before) == 2 and before[0].isdigit() and before[1] in ",." and text[start].isdigit()
    ends = len(after) == 2 and after[1].isdigit() and after[0] in ",." and text[end - 1].isdigit()
    return begins or ends


def crosses_sentences(inner: str) -> bool:
    """Whether a span holds the end of a sentence and the beginning of the next.

    >>> crosses_sentences("in 1953. The next"), crosses_sentences("J. K. Rowling"), crosses_sentences("in 1953")
    (True, False, False)
    """
    return any(mark in inner for mark in _SENTENCE_MARKS) and len(sentences(inner)) > 1


def gathered(found: Sequence[Mention], most: int = 16) -> list[Answer]:
    """Mentions that mean the same brought together: the answers, those with most mass first."""
    totals: dict[str, float] = {}
    for mention in found:
        totals[mention.surface] = totals.get(mention.surface, 0.0) + mention.mass
    surfaces = sorted(totals, key=lambda surface: -totals[surface])[: 8 * most]
    answers = []
    for group in merged(surfaces, [totals[surface] for surface in surfaces])[:most]:
        names = [surfaces[place] for place in group]
        own = [mention for mention in found if mention.surface in names]
        text = fullest(names, [totals[name] for name in names])
        answers.append(Answer(text, tuple(sorted(own, key=lambda mention: -mention.mass))))
    return answers
