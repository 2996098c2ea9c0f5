"""Marks every answer of a question in a passage, and the words that name an answer's case: an encoder of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.candidates import trimmed
from whichsense.models.compact.encoder import (
    LONGEST_QUESTION,
    UNREADABLE,
    CompactModel,
    Floats,
    Pair,
    damaged,
    distance_buckets,
    once,
    pair,
)
from whichsense.text.words import PHRASE_OPENERS
from whichsense.types import Passage, Span

TAGGER, FRAME, TABLES = "tagger.onnx.gz", "tagger-frame.onnx", "tagger.npz"
LONGEST_TAGGED = 224  # tokens
_BEGINS = 0.1  # the least probability of a span's first token to begin one
_BEGINS_ANOTHER = 0.5
_INSIDE = 0.12  # of each of its tokens to be inside one
_LIKE_OTHERS = 0.35  # and the least share of the mean of those before it
_WITHIN = "'’-–"  # what may stand within a word
_BRACKET = re.compile(r"\([^\s()]+\)")  # of a word, such as dB(A)


class Stretch(NamedTuple):
    """The tokens of what may be an answer."""

    first: int
    last: int
    inside: float
    """Their mean probability to be inside an answer."""


@dataclass(frozen=True, slots=True)
class TaggedSpan:
    """What may be an answer, where it stands. Its score is the product of both probabilities."""

    span: Span
    inside: float
    """The mean probability of its tokens to be inside an answer."""
    holds: float
    """The probability of its passage to hold an answer."""


class Tags(NamedTuple):
    """What the tagger says of a pair."""

    tokens: Floats
    """Logits to be inside an answer, to begin one, to be of the marked answer's label (tokens × 3)."""
    answers: float
    """The logit of the pair to hold an answer."""
    states: Floats
    """Tokens × width."""


@dataclass(frozen=True)
class TaggerTables:
    """Embeddings of the tagger's encoder."""

    codes: NDArray[np.int8]
    """Word vectors (vocabulary × width) in units of their steps (vocabulary × 1)."""
    steps: Floats
    places: Floats
    types: Floats
    marks: Floats
    """Of what a token is part of: nothing, the answer, another answer."""
    relative: Floats
    """What the bucket of a distance adds to each head's scores (buckets × heads)."""
    layers: int

    @classmethod
    def load(cls, path: Path) -> TaggerTables:
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            layers = int(arrays.pop("layers"))
            codes = arrays.pop("codes")
            floats = {name: one.astype(np.float32) for name, one in arrays.items()}
            return cls(codes=codes, layers=layers, **floats)
        except UNREADABLE as error:
            raise damaged(path, error) from None

    def embed(self, pair: Pair, marks: NDArray[np.int64] | None) -> Floats:
        """The encoder's input before its LayerNorm (1 × tokens × width)."""
        words = self.codes[pair.ids] * self.steps[pair.ids]
        embedded = words + self.places[: len(pair)] + self.types[pair.types]
        if marks is not None:
            embedded += self.marks[marks]
        return np.asarray(embedded[None], np.float32)


@dataclass(frozen=True)
class Tagger:
    """Loads on first use; threads may share one object."""

    model: CompactModel
    """Whose folder, tokens and threads it has."""

    def prepare(self) -> None:
        """Load everything now."""
        _ = self._session, self._tables, self.frames

    @once
    def _session(self) -> Any:
        return self.model.session(TAGGER)

    @once
    def frames(self) -> Any:
        """The graph that chooses how a label is put into a question."""
        return self.model.session(FRAME)

    @once
    def _tables(self) -> TaggerTables:
        return TaggerTables.load(self.model.folder / TABLES)

    @once
    def _distances(self) -> Floats:
        """1 × heads × tokens × tokens, of the longest pair: a shorter one's is its corner."""
        relative = self._tables.relative
        numbers = distance_buckets(LONGEST_TAGGED, len(relative))
        return np.ascontiguousarray(relative[numbers].transpose(2, 0, 1)[None])

    def find(self, question: str, passages: Sequence[Passage]) -> list[TaggedSpan]:
        """What may be an answer in any of the passages."""
        pairs = [self.pair(question, one) for one in passages]
        found: list[TaggedSpan] = []
        for passage, own, tags in zip(passages, pairs, self.tag(pairs), strict=True):
            holds = float(1 / (1 + np.exp(-tags.answers)))
            for one in read_tags(tags, own):
                start, end = _characters(passage.text, own, one)
                span = Span(passage, start, end, one.inside * holds)
                found.append(TaggedSpan(span, one.inside, holds))
        return found

    def pair(self, question: str, passage: Passage) -> Pair:
        tokenizer = self.model.tokenizer
        ids = tokenizer.ids(question, LONGEST_QUESTION)
        return pair(tokenizer, ids, passage.title, passage.text, LONGEST_TAGGED)

    def tag(self, pairs: Sequence[Pair], marks: Sequence[NDArray[np.int64]] = ()) -> list[Tags]:
        """Read pairs; `marks` say what each token of a pair is part of."""
        session, tables, distances = self._session, self._tables, self._distances
        self.model.work.add(layers=len(pairs) * tables.layers, pairs=len(pairs))

        def read(number: int) -> Tags:
            own = pairs[number]
            size = len(own)
            inputs = {
                "embedded": tables.embed(own, marks[number] if marks else None),
                "distances": distances[:, :, :size, :size],
            }
            tokens, answers, states = session.run(["tags", "answers", "states"], inputs)
            return Tags(tokens[0], float(answers[0]), states[0])

        return self.model.map(read, range(len(pairs)))


