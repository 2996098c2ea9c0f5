"""A trained checkpoint as the folder that the runtime reads, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput
from whichsense.files import write_atomically
from whichsense.models.compact import graphs
from whichsense.models.compact.encoder import (
    FORMAT,
    UNREADABLE,
    Embeddings,
    read_config,
    repair_hint,
)
from whichsense.models.compact.graphs import WEIGHT_TOP, Weights, step_of
from whichsense.models.onnx_graph import read_constants

# Writes a trained checkpoint as the folder that the runtime reads: ONNX graphs, word vectors,
# settings.


class GraphFile(NamedTuple):
    """A graph of the folder: how it is built, and the prefix of its weights' names, which the graph does not have."""

    build: Callable[..., bytes]
    prefix: str = ""


VERIFIER = "verifier."
GRAPHS = {
    "early.onnx": GraphFile(graphs.early),
    "late.onnx": GraphFile(graphs.late),
    "verdict.onnx": GraphFile(graphs.verdict),
    "writer.onnx": GraphFile(graphs.writer),
}
# A folder without them asks again with the encoder's own late half.
MORE_GRAPHS = {
    "verifier.onnx": GraphFile(graphs.late, VERIFIER),
    "verifier-verdict.onnx": GraphFile(graphs.verdict, VERIFIER),
}
CONFIG, EMBEDDINGS = "config.json", "embeddings.npz"
SCORER, TRUST = "scorer.json", "trust.json"
WORD_TOP = 127
WRITER_LAYERS = "writer_layers"  # the writer's part of the shape


def export(
    weights: Weights,
    shape: Any,
    vocabulary: Sequence[str],
    folder: Path,
    *,
    int8: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Write a model's weights and shape to a folder.

    `weights` are numpy arrays under the names of `CompactNet.state_dict()`, the writer's with "writer." in front, the
    verifier's with "verifier."; the verifier may be left out.
    `shape` is a `CompactConfig` with the number of the writer's layers. `settings` is added to config.json: name,
    frequent word pieces, provenance.
    """
    if is_dataclass(shape) and not isinstance(shape, type):
        sizes: dict[str, Any] = asdict(shape)
    else:
        sizes = dict(shape)
    if len(vocabulary) != sizes["vocabulary"]:
        raise BadInput(
            f"The vocabulary has {len(vocabulary):,} word pieces; the model has {sizes['vocabulary']:,}."
        )
    floats: dict[str, NDArray[np.float32]] = {}
    for name, array in weights.items():
        floats[name] = np.asarray(array, dtype=np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in (GRAPHS | MORE_GRAPHS).items():
        own = _with_prefix(floats, file.prefix)
        if own:
            write_atomically(folder / name, file.build(own, sizes, int8=int8))
    _write_embeddings(floats, vocabulary, folder / EMBEDDINGS, int8=int8)
    config = {"format": FORMAT, "shape": sizes, "int8": int8}
    for name, value in (settings or {}).items():
        config.setdefault(name, value)
    text = json.dumps(config, ensure_ascii=False) + "\n"
    write_atomically(folder / CONFIG, text.encode())


def _with_prefix(weights: Weights, prefix: str) -> Weights:
    """Return the weights whose names begin so, under the rest of their names."""
    own = {}
    for name, array in weights.items():
        if name.startswith(prefix):
            own[name.removeprefix(prefix)] = array
    return own


def _write_embeddings(
    weights: Weights, vocabulary: Sequence[str], path: Path, *, int8: bool
) -> None:
    """Write the embedding tables. Encoder, writer and the writer's output share the word vectors."""
    words = weights["encoder.words.weight"]
    stored: dict[str, Any] = {"codes": words}
    if int8:
        # One step for each word: vocabulary × 1.
        steps = np.maximum(np.abs(words).max(axis=1, keepdims=True), 1e-8) / WORD_TOP
        stored = {"codes": np.round(words / steps).astype(np.int8), "steps": steps}
    half = np.float16 if int8 else np.float32
    np.savez_compressed(
        path,
        vocabulary=np.frombuffer("\n".join(vocabulary).encode(), dtype=np.uint8),
        places=weights["encoder.places.weight"].astype(half),
        types=weights["encoder.types.weight"],
        writer_places=weights["writer.places"].astype(half),
        writer_kinds=weights["writer.kinds"],
        signs=weights["writer.signs"].astype(half),
        words_bias=weights["writer.out_bias"].astype(half),
        **stored,
    )


# Reads the weights back from an exported folder, so that training can continue from it.
#
# A weight is its code times its step. Exported again, the weights give the same codes and steps. It
# needs the package onnx.

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
    """Return the floats nearest to some whose function values are the wanted ones; the floats themselves where none
    is."""
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
