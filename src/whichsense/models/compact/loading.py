"""A weights folder as the weights that it was exported from, so that training can go on from it.

What comes back is what the folder says: weights are their codes times their steps. Exported again they give the same
codes and steps. It needs the package onnx.
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
from whichsense.models.compact.export import CONFIG, EMBEDDINGS, GRAPHS, WORD_TOP
from whichsense.models.onnx_graph import read_constants

Array = NDArray[Any]
_NEAR = 8  # floats on either side that are tried, so that a step comes out as it was


@dataclass(frozen=True)
class Exported:
    """What a weights folder holds: weights as `export` is given them, the shape, the vocabulary."""

    weights: dict[str, NDArray[np.float32]]
    config: dict[str, Any]
    vocabulary: list[str]

    @property
    def shape(self) -> dict[str, Any]:
        found: dict[str, Any] = self.config["shape"]
        return found


def load(folder: Path) -> Exported:
    """Read a folder that `export` wrote in int8."""
    try:
        config = read_config(folder / CONFIG)
        if (config.get("format"), config.get("int8")) != (FORMAT, True):
            raise ValueError(f"its format is not {FORMAT}, in int8")
        words = Embeddings.load(folder / EMBEDDINGS)
        weights = _embeddings(words)
        for name in GRAPHS:
            weights |= _of_graph(read_constants(folder / name), WEIGHT_TOP)
        _share_steps(weights, config["shape"])
    except (BadInput, *UNREADABLE) as error:
        raise BadInput(
            f"'{folder}' holds no compact model that can be read: {error}. {repair_hint(folder)}"
        ) from None
    return Exported(weights, config, words.vocabulary)


def _embeddings(words: Embeddings) -> dict[str, Array]:
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


def _of_graph(arrays: Mapping[str, Array], top: int) -> dict[str, Array]:
    """Matrices, biases, norms and heads: constants are named as the weights that they were made of."""
    found: dict[str, Array] = {}
    for name, array in arrays.items():
        if array.dtype == np.int8:
            matrix = _decoded(array.T, arrays[f"{name}.steps"][:, None], top)
            found |= {f"{layer}.weight": part for layer, part in _apart(name, matrix)}
        elif name.endswith(".step"):
            found[name.removesuffix("step") + "scale"] = _logarithm(array)
        elif name.endswith(".bias"):
            found |= {
                f"{layer}.bias": part
                for layer, part in _apart(name.removesuffix(".bias"), array)
            }
        elif name.endswith(".weight"):
            found[name] = array.T if name == "span.weight" else array
    return found


def _apart(names: str, array: Array) -> Iterator[tuple[str, Array]]:
    """Layers that were put side by side: their names are joined by +, and all are of one height."""
    layers = names.split("+")
    return zip(layers, np.split(array, len(layers)), strict=True)


def _decoded(codes: Array, steps: Array, top: int) -> NDArray[np.float32]:
    """Codes times steps. The step is the greatest of a row divided by `top`; the product may be a float beside the one
    whose division gives the step again."""
    greatest = _beside(
        steps * np.float32(top), lambda value: value / np.float32(top), steps
    )
    whole = codes.astype(np.float32)
    return np.where(
        np.abs(whole) == top, np.sign(whole) * greatest, whole * steps
    ).astype(np.float32)


def _logarithm(step: Array) -> NDArray[np.float32]:
    return _beside(np.log(step), step_of, step)


def _beside(near: Array, function: Any, wanted: Array) -> NDArray[np.float32]:
    """The floats nearest to some, of which a function gives what is wanted; the nearest at all where none does."""
    best = below = above = np.asarray(near, np.float32)
    for _ in range(_NEAR):
        below, above = (
            np.nextafter(below, np.float32(-np.inf)),
            np.nextafter(above, np.float32(np.inf)),
        )
        for other in (below, above):
            best = np.where(
                (function(best) != wanted) & (function(other) == wanted), other, best
            )
    return best


def _share_steps(weights: dict[str, Array], shape: Mapping[str, Any]) -> None:
    """Layers that read one quantized tensor have one step, which is written once."""
    for number in range(shape["layers"]):
        first = f"encoder.layers.{number}.attention"
        for part in ("key", "value"):
            weights[f"{first}.{part}.scale"] = weights[f"{first}.query.scale"]
