"""Static vectors: a text's vector is the weighted sum of its words' vectors. No attention, no runtime, only numpy.

The table was distilled from MiniLM and then trained to bring questions near the passages that answer them
(models/weights/README.md). It encodes passages hundreds of times faster than a transformer does.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput
from whichsense.models.wordpiece import pieces

WEIGHTS = Path(__file__).with_name("weights") / "static-1.npz"
LONGEST = 512  # words of a text that are read
_MOST_TOKENS = 2048
_REMEMBERED = 2**18
# Punctuation parts words as white space does: its tokens weigh next to nothing in a text's vector.
_TO_SPACE = bytes(32 if chr(byte) in string.punctuation or byte < 32 or byte == 127 else byte for byte in range(256))


@dataclass(frozen=True)
class Table:
    """Token vectors as int8, and how far each token moves a passage and a question."""

    vocabulary: dict[str, int]
    codes: NDArray[np.int8]
    passage_scale: NDArray[np.float32]
    question_scale: NDArray[np.float32]
    title_weight: float

    @classmethod
    def load(cls, path: Path) -> Table:
        try:
            with np.load(path, allow_pickle=False) as stored:
                tokens = stored["vocabulary"].tobytes().decode("utf-8").split("\n")
                return cls(
                    {token: number for number, token in enumerate(tokens)},
                    stored["codes"],
                    stored["passage_scale"].astype(np.float32),
                    stored["question_scale"].astype(np.float32),
                    float(stored["title_weight"]),
                )
        except (OSError, KeyError, ValueError) as error:
            raise BadInput(f"'{path}' holds no static vectors: {error}. Install whichsense again.") from None

    def save(self, path: Path) -> None:
        tokens = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        np.savez_compressed(
            path,
            vocabulary=np.frombuffer("\n".join(tokens).encode(), dtype=np.uint8),
            codes=self.codes,
            passage_scale=self.passage_scale.astype(np.float16),
            question_scale=self.question_scale.astype(np.float16),
            title_weight=np.float32(self.title_weight),
        )


class _Words(dict[bytes, tuple[int, ...]]):
    """Word → its tokens, worked out when a word is first met. Tokens that weigh nothing are left out."""

    def __init__(self, table: Table, scale: NDArray[np.float32]) -> None:
        super().__init__()
        self._vocabulary, self._weighs = table.vocabulary, (scale > 0).tolist()
        self._vectors = table.codes * scale[:, None]

    def __missing__(self, word: bytes) -> tuple[int, ...]:
        found = pieces(word.decode("utf-8", "replace"), self._vocabulary)
        if len(self) >= _REMEMBERED:  # most are words met once; those that matter are back at once
            self.clear()
        tokens = self[word] = tuple([token for token in found if self._weighs[token]])
        return tokens

    def sums(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The sum of each text's token vectors, at length 1; a text without words gets the zero vector."""
        found = np.zeros((len(texts), self._vectors.shape[1]), dtype=np.float32)
        room = np.empty((_MOST_TOKENS, self._vectors.shape[1]), dtype=np.float32)
        ones = np.ones(_MOST_TOKENS, dtype=np.float32)
        look_up = self.__getitem__
        for text, out in zip(texts, found, strict=True):
            tokens = list(chain.from_iterable(map(look_up, _words(text))))[:_MOST_TOKENS]
            gathered = room[: len(tokens)]
            self._vectors.take(tokens, axis=0, out=gathered, mode="clip")  # mode "raise" would copy once more
            np.dot(ones[: len(tokens)], gathered, out=out)  # a sum, at twice the speed
        return _unit(found)


def _words(text: str) -> list[bytes]:
    return text.lower().encode("utf-8", "replace").translate(_TO_SPACE).split(None, LONGEST)[:LONGEST]


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    lengths[lengths == 0] = 1
    return np.asarray(vectors / lengths[:, None], dtype=np.float32)


@dataclass(frozen=True)
class Static:
    """An `Encoder` without a model: tens of thousands of passages a second on one core."""

    weights: Path = WEIGHTS

    @property
    def name(self) -> str:
        return self.weights.stem if self.weights == WEIGHTS else str(self.weights.resolve())

    @property
    def dimensions(self) -> int:
        return int(self._table.codes.shape[1])

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A first line is the title, which counts apart: in the text's sum a few words would be lost."""
        parted = [text.partition("\n") if "\n" in text else ("", "", text) for text in texts]
        places = {title: place for place, title in enumerate(dict.fromkeys(title for title, _, _ in parted))}
        titles = self._passage_words.sums(list(places))
        vectors = self._passage_words.sums([text for _, _, text in parted])
        vectors += self._table.title_weight * titles[[places[title] for title, _, _ in parted]]
        return _unit(vectors)

    def encode_questions(self, questions: Sequence[str]) -> NDArray[np.float32]:
        return self._question_words.sums(questions)

    @cached_property
    def _table(self) -> Table:
        return Table.load(self.weights)

    @cached_property
    def _passage_words(self) -> _Words:
        return _Words(self._table, self._table.passage_scale)

    @cached_property
    def _question_words(self) -> _Words:
        return _Words(self._table, self._table.question_scale)
