"""The static encoder: word vectors with one layer of attention over a question. And the encoders by name."""

from __future__ import annotations

import string
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput, did_you_mean
from whichsense.models.wordpiece import pieces
from whichsense.protocols import Encoder

# Two small layers of self-attention over a question's word vectors, in numpy.
#
# The vectors of millions of passages must be cheap. A question is a dozen words, and the static
# encoder can spend a millisecond on it: the meaning of "who" depends on the words beside it.

Floats = NDArray[np.float32]
_PREFIX = "net."
_SCALE = ".scale"
_HEADS = 4
# OpenBLAS uses threads for products of more multiplications than this. For a question that gains nothing, and on a busy
# machine the wait for the other threads takes thirty times as long as the work.
_ONE_THREAD = 2**18


@dataclass(frozen=True)
class QuestionNet:
    """Computes a vector that is added to the normalized sum of a question's word vectors."""

    weights: Mapping[str, Floats]

    @property
    def longest(self) -> int:
        """Tokens of a question; the rest is truncated."""
        return len(self.weights["pos"])

    def __call__(self, tokens: Floats) -> Floats:
        """`tokens` are tokens × width, at least one and at most `longest`."""
        hidden = self._linear("inn", tokens) + self.weights["pos"][: len(tokens)]
        layers = sum(name.endswith(".qkv.weight") for name in self.weights)
        for number in range(layers):
            layer = f"blocks.{number}"
            normed = self._norm(f"{layer}.n1", hidden)
            hidden = hidden + self._attention(layer, normed)
            normed = self._norm(f"{layer}.n2", hidden)
            wide = np.maximum(self._linear(f"{layer}.a", normed), 0)
            hidden = hidden + self._linear(f"{layer}.b", wide)
        mean = self._norm("nf", hidden).mean(axis=0)
        return self._linear("out", mean)

    def _attention(self, layer: str, value: Floats) -> Floats:
        parts = self._linear(f"{layer}.qkv", value).reshape(len(value), 3, _HEADS, -1)
        # Each heads × tokens × head width.
        query, key, content = parts.transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = scores / scores.sum(axis=-1, keepdims=True)
        context = (weights @ content).transpose(1, 0, 2)
        return self._linear(f"{layer}.o", context.reshape(len(value), -1))

    def _linear(self, name: str, value: Floats) -> Floats:
        weight = self.weights[f"{name}.weight"]
        step = max(1, _ONE_THREAD // value.size)
        parts = [value @ weight[start : start + step].T for start in range(0, len(weight), step)]
        return np.concatenate(parts, axis=-1) + self.weights[f"{name}.bias"]

    def _norm(self, name: str, value: Floats) -> Floats:
        centred = value - value.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        unit = centred / np.sqrt(variance + 1e-5)
        scaled = unit * self.weights[f"{name}.weight"]
        return np.asarray(scaled + self.weights[f"{name}.bias"])


def to_arrays(weights: Mapping[str, Floats]) -> dict[str, NDArray[Any]]:
    """Return arrays for a file: matrices as int8 with a scale a row, vectors as float16."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, array in weights.items():
        if array.ndim < 2:
            arrays[_PREFIX + name] = array.astype(np.float16)
            continue
        scale = np.maximum(np.abs(array).max(axis=1, keepdims=True), 1e-9) / 127
        arrays[_PREFIX + name] = np.rint(array / scale).astype(np.int8)
        arrays[_PREFIX + name + _SCALE] = scale.astype(np.float32)
    return arrays


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """Return the weights among a file's arrays; none if the file has no net."""
    weights = {}
    for name, array in arrays.items():
        if not name.startswith(_PREFIX) or name.endswith(_SCALE):
            continue
        scale = arrays.get(name + _SCALE, np.float32(1))
        own_name = name.removeprefix(_PREFIX)
        weights[own_name] = np.asarray(array * scale, dtype=np.float32)
    return weights


# Static vectors: a text's vector is the weighted sum of its words' vectors, in numpy.
#
# The table was distilled from MiniLM and then trained to bring questions near the passages that
# answer them (models/weights/README.md). It encodes passages hundreds of times faster than a
# transformer.

WEIGHTS = Path(__file__).parent / "weights" / "static-1.npz"
_LONGEST = 512  # words of a text; the rest is truncated
_MOST_TOKENS = 2048
# Punctuation and control characters separate words: their tokens weigh next to nothing in a text's vector.
_SEPARATORS = string.punctuation.encode() + bytes(range(32)) + b"\x7f"
_TO_SPACE = bytes.maketrans(_SEPARATORS, b" " * len(_SEPARATORS))


@dataclass(frozen=True)
class VectorTable:
    """Token vectors as int8, the weight of each token in passages and in questions, and a question's net or bridge."""

    vocabulary: dict[str, int]
    codes: NDArray[np.int8]
    """Vocabulary × dimensions."""
    scale: Floats
    passage_weight: Floats
    question_weight: Floats
    """These three: vocabulary."""
    title_weight: float
    net: Mapping[str, Floats] = field(default_factory=dict)
    bridge: Floats | None = None
    """Maps MiniLM's question vectors into this space (MiniLM's dimensions × dimensions)."""

    @classmethod
    def load(cls, path: Path) -> VectorTable:
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            tokens = arrays["vocabulary"].tobytes().decode("utf-8").split("\n")
            bridge = None
            if "bridge" in arrays:
                bridge = arrays["bridge"].astype(np.float32)
            return cls(
                vocabulary={token: number for number, token in enumerate(tokens)},
                codes=arrays["codes"],
                scale=arrays["scale"].astype(np.float32),
                passage_weight=arrays["passage_weight"].astype(np.float32),
                question_weight=arrays["question_weight"].astype(np.float32),
                title_weight=float(arrays["title_weight"]),
                net=from_arrays(arrays),
                bridge=bridge,
            )
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise BadInput(
                f"'{path}' holds no static vectors: {error}. Install whichsense again."
            ) from None

    def save(self, path: Path) -> None:
        tokens = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        rest = to_arrays(self.net)
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
            **rest,  # type: ignore[arg-type]  # mypy takes it for the flag allow_pickle
        )


