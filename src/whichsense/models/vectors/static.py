"""Static vectors: a text's vector is the weighted sum of its words' vectors. No attention, no runtime, only numpy.

The table was distilled from MiniLM and then trained to bring questions near the passages that answer them
(models/weights/README.md). It encodes passages hundreds of times faster than a transformer does.
"""

from __future__ import annotations

import string
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput
from whichsense.models.vectors import question_net
from whichsense.models.vectors.question_net import Floats, QuestionNet
from whichsense.models.wordpiece import pieces
from whichsense.protocols import Encoder

WEIGHTS = Path(__file__).parents[1] / "weights" / "static-1.npz"
LONGEST = 512  # words of a text that are read
_MOST_TOKENS = 2048
_REMEMBERED = 2**18
# Punctuation parts words as white space does: its tokens weigh next to nothing in a text's vector.
_TO_SPACE = bytes(
    32 if chr(byte) in string.punctuation or byte < 32 or byte == 127 else byte
    for byte in range(256)
)


@dataclass(frozen=True)
class Table:
    """Token vectors as int8, how far each token moves a passage and a question, and what else a question needs."""

    vocabulary: dict[str, int]
    codes: NDArray[np.int8]
    scale: Floats
    passage_weight: Floats
    question_weight: Floats
    title_weight: float
    net: Mapping[str, Floats] = field(default_factory=dict)
    bridge: Floats | None = None
    """MiniLM's question vectors × bridge lie in the same space."""

    @classmethod
    def load(cls, path: Path) -> Table:
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            tokens = arrays["vocabulary"].tobytes().decode("utf-8").split("\n")
            return cls(
                {token: number for number, token in enumerate(tokens)},
                arrays["codes"],
                arrays["scale"].astype(np.float32),
                arrays["passage_weight"].astype(np.float32),
                arrays["question_weight"].astype(np.float32),
                float(arrays["title_weight"]),
                question_net.loaded(arrays),
                arrays["bridge"].astype(np.float32) if "bridge" in arrays else None,
            )
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise BadInput(
                f"'{path}' holds no static vectors: {error}. Install whichsense again."
            ) from None

    def save(self, path: Path) -> None:
        tokens = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        rest = question_net.stored(self.net)
        if self.bridge is not None:
            rest["bridge"] = self.bridge.astype(np.float16)
        np.savez_compressed(
            path,
            vocabulary=np.frombuffer("\n".join(tokens).encode(), dtype=np.uint8),
            codes=self.codes,
            scale=self.scale.astype(np.float16),
            passage_weight=self.passage_weight.astype(np.float16),
            question_weight=self.question_weight.astype(np.float16),
            title_weight=np.float32(self.title_weight),
            **rest,  # type: ignore[arg-type]  # numpy takes it for the flag allow_pickle
        )


class Words(dict[bytes, tuple[int, ...]]):
    """Word → its tokens, worked out when a word is first met. Tokens that weigh nothing are left out."""

    def __init__(self, table: Table, weight: Floats) -> None:
        super().__init__()
        self._vocabulary, self._weighs = table.vocabulary, (weight > 0).tolist()
        self._vectors = table.codes * (table.scale * weight)[:, None]

    def __missing__(self, word: bytes) -> tuple[int, ...]:
        found = pieces(word.decode("utf-8", "replace"), self._vocabulary)
        if (
            len(self) >= _REMEMBERED
        ):  # most are words met once; those that matter are back at once
            self.clear()
        tokens = self[word] = tuple([token for token in found if self._weighs[token]])
        return tokens

    def tokens(self, text: str) -> list[int]:
        words = (
            text.lower()
            .encode("utf-8", "replace")
            .translate(_TO_SPACE)
            .split(None, LONGEST)[:LONGEST]
        )
        return list(chain.from_iterable(map(self.__getitem__, words)))[:_MOST_TOKENS]

    def sums(self, texts: Sequence[str]) -> Floats:
        """The sum of each text's token vectors, at length 1; a text without words gets the zero vector."""
        found = np.zeros((len(texts), self._vectors.shape[1]), dtype=np.float32)
        room = np.empty((_MOST_TOKENS, self._vectors.shape[1]), dtype=np.float32)
        ones = np.ones(_MOST_TOKENS, dtype=np.float32)
        for text, out in zip(texts, found, strict=True):
            tokens = self.tokens(text)
            gathered = room[: len(tokens)]
            self._vectors.take(
                tokens, axis=0, out=gathered, mode="clip"
            )  # mode "raise" would copy once more
            np.dot(ones[: len(tokens)], gathered, out=out)  # a sum, at twice the speed
        return _unit(found)


def _unit(vectors: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    lengths[lengths == 0] = 1
    return np.asarray(vectors / lengths[:, None], dtype=np.float32)


@dataclass(frozen=True)
class Static:
    """An `Encoder` without a model: ten thousand passages a second on one core, a millisecond a question.

    With `questions=MiniLM()` questions go through that model instead (and find more), over the same passage vectors.
    """

    weights: Path = WEIGHTS
    questions: Encoder | None = None

    @property
    def name(self) -> str:
        return (
            self.weights.stem
            if self.weights == WEIGHTS
            else str(self.weights.resolve())
        )

    @property
    def dimensions(self) -> int:
        return int(self._table.codes.shape[1])

    def encode_passages(self, texts: Sequence[str]) -> Floats:
        """A first line is the title, which counts apart: in the text's sum a few words would be lost."""
        parted = [
            text.partition("\n") if "\n" in text else ("", "", text) for text in texts
        ]
        places = {
            title: place
            for place, title in enumerate(
                dict.fromkeys(title for title, _, _ in parted)
            )
        }
        titles = self._passage_words.sums(list(places))
        vectors = self._passage_words.sums([text for _, _, text in parted])
        vectors += (
            self._table.title_weight * titles[[places[title] for title, _, _ in parted]]
        )
        return _unit(vectors)

    def encode_questions(self, questions: Sequence[str]) -> Floats:
        table = self._table
        if self.questions is not None:
            if table.bridge is None:
                raise BadInput(
                    f"'{self.weights}' has no bridge from other question encoders. Leave `questions` out."
                )
            return _unit(self.questions.encode_questions(questions) @ table.bridge)
        vectors = self._question_words.sums(questions)
        if table.net:
            net = QuestionNet(table.net)
            for place, question in enumerate(questions):
                if tokens := self._question_words.tokens(question)[: net.longest]:
                    vectors[place] += net(
                        table.codes[tokens] * table.scale[tokens, None]
                    )
        return _unit(vectors)

    @cached_property
    def _table(self) -> Table:
        return Table.load(self.weights)

    @cached_property
    def _passage_words(self) -> Words:
        return Words(self._table, self._table.passage_weight)

    @cached_property
    def _question_words(self) -> Words:
        return Words(self._table, self._table.question_weight)