def read_tags(tags: Tags, own: Pair) -> list[Stretch]:
    """The stretches of a passage's text, best first: from a token that begins an answer as far as tokens are inside it
    about as probably."""
    inside, begins = 1 / (1 + np.exp(-tags.tokens[:, :2].T))
    found = []
    at, end = own.text
    while at < end:
        if begins[at] < _BEGINS or inside[at] < _INSIDE:
            at += 1
            continue
        last, mean = at, float(inside[at])
        while last + 1 < end and begins[last + 1] < _BEGINS_ANOTHER:
            if inside[last + 1] < max(_INSIDE, _LIKE_OTHERS * mean):
                break
            last += 1
            mean = float(inside[at : last + 1].mean())
        found.append(Stretch(at, last, mean))
        at = last + 1
    return sorted(found, key=lambda one: -one.inside)


def _characters(text: str, own: Pair, stretch: Stretch) -> tuple[int, int]:
    """Widen a stretch to whole words, close or drop its brackets, and end it with a word that ends phrases."""
    end_of_last = own.ends[stretch.last]
    start, end = whole_words(text, own.starts[stretch.first], end_of_last)
    # A word's possessive is not the answer's, unless it was marked: Alcott, of "Alcott's".
    if end_of_last < end and text[end - 2 : end] in ("'s", "’s"):
        end -= 2
    if text[end : end + 1] == ")" and "(" in text[start:end]:
        end += 1
    start, end = trimmed(text, start, end)
    return start, start + len(_without_opener(text[start:end]))


def _without_opener(text: str) -> str:
    """Take words that open a phrase from the end of an answer.

    >>> _without_opener("10:00 and"), _without_opener("the balcony of"), _without_opener("of")
    ('10:00', 'the balcony', 'of')
    """
    rest, _, last = text.rpartition(" ")
    return _without_opener(rest) if rest and last in PHRASE_OPENERS else text


def covering(pair: Pair, area: tuple[int, int], start: int, end: int) -> tuple[int, int] | None:
    """The first and the last token of these characters of the title or of the text."""
    inside = [at for at in range(*area) if pair.starts[at] < end and pair.ends[at] > start]
    return (inside[0], inside[-1]) if inside else None


def whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """A place widened to the ends of its words.

    >>> text = "by the probe Chang'e 4, at 37 dB(A)"
    >>> [text[slice(*whole_words(text, *place))] for place in ((18, 22), (4, 6), (27, 31))]
    ["Chang'e 4", 'the', '37 dB(A)']
    """
    while start > 0 and _joins(text, start):
        start -= 1
    while end < len(text) and _joins(text, end):
        end += 1
    bracket = _BRACKET.match(text, end)
    if bracket and text[end - 1 : end].isalnum():
        end = bracket.end()
    return start, end


def _joins(text: str, at: int) -> bool:
    """Whether a word goes on over a place; one of two parts does, too."""
    before, after = text[at - 1], text[at]
    if before.isalnum() and after.isalnum():
        return True
    if after in _WITHIN:
        return before.isalnum() and text[at + 1 : at + 2].isalnum()
    return before in _WITHIN and after.isalnum() and text[max(0, at - 2)].isalnum()
