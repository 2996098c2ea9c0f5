"""From span scores to candidate answers: strings, where they stand, and how much speaks for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder.inputs import Pair
from whichsense.models.compact.encoder.runtime import Floats, Late
from whichsense.text.answers import fullest, merged
from whichsense.text.dates import is_day, signed
from whichsense.text.words import sentences
from whichsense.types import Hit, Passage

Flags = NDArray[np.bool_]
LONGEST_SPAN = 16  # tokens
_SPANS = 12  # best ones of each passage that are looked at
_ROUNDS = 4  # how often the best of a passage's spans is looked for, each time without those before
_TRUST = 0.25  # 1: later rounds count for what they have of the whole passage; 0: as much as the first
_OVERLAP = (
    0.5  # of an answer's support within others' mentions: it stands in their place
)
_LEAST_SHARE = 1e-3  # of the passages' probability: others are looked at once
_LEAST = 1e-4  # of a passage's probability: what is below says nothing
_SENTENCE_MARKS = (". ", "! ", "? ", '." ', ".) ", "\n")
_EDGES = " \t\n,;:"
_AROUND = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"), ('"', '"'))
_Span = tuple[
    tuple[int, int], bool, int, int, float
]  # tokens, whether in the title, characters there, probability


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
    alone: float
    """Probability of the span, given the passage without what better spans had taken when it was found."""
    left: float = 1.0
    """How much of the passage's probability they had not taken: 1 for the best span and those that overlap it."""
    share: float = 1.0
    """The passage's probability."""
    verdict: float = 0.0
    """The logit of its being an answer, whatever else is."""

    @property
    def probability(self) -> float:
        """Of the span, given the whole passage."""
        return self.left * self.alone

    @property
    def mass(self) -> float:
        return self.share * self.probability

    @property
    def support(self) -> float:
        """What it has with the better spans gone, and less of it the more they had taken."""
        return self.share * self.alone * math.pow(self.left, _TRUST)

    def overlaps(self, other: Mention) -> bool:
        (first, end), (its_first, its_end) = self.tokens, other.tokens
        return self.passage == other.passage and first < its_end and its_first < end


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with everything that was found to mean the same."""

    text: str
    mentions: tuple[Mention, ...]
    """Those with most support first."""

    @property
    def mass(self) -> float:
        return sum(mention.mass for mention in self.mentions)

    @property
    def support(self) -> float:
        return sum(mention.support for mention in self.mentions)

    def overlap(self, others: Sequence[Answer]) -> float:
        """How much of its support overlaps other answers: "Richard" of "Richard Harris" is none of its own."""
        beside = [mention for other in others for mention in other.mentions]
        shared = sum(
            one.support
            for one in self.mentions
            if any(one.overlaps(other) for other in beside)
        )
        return shared / self.support if shared else 0.0


@dataclass(frozen=True)
class Evidence:
    """A question's passages as the encoder read them, best first. Nothing about them is worked out twice."""

    question: str
    hits: tuple[Hit, ...]
    """With the score that the encoder gave; `found` is the place and score in the search."""
    pairs: tuple[Pair, ...]
    read: tuple[Late, ...]
    found: tuple[tuple[int, float], ...]
    alone: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    """What is kept of the question's states when it is read without a passage (`probes.pool_states`)."""

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(hit.passage for hit in self.hits)

    def only(self, places: Sequence[int]) -> Evidence:
        """With some of the passages alone."""
        rows = list(zip(self.hits, self.pairs, self.read, self.found, strict=True))
        hits, pairs, read, found = (
            zip(*(rows[place] for place in places), strict=True)
            if places
            else ((),) * 4
        )
        return replace(self, hits=hits, pairs=pairs, read=read, found=found)


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
        mention
        for place, share in enumerate(shares.tolist())
        for mention in _mentions(evidence, place, share, tokens)
    ]


def _mentions(
    evidence: Evidence, place: int, share: float, tokens: Sequence[str]
) -> list[Mention]:
    """The best spans; then those that are best once the best one's tokens are taken out, and so on.

    The reader learnt to let one answer of a passage win. What else answers the question shows when that one is gone.
    """
    pair, passage, scores = (
        evidence.pairs[place],
        evidence.passages[place],
        evidence.read[place].span,
    )
    whole, taken = (
        edge_probabilities(scores, _free(pair)),
        np.zeros(len(pair), dtype=bool),
    )
    inside = [tokens[number].startswith("##") for number in pair.ids] + [False]
    found: dict[tuple[int, int], Mention] = {}
    for _ in range(_ROUNDS if share > _LEAST_SHARE else 1):
        left = float(whole[~taken].sum(axis=0).prod()) if taken.any() else 1.0
        own = _spans(pair, passage, span_probabilities(pair, scores, taken), inside)
        for where, in_title, start, end, alone in own:
            surface = (passage.title if in_title else passage.text)[start:end]
            found[where] = Mention(
                place, surface, start, end, in_title, where, alone, left, share
            )
        if not own:
            break
        taken[slice(*own[0][0])] = True
    return list(found.values())