class WeightedVectors(dict[bytes, tuple[int, ...]]):
    """Weighted token vectors, and a cache word → its tokens. Tokens of weight 0 are left out."""

    def __init__(self, table: VectorTable, weight: Floats, cache_size: int = 2**18) -> None:
        super().__init__()
        self._cache_size = cache_size
        self._vocabulary = table.vocabulary
        self._counts = (weight > 0).tolist()
        self._vectors = table.codes * (table.scale * weight)[:, None]

    def __missing__(self, word: bytes) -> tuple[int, ...]:
        all_tokens = pieces(word.decode("utf-8", "replace"), self._vocabulary)
        # Most cached words were met once; frequent ones come back at once.
        if len(self) >= self._cache_size:
            self.clear()
        tokens = tuple([token for token in all_tokens if self._counts[token]])
        self[word] = tokens
        return tokens

    def tokens(self, text: str) -> list[int]:
        spaced = text.lower().encode("utf-8", "replace").translate(_TO_SPACE)
        words = spaced.split(None, _LONGEST)[:_LONGEST]
        tokens = list(chain.from_iterable(map(self.__getitem__, words)))
        return tokens[:_MOST_TOKENS]

    def sums(self, texts: Sequence[str]) -> Floats:
        """Return the normalized sum of each text's token vectors (texts × dimensions); zeros for a text without
        words.
        """
        width = self._vectors.shape[1]
        sums = np.zeros((len(texts), width), dtype=np.float32)
        buffer = np.empty((_MOST_TOKENS, width), dtype=np.float32)
        ones = np.ones(_MOST_TOKENS, dtype=np.float32)
        for text, out in zip(texts, sums, strict=True):
            tokens = self.tokens(text)
            rows = buffer[: len(tokens)]
            # Mode "raise" would copy once more.
            self._vectors.take(tokens, axis=0, out=rows, mode="clip")
            # A product with ones is a sum at twice the speed.
            np.dot(ones[: len(tokens)], rows, out=out)
        return _normalize(sums)


def _normalize(vectors: Floats) -> Floats:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    lengths[lengths == 0] = 1
    return np.asarray(vectors / lengths[:, None], dtype=np.float32)


