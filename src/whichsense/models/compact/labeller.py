"""The labels of answers: words that name an answer's case, and frames that put them into the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder import Floats, Pair
from whichsense.models.compact.tagger import Tagger, Tags, covering, whole_words
from whichsense.text.words import SMALL_WORDS
from whichsense.types import Passage, Span

# Frames: ways to put an answer's label at the end of its question.
#
# The reader chooses the frame, and asks the rewrite again. "how long is the warranty" with the label
# "Skerry 12" and the frame "of the" becomes "how long is the warranty of the Skerry 12".

FRAMES = (
    "",  # the label has a preposition of its own: "in Malta"
    "in",
    "in the",
    "at",
    "at the",
    "for",
    "for a",
    "for the",
    "of",
    "of the",
    "on",
    "on the",
    "with",
    "with a",
    "from",
    "to",
    "to the",
    "by",
    "under",
    "under the",
    "as",
    "since",
    "until",
    "when",
)
NO_FRAME = len(FRAMES)
"""The class of labels with which nothing reads well."""


def put_into(question: str, label: str, frame: int) -> str:
    """The question with its label at the end. A search query in lower case stays one, and so does a small word that
    began a sentence.

    >>> put_into("How heavy is it?", "The Skerry 12", FRAMES.index("for")), put_into("when", "in Malta", 0)
    ('How heavy is it for the Skerry 12?', 'when in malta')
    """
    body = question.strip().rstrip("? ")
    first, space, rest = label.partition(" ")
    if first.lower() in SMALL_WORDS:
        label = first.lower() + space + rest
    if body == body.lower():
        label = label.lower()
    mark = "?" if question.strip().endswith("?") else ""
    return f"{body} {FRAMES[frame]} {label}".replace("  ", " ") + mark


def frame_between(question: str, rewrite: str, label: str) -> int:
    """The frame of a rewrite that someone wrote; -1 where it is no question with the label in a frame.

    >>> FRAMES[frame_between("how long is it", "how long is it of the skerry 12", "Skerry 12")]
    'of the'
    """
    asked, written = _plain(question), _plain(rewrite)
    ending = _plain(label)
    if not ending or not written.startswith(asked) or not written.endswith(ending):
        return -1
    between = written[len(asked) : len(written) - len(ending)].strip()
    return FRAMES.index(between) if between in FRAMES else -1


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.strip().rstrip("?").strip()).casefold()


# Finds the label of an answer: the words of its passage or of the passage's title that name its case.

_LONGEST = 16  # tokens of a label
_EDGES = " \t\n,.;:|–—-()[]\"“”'"
_Tokens = tuple[int, int]
"""First and last."""


@dataclass(frozen=True)
class Label:
    """The words that name an answer's case."""

    text: str
    sure: float
    """The mean probability of its tokens."""
    frame: int
    """The likeliest way to put it into the question."""
    fits: float
    """The probability of that frame."""


@dataclass(frozen=True)
class Labeller:
    """Has the tagger read each passage once more for each answer, which is marked in it. Threads may share one."""

    tagger: Tagger

    def find(self, question: str, spans: Sequence[Span]) -> list[Label | None]:
        """The label of each answer of a question, which stands at its span; None where nothing names its case. Answers
        in one passage are told apart there."""
        labels: list[Label | None] = [None] * len(spans)
        numbers, pairs, places, marks = [], [], [], []
        for number, span in enumerate(spans):
            own = self.tagger.pair(question, span.passage)
            place = tokens_of(own, span)
            if place is None:
                continue
            beside = [one for one in spans if one.passage.id == span.passage.id]
            others = [tokens_of(own, one) for one in beside if one is not span]
            found = [one for one in others if one is not None]
            numbers.append(number)
            pairs.append(own)
            places.append(place)
            marks.append(mark(len(own), place, found))
        read = self.tagger.tag(pairs, marks)
        for number, own, place, tags in zip(numbers, pairs, places, read, strict=True):
            labels[number] = self._find(spans[number].passage, own, place, tags)
        return labels

    def _find(self, passage: Passage, pair: Pair, own: _Tokens, tags: Tags) -> Label | None:
        found = best_stretch(tags.tokens[:, 2], usable_tokens(pair, own))
        if found is None:
            return None
        first, last, total = found
        text = passage.title if last < pair.title[1] else passage.text
        start, end = whole_words(text, pair.starts[first], pair.ends[last])
        words = text[start:end].strip(_EDGES)
        if not words:
            return None
        edges = edge_states(tags.states, own, (first, last))
        frames = self.tagger.frames.run(["frames"], {"edges": edges[None]})[0][0]
        chances = _softmax(frames)[:NO_FRAME]
        best = int(chances.argmax())
        sure = 1 / (1 + np.exp(-total / (last - first + 1)))
        return Label(words, float(sure), best, float(chances[best]))


def tokens_of(pair: Pair, span: Span) -> _Tokens | None:
    """The first and the last token of a span of the passage's text; None where the text was cut before it."""
    return covering(pair, pair.text, span.start, span.end)


def mark(size: int, own: _Tokens, others: Sequence[_Tokens]) -> NDArray[np.int64]:
    """What each token is part of: 0 nothing, 1 the answer, 2 another answer."""
    marks = np.zeros(size, np.int64)
    for first, last in others:
        marks[first : last + 1] = 2
    marks[own[0] : own[1] + 1] = 1
    return marks


def usable_tokens(pair: Pair, own: _Tokens) -> NDArray[np.bool_]:
    """The tokens that a label may have: of the title and of the text, but for the answer's own."""
    usable = np.zeros(len(pair), bool)
    usable[slice(*pair.title)] = True
    usable[slice(*pair.text)] = True
    usable[own[0] : own[1] + 1] = False
    return usable


def edge_states(states: Floats, own: _Tokens, label: _Tokens) -> Floats:
    """What a frame is chosen by: the states of [CLS], of the answer and of its label, side by side."""
    parts = [states[0]]
    for first, last in (own, label):
        parts.append(states[first : last + 1].mean(0))
    return np.concatenate(parts).astype(np.float32)


def best_stretch(
    logits: Floats, usable: Sequence[bool] | NDArray[np.bool_]
) -> tuple[int, int, float] | None:
    """The stretch of usable tokens with the greatest sum of logits, and that sum; None where no token is likely.

    >>> best_stretch(np.array([-1.0, 2.0, -0.5, 1.0, -3.0]), [True] * 5)
    (1, 3, 2.5)
    """
    best: tuple[int, int, float] | None = None
    start, total = 0, 0.0
    for at, logit in enumerate(logits.tolist()):
        if not usable[at]:
            start, total = at + 1, 0.0
            continue
        if total <= 0:
            start, total = at, 0.0
        total += logit
        short = at - start < _LONGEST
        if logit > 0 and short and (best is None or total > best[2]):
            best = (start, at, total)
    return best


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum(), np.float32)
