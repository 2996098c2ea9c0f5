"""Writes a BERT folder (config.json, model.safetensors) as an ONNX graph that ends in one unit vector a text.

Torch's exporter would need torch, which encoding passages does not. The graph of a BERT is short: it is built node by
node, with ONNX Runtime's fused operators.
"""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput, require
from whichsense.models.onnx_graph import EXTRA, Graph

_NEEDED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


@dataclass(frozen=True, slots=True)
class BertShape:
    """The sizes that the graph needs, from config.json."""

    hidden: int
    layers: int
    heads: int
    positions: int
    epsilon: float


def read_shape(folder: Path) -> BertShape:
    """The shape of the BERT in `folder`. Reject other architectures."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(
            f"'{path}' cannot be read: {error}. Give the folder of a BERT sentence encoder."
        ) from None
    is_complete = all(key in config for key in _NEEDED)
    is_bert = config.get("model_type", "bert") == "bert"
    has_gelu = config.get("hidden_act", "gelu") == "gelu"
    if not (is_complete and is_bert and has_gelu):
        raise BadInput(
            f"'{folder}' holds no plain BERT (gelu, absolute positions). Use a MiniLM or BERT encoder."
        )
    return BertShape(
        hidden=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        positions=config.get("max_position_embeddings", 512),
        epsilon=config.get("layer_norm_eps", 1e-12),
    )


def _read_weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    """The weights as float32, by their names in BERT."""
    path = folder / "model.safetensors"
    if not path.is_file():
        raise BadInput(
            f"'{path}' is missing. Save the model as safetensors: model.save_pretrained(folder)."
        )
    loaded = require("safetensors.numpy", EXTRA).load_file(str(path))
    weights = {}
    for name, array in loaded.items():
        if array.dtype.kind == "f":
            own_name = name.removeprefix("bert.")
            weights[own_name] = np.asarray(array, dtype=np.float32)
    return weights


class _BertGraph(Graph):
    """A graph whose matrices are float32, or int8 with inputs quantized on the fly."""

    def __init__(self, weights: dict[str, NDArray[np.float32]], *, int8: bool) -> None:
        super().__init__(weights, "It is not a plain BERT: use a MiniLM encoder.")
        self.int8 = int8

    def matrix(self, *names: str) -> list[str]:
        """The weights of linear layers side by side, in int8 mode with one scale a column."""
        joined = self.joined(*names)
        name = "+".join(names)
        if not self.int8:
            return [self.const(name, joined)]
        codes, scale = _quantize(joined, axis=0)
        return [self.const(name, codes), self.const(f"{name}.scale", scale[0])]


def _quantize(
    array: NDArray[np.float32], axis: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 codes, and their scales along `axis`."""
    # x86 without VNNI adds pairs of products in 16 bits, which overflow with full 8-bit weights; ARM does not.
    is_arm = platform.machine().lower() in ("aarch64", "arm64")
    top = 127 if is_arm else 64
    greatest = np.abs(array).max(axis=axis, keepdims=True)
    scale = np.maximum(greatest, 1e-12) / top
    codes = np.round(array / scale).astype(np.int8)
    return codes, np.asarray(scale, dtype=np.float32)


def _build(
    shape: BertShape, weights: dict[str, NDArray[np.float32]], *, int8: bool
) -> bytes:
    """The ONNX model: token ids and mask (batch × length, int64) → unit vectors (batch × hidden, float32)."""
    graph = _BertGraph(weights, int8=int8)
    mask = graph.one("Cast", "mask", to=graph.onnx.TensorProto.INT32)
    hidden = _embeddings(graph, shape)
    for layer in range(shape.layers):
        hidden = _layer(graph, shape, f"encoder.layer.{layer}", hidden, mask)
    graph.name(_pool(graph, hidden), "vectors")
    texts = ["batch", "length"]
    return graph.model(
        {"ids": texts, "mask": texts},
        {"vectors": ["batch", shape.hidden]},
        integers=("ids", "mask"),
    )


