"""Two small layers of attention over a question's word vectors, in numpy.

A passage's vector must be cheap, for there are millions of them; a question is one at a time and a dozen words long.
So the static encoder spends a millisecond on it: what "who" asks for depends on the words beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
PREFIX, SCALE = "net.", ".scale"
_HEADS = 4
# OpenBLAS shares products of more multiplications than this among threads. For a question that gains nothing, and on a
# busy machine waiting for the other threads takes thirty times as long as the work.
_ONE_THREAD = 2**18


@dataclass(frozen=True)
class QuestionNet:
    """What is added to the sum of a question's word vectors (both at length 1 or near it)."""

    weights: Mapping[str, Floats]

    @property
    def longest(self) -> int:
        """Tokens of a question that are read."""
        return len(self.weights["pos"])

    def __call__(self, tokens: Floats) -> Floats:
        """`tokens`: one vector a token, at most `longest` of them and at least one."""
        hidden = self._linear("inn", tokens) + self.weights["pos"][: len(tokens)]
        layers = sum(name.endswith(".qkv.weight") for name in self.weights)
        for layer in (f"blocks.{number}" for number in range(layers)):
            hidden = hidden + self._attention(layer, self._norm(f"{layer}.n1", hidden))
            wide = np.maximum(
                self._linear(f"{layer}.a", self._norm(f"{layer}.n2", hidden)), 0
            )
            hidden = hidden + self._linear(f"{layer}.b", wide)
        return self._linear("out", self._norm("nf", hidden).mean(axis=0))

    def _attention(self, layer: str, value: Floats) -> Floats:
        parts = self._linear(f"{layer}.qkv", value).reshape(len(value), 3, _HEADS, -1)
        query, key, content = parts.transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        seen = scores / scores.sum(axis=-1, keepdims=True) @ content
        return self._linear(
            f"{layer}.o", seen.transpose(1, 0, 2).reshape(len(value), -1)
        )

    def _linear(self, name: str, value: Floats) -> Floats:
        weight = self.weights[f"{name}.weight"]
        step = max(1, _ONE_THREAD // value.size)
        parts = [
            value @ weight[start : start + step].T
            for start in range(0, len(weight), step)
        ]
        return np.concatenate(parts, axis=-1) + self.weights[f"{name}.bias"]

    def _norm(self, name: str, value: Floats) -> Floats:
        centred = value - value.mean(axis=-1, keepdims=True)
        spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + 1e-5)
        return np.asarray(
            centred / spread * self.weights[f"{name}.weight"]
            + self.weights[f"{name}.bias"]
        )


def stored(weights: Mapping[str, Floats]) -> dict[str, NDArray[Any]]:
    """Arrays for a file: matrices as int8 with a scale a row, vectors as float16."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, array in weights.items():
        if array.ndim < 2:
            arrays[PREFIX + name] = array.astype(np.float16)
            continue
        scale = np.maximum(np.abs(array).max(axis=1, keepdims=True), 1e-9) / 127
        arrays[PREFIX + name] = np.rint(array / scale).astype(np.int8)
        arrays[PREFIX + name + SCALE] = scale.astype(np.float32)
    return arrays


def loaded(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """The weights that `stored` gave; none where a file has none."""
    names = [
        name for name in arrays if name.startswith(PREFIX) and not name.endswith(SCALE)
    ]
    return {
        name.removeprefix(PREFIX): np.asarray(
            arrays[name] * arrays.get(name + SCALE, np.float32(1)), dtype=np.float32
        )
        for name in names
    }
