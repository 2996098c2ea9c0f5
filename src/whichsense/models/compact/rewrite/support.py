"""What a rewrite may say: only what the evidence says of its own answer, and words that say no fact."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from whichsense.models.compact.scene import Scene
from whichsense.models.compact.writer.edits import (
    KINDS_OF_WORKS,
    NEUTRAL_WORDS,
    SMALL_WORDS,
)
from whichsense.models.compact.writer.runtime import Ints
from whichsense.text.answers import same
from whichsense.text.porter import stem
from whichsense.text.words import sentence_spans, words

Places = dict[int, list[tuple[int, int]]]
"""Passage → (first, last + 1) of its pair's tokens."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True)
class Target:
    """An answer to write a rewrite for, and where it stands, best passages first."""

    answer: str
    marked: Places


@dataclass(frozen=True)
class Support:
    """Stems and word pieces that a rewrite for an answer may insert: "played" supports "plays". Small words are written
    as they are."""

    answer: str
    stems: frozenset[str]
    pieces: Ints
    neighbours: frozenset[tuple[str, str]] = frozenset()
    """Stems that stand side by side: of South Korea and New Zealand no South Zealand is made."""
    numbers: frozenset[str] = frozenset()
    """Numbers as they stand: of 2,022,044 no 044 is made."""

    def holds(self, inserted: str) -> bool:
        """Whether an insertion does not give the answer away, and says nothing that is not supported."""
        new = words(inserted)
        if any(_within(told, new) for told in _heads(self.answer)) or (
            inserted and same(inserted, self.answer)
        ):
            return False
        whole = (
            _names(inserted) <= self.neighbours and _numbers(inserted) <= self.numbers
        )
        return whole and all(self._says(word) for word in new)

    def tells_apart(self, rewrite: str, others: Sequence[Support]) -> bool:
        """Whether a rewrite says something that the evidence of no other answer says."""
        return any(
            not any(other._says(word) for other in others) for word in words(rewrite)
        )

    def _says(self, word: str) -> bool:
        return word in SMALL_WORDS or stem(word) in self.stems


def _heads(answer: str) -> list[list[str]]:
    """The words of an answer, and of a place those before its comma: they say it as well. A date's do not.

    >>> _heads("Stockholm, Sweden"), _heads("May 5, 1997")
    ([['stockholm', 'sweden'], ['stockholm']], [['may', '5', '1997']])
    """
    place = "," in answer and not any(letter.isdigit() for letter in answer)
    return [words(answer), *([words(answer.partition(",")[0])] if place else [])]


def _within(told: Sequence[str], new: Sequence[str]) -> bool:
    """Whether words stand in a row among others."""
    return bool(told) and any(
        new[at : at + len(told)] == told for at in range(len(new) - len(told) + 1)
    )


def support(scene: Scene, target: Target, *, cautious: bool = True) -> Support:
    """Of the titles and sentences in which the answer stands, or if not `cautious`, of the passages in which it does;
    of all passages where it stands nowhere."""
    told = [text for texts in beside(scene, target) for text in texts]
    if not cautious:
        told += [scene.evidence.passages[place].text for place in target.marked]
    if not told:
        told = [
            text
            for passage in scene.evidence.passages
            for text in (passage.title, passage.text)
        ]
    tokenizer = scene.compact.model.tokenizer
    texts = (scene.evidence.question, *told)
    rows = [list(map(stem, words(text))) for text in texts]
    said = {word for text in texts for word in words(text)}
    free = neutral(said)
    pieces = {
        piece for text in (*told, *free, *SMALL_WORDS) for piece in tokenizer.ids(text)
    }
    stems = frozenset(map(stem, free | said))
    neighbours = frozenset(pair for row in rows for pair in itertools.pairwise(row))
    numbers = frozenset(number for text in texts for number in _numbers(text))
    return Support(
        target.answer,
        stems,
        np.array(sorted(pieces), dtype=np.int64),
        neighbours,
        numbers,
    )


def _numbers(text: str) -> set[str]:
    """The numbers of a text, whole.

    >>> sorted(_numbers("At 7:30 p.m., 2,022,044 of 1990's."))
    ['1990', '2,022,044', '7:30']
    """
    return set(_NUMBER.findall(text))


def _names(inserted: str) -> set[tuple[str, str]]:
    """Stems of capitalised words that stand side by side.

    >>> sorted(_names("in the New Zealand of Sir Edmund Hillary"))
    [('edmund', 'hillari'), ('new', 'zealand'), ('sir', 'edmund')]
    """
    each = [(word, words(word)) for word in inserted.split()]
    beside = itertools.pairwise((word, own) for word, own in each if own)
    return {
        (stem(one[-1]), stem(other[0]))
        for (a, one), (b, other) in beside
        if a[:1].isupper() and b[:1].isupper()
    }


def neutral(said: Set[str]) -> frozenset[str]:
    """Words that say no fact beside these: of a novel not that it is a film.

    >>> "film" in neutral({"dune", "novel"}), "book" in neutral({"dune", "novel"}), "film" in neutral({"dune"})
    (False, True, True)
    """
    meant = [kind for kind in KINDS_OF_WORKS if kind & said]
    others = [kind for kind in KINDS_OF_WORKS if meant and kind not in meant]
    return NEUTRAL_WORDS.difference(*others)


def beside(scene: Scene, target: Target) -> list[list[str]]:
    """For each passage with the answer, its title and the sentences that hold the answer."""
    found = []
    for place, spans in target.marked.items():
        pair, passage = scene.evidence.pairs[place], scene.evidence.passages[place]
        starts = [
            pair.starts[first]
            for first, _ in spans
            if pair.text[0] <= first < pair.text[1]
        ]
        found.append([passage.title, *_holding(passage.text, starts)])
    return found


def _holding(text: str, starts: Sequence[int]) -> list[str]:
    spans = sentence_spans(text)
    return [
        text[begin:end]
        for begin, end in spans
        if any(begin <= start < end for start in starts)
    ]
