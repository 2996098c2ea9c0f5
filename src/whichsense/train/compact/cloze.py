"""Sentences of passages with informative spans taken out: what the decoder learns to write before it sees rewrites.

A sentence without some of its spans is an ambiguous question, what was taken out is the edit that makes it clear, and
one more span, hidden from it, is the answer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.inputs import GAP, GAPS, LONGEST_QUESTION, REWRITE
from whichsense.models.compact.tokens import END

_LONGEST_TEXT, _COMMON = 130, 250
_SHORTEST_SENTENCE, _LONGEST_SENTENCE = 9, 38  # word pieces
_FEWEST_WORDS, _FEWEST_TELLING = 7, 3
_LONGEST_PREFIX, _LONGEST_OUTPUT = 140, 44
Word = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Cloze:
    """A sentence: what is left of it, as a question and as a prefix; what to write; the answer and where it stands."""

    question: list[int]
    prefix: list[int]
    output: list[int]
    answer: list[int]
    first: int
    last: int


@dataclass(frozen=True)
class Clozes:
    """Makes them. `telling`: word pieces that are not among the commonest; `inside`: those within words."""

    inside: NDArray[np.bool_]
    telling: NDArray[np.bool_]
    stop: int
    mask: int

    @classmethod
    def over(cls, texts: NDArray[np.uint16], vocabulary: Sequence[str]) -> Clozes:
        counts = np.bincount(texts, minlength=len(vocabulary))
        telling = np.array([not piece.startswith("[") and any(map(str.isalnum, piece)) for piece in vocabulary])
        telling[np.argsort(-counts, kind="stable")[:_COMMON]] = False
        inside = np.array([piece.startswith("##") for piece in vocabulary])
        return cls(inside, telling, vocabulary.index("."), vocabulary.index("[MASK]"))

    def one(self, text: Sequence[int], dice: random.Random) -> Cloze | None:
        """A sentence of a passage, or None where none fits."""
        text = text[:_LONGEST_TEXT]
        sentences = self._sentences(text)
        if not sentences:
            return None
        words = self._words(text, *dice.choice(sentences))
        telling = [number for number, (start, end) in enumerate(words) if self.telling[text[start:end]].any()]
        if not _FEWEST_WORDS <= len(words) < GAPS or len(telling) < _FEWEST_TELLING:
            return None
        answer = self._answer(telling, dice)
        taken = self._taken(len(words), telling, answer, dice)
        if not taken or sum(end - start for start, end in taken) > len(words) - 4:
            return None
        return self._written(text, words, answer, taken)

    def _sentences(self, text: Sequence[int]) -> list[Word]:
        found, start = [], 0
        for place, piece in enumerate(text):
            if piece == self.stop:
                if _SHORTEST_SENTENCE <= place - start <= _LONGEST_SENTENCE:
                    found.append((start, place))
                start = place + 1
        return found

    def _words(self, text: Sequence[int], first: int, end: int) -> list[Word]:
        starts = [place for place in range(first, end) if place == first or not self.inside[text[place]]]
        return list(zip(starts, [*starts[1:], end], strict=True))

    def _answer(self, telling: Sequence[int], dice: random.Random) -> Word:
        """Up to four telling words in a row."""
        start = dice.choice(telling)
        end = start + 1
        while end - start < 4 and end in telling and dice.random() < 0.6:
            end += 1
        return start, end

    def _taken(self, count: int, telling: Sequence[int], answer: Word, dice: random.Random) -> list[Word]:
        """One to three spans of up to five words around telling ones, outside the answer."""
        hidden = set(range(*answer))
        found: list[Word] = []
        for _ in range(dice.choice((1, 1, 1, 2, 2, 3))):
            free = [number for number in telling if number not in hidden]
            if not free:
                break
            start = dice.choice(free)
            end, longest = start + 1, dice.randint(1, 5)
            while end - start < longest and start > 0 and start - 1 not in hidden and dice.random() < 0.5:
                start -= 1
            while end - start < longest and end < count and end not in hidden:
                end += 1
            found.append((start, end))
            hidden |= set(range(start - 1, end + 1))  # two spans side by side would be one edit
        return sorted(found)

    def _written(self, text: Sequence[int], words: Sequence[Word], answer: Word, taken: Sequence[Word]) -> Cloze | None:
        left: list[list[int]] = []
        output: list[int] = []
        starts = dict(taken)
        place = 0
        while place < len(words):
            if place in starts:
                output += [GAP + len(left), *text[words[place][0] : words[starts[place] - 1][1]]]
                place = starts[place]
            elif place == answer[0]:
                left.append([self.mask])
                place = answer[1]
            else:
                left.append(list(text[slice(*words[place])]))
                place += 1
        first, last = words[answer[0]][0], words[answer[1] - 1][1]
        said = list(text[first:last])
        prefix = [REWRITE, GAP]
        for number, pieces in enumerate(left, 1):
            prefix += [*pieces, GAP + number]
        prefix += [END, *said, END, END]
        if len(prefix) > _LONGEST_PREFIX or len(output) > _LONGEST_OUTPUT:
            return None
        question = [piece for pieces in left for piece in pieces][:LONGEST_QUESTION]
        return Cloze(question, prefix, [*output, END], said, first, last - 1)
