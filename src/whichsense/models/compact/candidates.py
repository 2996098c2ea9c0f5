"""From the encoder's output to candidate answers: spans, those that mean the same, the evidence."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder import Floats, Late, Pair
from whichsense.text.answers import fullest_form, group_answers, include_sign, is_day
from whichsense.text.words import CLOSED_CLASS_WORDS, sentences
from whichsense.types import Hit, Passage

# Spans of a passage that can be answers: whole words and numbers within one sentence, with their
# probabilities.

_Flags = NDArray[np.bool_]
LONGEST_SPAN = 16  # tokens
_SPANS = 12  # the most of one passage
_TRIED = 8 * _SPANS  # likeliest spans that are checked
_LEAST = 1e-4  # of a passage's probability: spans below are ignored
_SENTENCE_MARKS = (". ", "! ", "? ", '." ', ".) ", "\n")
_EDGES = " \t\n,;:"
_GIVEN_NAME = r"[A-Z](?:[\w’'-]+|\.)"
_BRACKETS = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"), ('"', '"'))


class AnswerSpan(NamedTuple):
    """A span of a passage: its tokens (first, last + 1) in the pair, and its characters in the title or the text."""

    tokens: tuple[int, int]
    in_title: bool
    start: int
    end: int
    probability: float


def best_spans(
    pair: Pair, passage: Passage, probabilities: Floats, continues: Sequence[bool]
) -> list[AnswerSpan]:
    """The likeliest spans that can be answers. `probabilities` come from `span_probabilities`; `continues` says of each
    token, and of the end, whether it continues a word."""
    best = np.argsort(-probabilities, axis=None, kind="stable")[:_TRIED]
    spans: list[AnswerSpan] = []
    for flat in best.tolist():
        first, length = divmod(flat, LONGEST_SPAN)
        last = first + length
        probability = float(probabilities[first, length])
        if len(spans) == _SPANS or probability < _LEAST:
            break
        if continues[first] or continues[last + 1]:
            continue
        in_title = pair.title[0] <= first < pair.title[1]
        text = passage.title if in_title else passage.text
        start, end = trimmed(text, pair.starts[first], pair.ends[last])
        start = include_sign(text, start)
        if _can_answer(text, start, end):
            tokens = (first, last + 1)
            spans.append(AnswerSpan(tokens, in_title, start, end, probability))
    return spans


def _can_answer(text: str, start: int, end: int) -> bool:
    inner = text[start:end]
    if not any(map(str.isalnum, inner)):
        return False
    if cuts_number(text, start, end) or is_day(text, start, end):
        return False
    return not _crosses_sentences(inner)


def span_probabilities(pair: Pair, scores: Floats, taken: _Flags | None = None) -> Floats:
    """P(first token) · P(last token) of each span inside the title or the text, without taken tokens.

    The shape is tokens × LONGEST_SPAN: first token, length - 1. The sum is below 1, because a last token may fit no
    first token.
    """
    count = len(pair)
    free = free_tokens(pair, taken)
    edges = edge_probabilities(scores, free)
    # Padded, so that every first token has LONGEST_SPAN tokens from it on.
    ends = np.zeros(count + LONGEST_SPAN, dtype=np.float32)
    fits = np.zeros(count + LONGEST_SPAN, dtype=bool)
    ends[:count] = edges[:, 1]
    fits[:count] = free
    places = np.arange(count)[:, None] + np.arange(LONGEST_SPAN)
    # A span fits if all of its tokens are free.
    inside = np.logical_and.accumulate(fits[places], axis=1)
    return np.asarray(edges[:, :1] * ends[places] * inside, dtype=np.float32)


def edge_probabilities(scores: Floats, free: _Flags) -> Floats:
    """The probability of each free token to be an answer's first, and its last (tokens × 2)."""
    if not free.any():
        return np.zeros(scores.shape, dtype=np.float32)
    highest = scores[free].max(axis=0)
    weights = np.where(free[:, None], np.exp(scores - highest), 0)
    return np.asarray(weights / weights.sum(axis=0), dtype=np.float32)