@dataclass(frozen=True)
class Static:
    """An `Encoder` of ten thousand passages a second on one core, and of a question in a millisecond.

    With `questions=MiniLM()` that model encodes the questions (and finds more), over the same passage vectors.
    """

    weights: Path = WEIGHTS
    questions: Encoder | None = None
    cache_size: int = 2**18
    """Words whose tokens are cached."""

    @property
    def name(self) -> str:
        if self.weights == WEIGHTS:
            return self.weights.stem
        return str(self.weights.resolve())

    @property
    def dimensions(self) -> int:
        return int(self._table.codes.shape[1])

    def has_word(self, word: str) -> bool:
        """Tell whether a lower-cased word is one token: a common word, probably no misspelt one."""
        return word in self._table.vocabulary

    def encode_passages(self, texts: Sequence[str]) -> Floats:
        """The first line of a text is its title, which is weighed apart: its few words would be lost in the sum."""
        bodies: list[str] = []
        rows: list[int] = []
        # Passages of one document share a title, which is encoded once.
        row_of: dict[str, int] = {}
        for text in texts:
            title, newline, body = text.partition("\n")
            if not newline:
                title = ""
                body = text
            rows.append(row_of.setdefault(title, len(row_of)))
            bodies.append(body)
        titles = self._passage_words.sums(list(row_of))
        vectors = self._passage_words.sums(bodies)
        vectors += self._table.title_weight * titles[rows]
        return _normalize(vectors)

    def encode_questions(self, questions: Sequence[str]) -> Floats:
        table = self._table
        if self.questions is not None:
            if table.bridge is None:
                raise BadInput(
                    f"'{self.weights}' has no bridge from other question encoders. Leave `questions` out."
                )
            own = self.questions.encode_questions(questions)
            return _normalize(own @ table.bridge)
        vectors = self._question_words.sums(questions)
        if table.net:
            net = QuestionNet(table.net)
            for place, question in enumerate(questions):
                tokens = self._question_words.tokens(question)[: net.longest]
                if tokens:
                    words = table.codes[tokens] * table.scale[tokens, None]
                    vectors[place] += net(words)
        return _normalize(vectors)

    @cached_property
    def _table(self) -> VectorTable:
        return VectorTable.load(self.weights)

    @cached_property
    def _passage_words(self) -> WeightedVectors:
        return WeightedVectors(self._table, self._table.passage_weight, self.cache_size)

    @cached_property
    def _question_words(self) -> WeightedVectors:
        return WeightedVectors(self._table, self._table.question_weight, self.cache_size)


# Encoders by name, as in an index's manifest and on the command line.

DEFAULT = "static"


def load_encoder(name: str) -> Encoder:
    """Return the encoder of this name: `static`, `minilm`, a model folder, or a name on the hub. Weights load on
    first use.

    With `static+minilm`, `static` encodes passages and MiniLM encodes questions.

    >>> load_encoder("static").name
    'static-1'
    >>> load_encoder("minlm")
    Traceback (most recent call last):
    ...
    whichsense.errors.BadInput: No encoder named 'minlm'. Did you mean 'minilm'?
    """
    if name in (DEFAULT, WEIGHTS.stem):
        return Static()
    from whichsense.models.minilm import MiniLM

    if name == "static+minilm":
        return Static(questions=MiniLM())
    if name.endswith(WEIGHTS.suffix):
        return Static(Path(name).resolve())
    folder = Path(name).expanduser()
    if folder.is_dir():
        # An absolute path: an index must find it again from any working directory.
        place = str(folder.resolve())
        if (folder / "bert.json").is_file():
            from whichsense.models.bert.encoders import DPR  # needs torch

            return DPR(place)
        return MiniLM(place)
    if name == "minilm" or "/" in name:
        return MiniLM(name)
    names = [DEFAULT, "minilm", "static+minilm"]
    raise BadInput(f"No encoder named '{name}'. {did_you_mean(name, names)}")


def estimate(encoder: Encoder, texts: Sequence[str], seconds: float = 3.0) -> float:
    """Measure passages a second by encoding some of `texts` for about `seconds`. Loading is not counted."""
    if not texts:
        raise BadInput("A rate cannot be estimated without texts.")
    encoder.encode_passages(texts[:1])
    begun = time.perf_counter()
    done = 0
    size = 4
    while True:
        # Each batch is twice as large as the last: few calls for a fast encoder, few seconds for a slow one.
        batch = [texts[place % len(texts)] for place in range(done, done + size)]
        encoder.encode_passages(batch)
        done += size
        size *= 2
        passed = time.perf_counter() - begun
        if passed * 2 > seconds or done >= 8192:
            return done / max(passed, 1e-9)
