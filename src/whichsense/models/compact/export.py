"""Writes a trained checkpoint as the folder that the runtime reads: ONNX graphs, word vectors, settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput
from whichsense.files import write_atomically
from whichsense.models.compact.encoder import graph as encoder_onnx
from whichsense.models.compact.encoder.graph import Weights
from whichsense.models.compact.encoder.runtime import FORMAT
from whichsense.models.compact.writer import graph


class GraphFile(NamedTuple):
    """A graph of the folder: how it is built, and the prefix of its weights' names, which the graph does not have."""

    build: Callable[..., bytes]
    prefix: str = ""


VERIFIER = "verifier."
GRAPHS = {
    "early.onnx": GraphFile(encoder_onnx.early),
    "late.onnx": GraphFile(encoder_onnx.late),
    "verdict.onnx": GraphFile(encoder_onnx.verdict),
    "writer.onnx": GraphFile(graph.writer),
}
# A folder without them asks again with the encoder's own late half.
MORE_GRAPHS = {
    "verifier.onnx": GraphFile(encoder_onnx.late, VERIFIER),
    "verifier-verdict.onnx": GraphFile(encoder_onnx.verdict, VERIFIER),
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
    """The weights whose names begin so, under the rest of their names."""
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