def free_tokens(pair: Pair, taken: _Flags | None = None) -> _Flags:
    """Which tokens belong to the title or the text and are not taken. A [SEP] stands between the two."""
    free = np.zeros(len(pair), dtype=bool)
    for first, last in (pair.title, pair.text):
        free[first:last] = True
    return free if taken is None else free & ~taken


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without commas and unpaired brackets or quotes at its edges.

    >>> text = 'It was (Tony Goldwyn), the "star".'
    >>> [text[slice(*trimmed(text, start, end))] for start, end in ((7, 21), (7, 22), (27, 32), (7, 21))]
    ['Tony Goldwyn', 'Tony Goldwyn', 'star', 'Tony Goldwyn']
    """
    while start < end:
        inner = text[start:end]
        if _is_loose(inner[-1], inner):
            end -= 1
        elif _is_loose(inner[0], inner):
            start += 1
        elif len(inner) > 2 and (inner[0], inner[-1]) in _BRACKETS:
            start += 1
            end -= 1
        else:
            break
    return start, end


def whole_name(answer: str, texts: Iterable[str]) -> str:
    """Return the name that an answer of one word ends, where texts have just one such; otherwise the answer.

    >>> texts = ["After Heath Ledger died, Ledger was given the award.", "Betty Ford, Robert P. McCall"]
    >>> texts.append("Map of Long Ledger Road, by Gerald Ford")
    >>> [whole_name(name, texts) for name in ("Ledger", "McCall", "Ford", "award")]
    ['Heath Ledger', 'Robert P. McCall', 'Ford', 'award']
    """
    if not answer.isalpha() or not answer[0].isupper():
        return answer
    pattern = re.compile(rf"(?<!\w)((?:{_GIVEN_NAME} ){{1,3}}){answer}(?!\w| [A-Z])")
    names = Counter[str]()
    for text in texts:
        for match in pattern.finditer(text):
            given = match[1].split()
            while given and given[0].lower() in CLOSED_CLASS_WORDS:
                del given[0]
            if given:
                names[" ".join((*given, answer))] += 1
    if not names or len(group_answers(list(names), list(names.values()))) > 1:
        return answer
    return names.most_common(1)[0][0]


def _is_loose(edge: str, inner: str) -> bool:
    """Whether a character at the edge is a comma, a space, or a bracket or quote without its other half."""
    if edge in _EDGES:
        return True
    for both in _BRACKETS:
        if edge in both and sum(map(inner.count, set(both))) == 1:
            return True
    return False


def cuts_number(text: str, start: int, end: int) -> bool:
    """Whether a span begins or ends inside a number: 500 of 1,500."""
    before = text[max(start - 2, 0) : start]
    after = text[end : end + 2]
    if len(before) == 2 and before[0].isdigit() and before[1] in ",.":
        if text[start].isdigit():
            return True
    if len(after) == 2 and after[1].isdigit() and after[0] in ",.":
        return text[end - 1].isdigit()
    return False


def _crosses_sentences(inner: str) -> bool:
    """Whether a span holds the end of a sentence and the beginning of the next.

    >>> _crosses_sentences("in 1953. The next"), _crosses_sentences("J. K. Rowling"), _crosses_sentences("in 1953")
    (True, False, False)
    """
    has_mark = any(mark in inner for mark in _SENTENCE_MARKS)
    return has_mark and len(sentences(inner)) > 1


# From span scores to candidate answers: strings, their mentions, and how much supports each.

_ROUNDS = 4  # searches for the best spans of a passage, each without those before
_TRUST = 0.25  # 1: later rounds count for their share of the whole passage; 0: as much as the first
_OVERLAP = (
    0.5  # of an answer's support within others' mentions: from here on it is no answer of its own
)
_LEAST_SHARE = 1e-3  # of the passages' probability: below, one round is enough
_SURFACES = 8  # strings that are compared for each answer wanted


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of a passage that the reader proposes. `tokens` are (first, last + 1) of the pair."""

    passage: int
    """Its place among the passages that were read."""
    surface: str
    start: int
    end: int
    in_title: bool
    tokens: tuple[int, int]
    alone: float
    """The span's probability in its round: given the passage without the tokens of better spans."""
    left: float = 1.0
    """The share of the passage's probability that better spans had left: 1 in the first round."""
    share: float = 1.0
    """The passage's probability."""
    verdict: float = 0.0
    """The logit of being an answer, by the verdict head, which judges each span by itself."""

    @property
    def probability(self) -> float:
        """Of the span, given the whole passage."""
        return self.left * self.alone

    @property
    def mass(self) -> float:
        return self.share * self.probability

    @property
    def support(self) -> float:
        """The mass within its round, discounted by what better spans had taken."""
        return self.share * self.alone * math.pow(self.left, _TRUST)

    def overlaps(self, other: Mention) -> bool:
        if self.passage != other.passage:
            return False
        return self.tokens[0] < other.tokens[1] and other.tokens[0] < self.tokens[1]


@dataclass(frozen=True, slots=True)
class Answer:
    """A candidate answer with all mentions that mean the same."""

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
        """The share of its support that overlaps other answers, as "Richard" overlaps "Richard Harris"."""
        other_mentions: list[Mention] = []
        for other in others:
            other_mentions += other.mentions
        shared = 0.0
        for mention in self.mentions:
            if any(mention.overlaps(other) for other in other_mentions):
                shared += mention.support
        return shared / self.support if shared else 0.0


