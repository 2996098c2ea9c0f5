"""Two small layers of self-attention over a question's word vectors, in numpy.

The vectors of millions of passages must be cheap. A question is a dozen words, and the static encoder can spend a
millisecond on it: the meaning of "who" depends on the words beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        parts = []
        for start in range(0, len(weight), step):
            parts.append(value @ weight[start : start + step].T)
        return np.concatenate(parts, axis=-1) + self.weights[f"{name}.bias"]

    def _norm(self, name: str, value: Floats) -> Floats:
        centred = value - value.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        unit = centred / np.sqrt(variance + 1e-5)
        scaled = unit * self.weights[f"{name}.weight"]
        return np.asarray(scaled + self.weights[f"{name}.bias"])


def to_arrays(weights: Mapping[str, Floats]) -> dict[str, NDArray[Any]]:
    """Arrays for a file: matrices as int8 with a scale a row, vectors as float16."""
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
    """The weights among a file's arrays; none if the file has no net."""
    weights = {}
    for name, array in arrays.items():
        if not name.startswith(_PREFIX) or name.endswith(_SCALE):
            continue
        scale = arrays.get(name + _SCALE, np.float32(1))
        own_name = name.removeprefix(_PREFIX)
        weights[own_name] = np.asarray(array * scale, dtype=np.float32)
    return weights