def _spans(
    pair: Pair, passage: Passage, probabilities: Floats, inside: Sequence[bool]
) -> list[_Span]:
    """The likeliest spans of a passage that can be answers: whole words and numbers, within one sentence."""
    best = np.argsort(-probabilities, axis=None, kind="stable")[: 8 * _SPANS]
    found: list[_Span] = []
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
        start = signed(text, start)
        broken = cuts_number(text, start, end) or is_day(text, start, end)
        says_something = any(map(str.isalnum, text[start:end]))
        if says_something and not broken and not crosses_sentences(text[start:end]):
            found.append(((first, last + 1), in_title, start, end, probability))
    return found


def span_probabilities(
    pair: Pair, scores: Floats, taken: Flags | None = None
) -> Floats:
    """P(first token) P(last token) of spans of up to 16 tokens inside the title or the text, without what is taken.

    As first token × length - 1. What is given to ends that fit no beginning is lost: it adds up to less than 1.
    """
    count, free = len(pair), _free(pair, taken)
    edges = edge_probabilities(scores, free)
    ends, fits = (
        np.zeros(count + LONGEST_SPAN, dtype=np.float32),
        np.zeros(count + LONGEST_SPAN, dtype=bool),
    )
    ends[:count], fits[:count] = edges[:, 1], free
    places = np.arange(count)[:, None] + np.arange(LONGEST_SPAN)
    return np.asarray(
        edges[:, :1] * ends[places] * np.logical_and.accumulate(fits[places], axis=1),
        dtype=np.float32,
    )


def edge_probabilities(scores: Floats, free: Flags) -> Floats:
    """Of each free token to be an answer's first, and its last: tokens × 2."""
    if not free.any():
        return np.zeros(scores.shape, dtype=np.float32)
    weights = np.where(free[:, None], np.exp(scores - scores[free].max(axis=0)), 0)
    return np.asarray(weights / weights.sum(axis=0), dtype=np.float32)


def _free(pair: Pair, taken: Flags | None = None) -> Flags:
    """Which tokens are the title's or the text's, and not taken. A sign stands between the two."""
    free = np.zeros(len(pair), dtype=bool)
    for first, last in (pair.title, pair.text):
        free[first:last] = True
    return free if taken is None else free & ~taken


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
    return edge in _EDGES or any(
        sum(map(inner.count, set(pair))) == 1 for pair in halves
    )


def cuts_number(text: str, start: int, end: int) -> bool:
    """Whether a span begins or ends inside a number: 500 of 1,500."""
    before, after = text[max(start - 2, 0) : start], text[end : end + 2]
    begins = (
        len(before) == 2
        and before[0].isdigit()
        and before[1] in ",."
        and text[start].isdigit()
    )
    ends = (
        len(after) == 2
        and after[1].isdigit()
        and after[0] in ",."
        and text[end - 1].isdigit()
    )
    return begins or ends


def crosses_sentences(inner: str) -> bool:
    """Whether a span holds the end of a sentence and the beginning of the next.

    >>> crosses_sentences("in 1953. The next"), crosses_sentences("J. K. Rowling"), crosses_sentences("in 1953")
    (True, False, False)
    """
    return any(mark in inner for mark in _SENTENCE_MARKS) and len(sentences(inner)) > 1


def edge_states(found: Sequence[Mention], evidence: Evidence) -> Floats:
    """For each mention the states of [CLS], of its first token and of its last: mentions × 3 × width."""
    rows = [
        evidence.read[one.passage].states[[0, one.tokens[0], one.tokens[1] - 1]]
        for one in found
    ]
    return np.stack(rows)


def gathered(found: Sequence[Mention], most: int = 16) -> list[Answer]:
    """Mentions that mean the same brought together: the answers, those with most support first."""
    totals: dict[str, float] = {}
    for mention in found:
        totals[mention.surface] = totals.get(mention.surface, 0.0) + mention.support
    surfaces = sorted(totals, key=lambda surface: -totals[surface])[: 8 * most]
    answers = []
    for group in merged(surfaces, [totals[surface] for surface in surfaces])[:most]:
        names = [surfaces[place] for place in group]
        own = [mention for mention in found if mention.surface in names]
        text = fullest(names, [totals[name] for name in names])
        answers.append(
            Answer(text, tuple(sorted(own, key=lambda mention: -mention.support)))
        )
    return answers


def apart(answers: Sequence[Answer], order: Sequence[int]) -> list[int]:
    """Places in that order, without answers that stand where those before them do: a span is one answer."""
    kept: list[int] = []
    for place in order:
        if answers[place].overlap([answers[other] for other in kept]) < _OVERLAP:
            kept.append(place)
    return kept