def _embeddings(graph: _BertGraph, shape: BertShape) -> str:
    words = _word_vectors(graph)
    # Every text is of type 0, so that type's vector is folded into the positions.
    places = graph.array("embeddings.position_embeddings.weight")[: shape.positions]
    places = places + graph.array("embeddings.token_type_embeddings.weight")[0]
    length = graph.one("Gather", graph.one("Shape", "ids"), graph.numbers(1))
    table = graph.const("places", places)
    used = graph.one("Slice", table, graph.numbers(0), length)
    placed = graph.one("Add", words, used)
    norm = graph.scale_and_shift("embeddings.LayerNorm")
    return graph.one(
        "LayerNormalization", placed, *norm, axis=-1, epsilon=shape.epsilon
    )


def _word_vectors(graph: _BertGraph) -> str:
    table = "embeddings.word_embeddings.weight"
    if not graph.int8:
        return graph.one("Gather", graph.weight(table), "ids")
    codes, scale = _quantize(graph.array(table), axis=1)
    rows = graph.one("Gather", graph.const(table, codes), "ids")
    rows = graph.one("Cast", rows, to=graph.onnx.TensorProto.FLOAT)
    scales = graph.one("Gather", graph.const(f"{table}.scale", scale), "ids")
    return graph.one("Mul", rows, scales)


def _layer(
    graph: _BertGraph, shape: BertShape, name: str, hidden: str, mask: str
) -> str:
    context = _attention(graph, shape, f"{name}.attention.self", hidden, mask)
    hidden = _add_and_norm(graph, shape, f"{name}.attention.output", context, hidden)
    wide = _product(graph, f"{name}.intermediate.dense", hidden)
    wide = graph.one("BiasGelu", wide, graph.bias(f"{name}.intermediate.dense"))
    return _add_and_norm(graph, shape, f"{name}.output", wide, hidden)


def _attention(
    graph: _BertGraph, shape: BertShape, name: str, hidden: str, mask: str
) -> str:
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    matrix = graph.matrix(*parts)
    bias = graph.bias(*parts)
    if not graph.int8:
        return graph.one(
            "Attention", hidden, *matrix, bias, mask, num_heads=shape.heads
        )
    codes, scale, zero = graph.op("DynamicQuantizeLinear", hidden, outputs=3)
    inputs = [codes, matrix[0], bias, scale, matrix[1], mask, zero]
    return graph.one("QAttention", *inputs, num_heads=shape.heads)


def _product(graph: _BertGraph, name: str, value: str) -> str:
    kind = "DynamicQuantizeMatMul" if graph.int8 else "MatMul"
    return graph.one(kind, value, *graph.matrix(name))


def _add_and_norm(
    graph: _BertGraph, shape: BertShape, name: str, value: str, hidden: str
) -> str:
    norm = graph.scale_and_shift(f"{name}.LayerNorm")
    product = _product(graph, f"{name}.dense", value)
    inputs = [product, hidden, *norm, graph.bias(f"{name}.dense")]
    return graph.one("SkipLayerNormalization", *inputs, epsilon=shape.epsilon)


def _pool(graph: _BertGraph, hidden: str) -> str:
    """The normalized mean over a text's tokens. The sum serves as well: its norm is divided out."""
    mask = graph.one("Cast", "mask", to=graph.onnx.TensorProto.FLOAT)
    column = graph.one("Unsqueeze", mask, graph.numbers(2))
    masked = graph.one("Mul", hidden, column)
    total = graph.one("ReduceSum", masked, graph.numbers(1), keepdims=0)
    return graph.one("LpNormalization", total, axis=-1, p=2)


def serialize(folder: Path, *, int8: bool = True) -> bytes:
    """The BERT in `folder` as the bytes of an ONNX file, with matrices and word vectors in int8 by default."""
    return _build(read_shape(folder), _read_weights(folder), int8=int8)
