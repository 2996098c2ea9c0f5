"""Reads the weights back from an exported folder, so that training can continue from it.

A weight is its code times its step. Exported again, the weights give the same codes and steps. It needs the
package onnx.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput
from whichsense.models.compact.encoder.graph import WEIGHT_TOP, step_of
from whichsense.models.compact.encoder.runtime import (
    FORMAT,
    UNREADABLE,
    Embeddings,
    read_config,
    repair_hint,
)
from whichsense.models.compact.export import (
    CONFIG,
    EMBEDDINGS,
    GRAPHS,
    MORE_GRAPHS,
    VERIFIER,
    WORD_TOP,
)
from whichsense.models.onnx_graph import read_constants

_Array = NDArray[Any]
_NEAR = 8  # neighbouring floats on either side that are tried to restore a step exactly


@dataclass(frozen=True)
class Exported:
    """The contents of a weights folder: weights as `export` takes them, the config, the vocabulary."""

    weights: dict[str, NDArray[np.float32]]
    config: dict[str, Any]
    vocabulary: list[str]

    @property
    def shape(self) -> dict[str, Any]:
        shape: dict[str, Any] = self.config["shape"]
        return shape


def load(folder: Path) -> Exported:
    """Read a folder that `export` wrote in int8."""
    try:
        config = read_config(folder / CONFIG)
        if (config.get("format"), config.get("int8")) != (FORMAT, True):
            raise ValueError(f"its format is not {FORMAT}, in int8")
        words = Embeddings.load(folder / EMBEDDINGS)
        weights = _embeddings(words)
        for name, file in (GRAPHS | MORE_GRAPHS).items():
            if name in GRAPHS or (folder / name).exists():
                own = _of_graph(read_constants(folder / name), WEIGHT_TOP)
                for weight, array in own.items():
                    weights[file.prefix + weight] = array
        _share_steps(weights, config["shape"])
    except (BadInput, *UNREADABLE) as error:
        raise BadInput(
            f"'{folder}' holds no compact model that can be read: {error}. {repair_hint(folder)}"
        ) from None
    return Exported(weights, config, words.vocabulary)


def _embeddings(words: Embeddings) -> dict[str, _Array]:
    if words.steps is None:
        raise ValueError("its word vectors are not in int8")
    return {
        "encoder.words.weight": _decoded(words.codes, words.steps, WORD_TOP),
        "encoder.places.weight": words.places,
        "encoder.types.weight": words.types,
        "writer.places": words.writer_places,
        "writer.kinds": words.writer_kinds,
        "writer.signs": words.signs,
        "writer.out_bias": words.bias,
    }


def _of_graph(arrays: Mapping[str, _Array], top: int) -> dict[str, _Array]:
    """Matrices, biases, norms and heads of a graph. A constant has the name of its weight."""
    weights: dict[str, _Array] = {}
    for name, array in arrays.items():
        if array.dtype == np.int8:
            matrix = _decoded(array.T, arrays[f"{name}.steps"][:, None], top)
            for layer, part in _split_layers(name, matrix):
                weights[f"{layer}.weight"] = part
        elif name.endswith(".step"):
            weights[name.removesuffix("step") + "scale"] = _logarithm(array)
        elif name.endswith(".bias"):
            for layer, part in _split_layers(name.removesuffix(".bias"), array):
                weights[f"{layer}.bias"] = part
        elif name.endswith(".weight"):
            weights[name] = array.T if name == "span.weight" else array
    return weights


def _split_layers(names: str, array: _Array) -> Iterator[tuple[str, _Array]]:
    """Separate layers that stand side by side: their names are joined by +, and all have one height."""
    layers = names.split("+")
    return zip(layers, np.split(array, len(layers)), strict=True)


def _decoded(codes: _Array, steps: _Array, top: int) -> NDArray[np.float32]:
    """Codes times steps. A step is the greatest weight of a row divided by `top`; that weight is restored to the
    float whose division gives the step again."""
    divisor = np.float32(top)
    greatest = _nearest(steps * divisor, lambda value: value / divisor, steps)
    whole = codes.astype(np.float32)
    is_greatest = np.abs(whole) == top
    weights = np.where(is_greatest, np.sign(whole) * greatest, whole * steps)
    return weights.astype(np.float32)


def _logarithm(step: _Array) -> NDArray[np.float32]:
    return _nearest(np.log(step), step_of, step)


def _nearest(near: _Array, function: Any, wanted: _Array) -> NDArray[np.float32]:
    """The floats nearest to some whose function values are the wanted ones; the floats themselves where none is."""
    best = below = above = np.asarray(near, np.float32)
    for _ in range(_NEAR):
        below = np.nextafter(below, np.float32(-np.inf))
        above = np.nextafter(above, np.float32(np.inf))
        for other in (below, above):
            improves = (function(best) != wanted) & (function(other) == wanted)
            best = np.where(improves, other, best)
    return best


def _share_steps(weights: dict[str, _Array], shape: Mapping[str, Any]) -> None:
    """Copy the step that layers with one quantized input share: it is stored once."""
    for number in range(shape["layers"]):
        for prefix in ("", VERIFIER):
            first = f"{prefix}encoder.layers.{number}.attention"
            # The verifier has late layers only.
            if f"{first}.query.scale" not in weights:
                continue
            for part in ("key", "value"):
                weights[f"{first}.{part}.scale"] = weights[f"{first}.query.scale"]