@dataclass(frozen=True)
class Evidence:
    """A question's passages with the encoder's outputs for them, best first."""

    question: str
    hits: tuple[Hit, ...]
    """With the encoder's relevance as score."""
    pairs: tuple[Pair, ...]
    read: tuple[Late, ...]
    found: tuple[tuple[int, float], ...]
    """Rank and score of each in the search."""
    alone: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    """The pooled states of the question without a passage (`probes.pool_states`)."""

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(hit.passage for hit in self.hits)

    def only(self, places: Sequence[int]) -> Evidence:
        """The evidence restricted to some of its passages."""
        hits = []
        pairs = []
        read = []
        found = []
        for place in places:
            hits.append(self.hits[place])
            pairs.append(self.pairs[place])
            read.append(self.read[place])
            found.append(self.found[place])
        return replace(
            self, hits=tuple(hits), pairs=tuple(pairs), read=tuple(read), found=tuple(found)
        )


def passage_probabilities(read: Sequence[Late]) -> tuple[Floats, float]:
    """The probability of each passage to hold the answer, and of none: a softmax with a null passage of score 0."""
    relevance = [one.relevance for one in read]
    scores = np.array([*relevance, 0.0])
    weights = np.exp(scores - scores.max())
    probabilities = weights / weights.sum()
    return probabilities[:-1].astype(np.float32), float(probabilities[-1])


def mentions(evidence: Evidence, tokens: Sequence[str]) -> list[Mention]:
    """The best spans of every passage. `tokens` is the vocabulary: an answer consists of whole words."""
    shares, _ = passage_probabilities(evidence.read)
    all_mentions: list[Mention] = []
    for place, share in enumerate(shares.tolist()):
        all_mentions += _passage_mentions(evidence, place, share, tokens)
    return all_mentions


def _passage_mentions(
    evidence: Evidence, place: int, share: float, tokens: Sequence[str]
) -> list[Mention]:
    """The best spans; then the best ones without the tokens of the first, and so on.

    The reader is trained to let one answer of a passage win. Other answers show when the winner is taken out.
    """
    pair = evidence.pairs[place]
    passage = evidence.passages[place]
    scores = evidence.read[place].span
    whole = edge_probabilities(scores, free_tokens(pair))
    taken = np.zeros(len(pair), dtype=bool)
    # Whether each token goes on with a word; one more for the end of the pair.
    continues = []
    for number in pair.ids:
        continues.append(tokens[number].startswith("##"))
    continues.append(False)
    by_tokens: dict[tuple[int, int], Mention] = {}
    for _ in range(_ROUNDS if share > _LEAST_SHARE else 1):
        left = float(whole[~taken].sum(axis=0).prod()) if taken.any() else 1.0
        probabilities = span_probabilities(pair, scores, taken)
        spans = best_spans(pair, passage, probabilities, continues)
        for span in spans:
            text = passage.title if span.in_title else passage.text
            by_tokens[span.tokens] = Mention(
                passage=place,
                surface=text[span.start : span.end],
                start=span.start,
                end=span.end,
                in_title=span.in_title,
                tokens=span.tokens,
                alone=span.probability,
                left=left,
                share=share,
            )
        if not spans:
            break
        taken[slice(*spans[0].tokens)] = True
    return list(by_tokens.values())


def edge_states(found: Sequence[Mention], evidence: Evidence) -> Floats:
    """For each mention the states of [CLS], of its first token and of its last (mentions × 3 × width)."""
    rows = []
    for mention in found:
        first, end = mention.tokens
        rows.append(evidence.read[mention.passage].states[[0, first, end - 1]])
    return np.stack(rows)


def gathered(found: Sequence[Mention], most: int = 16) -> list[Answer]:
    """Group mentions that mean the same into answers, those with most support first."""
    totals: dict[str, float] = {}
    for mention in found:
        totals[mention.surface] = totals.get(mention.surface, 0.0) + mention.support
    surfaces = sorted(totals, key=lambda surface: -totals[surface])
    surfaces = surfaces[: _SURFACES * most]
    supports = [totals[surface] for surface in surfaces]
    answers = []
    for group in group_answers(surfaces, supports)[:most]:
        names = []
        weights = []
        for place in group:
            names.append(surfaces[place])
            weights.append(supports[place])
        own = [mention for mention in found if mention.surface in names]
        own.sort(key=lambda mention: -mention.support)
        text = fullest_form(names, weights)
        answers.append(Answer(text, tuple(own)))
    return answers


def apart(answers: Sequence[Answer], order: Sequence[int]) -> list[int]:
    """Places in that order, without answers that mostly overlap an earlier one: a span is one answer."""
    places: list[int] = []
    for place in order:
        earlier = [answers[other] for other in places]
        if answers[place].overlap(earlier) < _OVERLAP:
            places.append(place)
    return places
