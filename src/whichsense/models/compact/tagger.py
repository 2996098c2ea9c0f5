"""Marks every answer of a question in a passage: layers over the encoder's first ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whichsense.models.compact.encoder import (
    LONGEST_QUESTION,
    CompactModel,
    Floats,
    Pair,
    once,
    pair,
)
from whichsense.models.compact.labeller import whole_words
from whichsense.types import Passage, Span

TAGGER = "tagger.onnx"
_BEGINS = 0.15  # the least probability of a span's first token to begin one
_INSIDE = 0.5  # of each of its tokens to be inside one
_LONGEST_PAIR = 224


@dataclass(frozen=True, slots=True)
class TaggedSpan:
    """The tokens of what may be an answer."""

    first: int
    last: int
    score: float
    """The mean probability of its tokens, times that of the passage to hold an answer."""


@dataclass(frozen=True)
class Tagger:
    """Loads on first use; threads may share one object."""

    model: CompactModel

    def prepare(self) -> None:
        """Load everything now."""
        _ = self._session

    @once
    def _session(self) -> Any:
        return self.model.session(TAGGER)

    def find(self, question: str, passages: Sequence[Passage]) -> list[list[Span]]:
        """The answers of each passage, best first."""
        tokenizer = self.model.tokenizer
        ids = tokenizer.ids(question, LONGEST_QUESTION)
        pairs = [
            pair(tokenizer, ids, one.title, one.text, _LONGEST_PAIR) for one in passages
        ]
        found = []
        for passage, own, tags in zip(passages, pairs, self.tag(pairs), strict=True):
            found.append(list(_spans(passage, own, read_tags(*tags, own))))
        return found

    def tag(self, pairs: Sequence[Pair]) -> list[tuple[Floats, float]]:
        """The logits of each pair's tokens, and of the pair to hold an answer."""
        states = [states for states, _ in self.model.early(pairs)]
        session = self._session
        shape = self.model.config["shape"]
        self.model.work.add(layers=len(pairs) * (shape["layers"] - shape["early"]))

        def run(early: Floats) -> tuple[Floats, float]:
            tags, answers = session.run(["tags", "answers"], {"early": early})
            return tags[0], float(answers[0])

        return self.model.map(run, states)


def read_tags(tags: Floats, holds: float, own: Pair) -> list[TaggedSpan]:
    """The spans of a passage's text, best first: from a token that begins one as far as tokens are inside."""
    chances = 1 / (1 + np.exp(-tags))
    inside, begins = chances[:, 0], chances[:, 1]
    share = float(1 / (1 + np.exp(-holds)))
    spans = []
    at, end = own.text
    while at < end:
        if begins[at] < _BEGINS or inside[at] < _INSIDE:
            at += 1
            continue
        last = at
        while last + 1 < end and inside[last + 1] >= _INSIDE and begins[last + 1] < 0.5:
            last += 1
        score = share * float(inside[at : last + 1].mean())
        spans.append(TaggedSpan(at, last, score))
        at = last + 1
    return sorted(spans, key=lambda span: -span.score)


def _spans(passage: Passage, own: Pair, tagged: Sequence[TaggedSpan]) -> Iterator[Span]:
    """Tagged tokens as characters, widened to whole words."""
    for one in tagged:
        start, end = whole_words(
            passage.text, own.starts[one.first], own.ends[one.last]
        )
        # A word's possessive is not the answer's, unless it was marked: Alcott, of "Alcott's".
        if own.ends[one.last] < end and passage.text[end - 2 : end] in ("'s", "’s"):
            end -= 2
        yield Span(passage, start, end, one.score)
