"""A tokenizer that remembers, and where word pieces occur in others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder.tokens import Tokenizer


@dataclass(frozen=True)
class CachedTokenizer(Tokenizer):
    """Tokenizes a text once: the same questions, answers and rewrites come again in every epoch."""

    _ids: dict[tuple[str, int | None], tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, vocabulary: Sequence[str]) -> CachedTokenizer:
        return cls({piece: number for number, piece in enumerate(vocabulary)})

    def ids(self, text: str, most: int | None = None) -> list[int]:
        # Lists are mutable, so the cache holds tuples.
        ids = self._ids.get((text, most))
        if ids is None:
            ids = tuple(super().ids(text, most))
            self._ids[text, most] = ids
        return list(ids)


def continuations(vocabulary: Sequence[str]) -> NDArray[np.bool_]:
    """For each word piece, whether it continues a word."""
    return np.array([piece.startswith("##") for piece in vocabulary])


def _find_pieces(
    text: Sequence[int], wanted: Sequence[int], continues: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """Where pieces occur in a text as whole words: the first and the last piece of each occurrence.

    >>> continues = np.array([False, False, True])
    >>> _find_pieces([1, 2, 1, 1], [1], continues)
    [(2, 2), (3, 3)]
    """
    text, wanted = list(text), list(wanted)
    occurrences = []
    for start, piece in enumerate(text):
        if piece != wanted[0]:
            continue
        end = start + len(wanted)
        # "art" does not occur in "art ##ist".
        word_goes_on = end < len(text) and continues[text[end]]
        if text[start:end] == wanted and not word_goes_on:
            occurrences.append((start, end - 1))
    return occurrences


def find_in_passage(
    title: Sequence[int],
    text: Sequence[int],
    wanted: Sequence[int],
    continues: NDArray[np.bool_],
) -> list[tuple[int, int]]:
    """The same in a passage, counted from its title's first piece on."""
    occurrences = _find_pieces(title, wanted, continues)
    for first, last in _find_pieces(text, wanted, continues):
        occurrences.append((len(title) + first, len(title) + last))
    return occurrences
