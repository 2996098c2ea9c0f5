"""A BERT folder (config.json, model.safetensors) written out as an ONNX graph that ends in one unit vector a text.

The usual way to an ONNX file runs the model in torch once. Encoding passages needs no torch, so nothing here may ask
for it: the graph of a BERT is short, and it is written down node by node, in ONNX Runtime's fused operators.
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
    """What the graph needs to know of a config.json."""

    hidden: int
    layers: int
    heads: int
    positions: int
    epsilon: float


def read_shape(folder: Path) -> BertShape:
    """The shape of the BERT in `folder`, or a `BadInput` that says why it is none."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(
            f"'{path}' cannot be read: {error}. Give the folder of a BERT sentence encoder."
        ) from None
    missing = [key for key in _NEEDED if key not in config]
    if (
        missing
        or config.get("model_type", "bert") != "bert"
        or config.get("hidden_act", "gelu") != "gelu"
    ):
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


def read_weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    """The weights by their plain BERT names, as float32."""
    path = folder / "model.safetensors"
    if not path.is_file():
        raise BadInput(
            f"'{path}' is missing. Save the model as safetensors: model.save_pretrained(folder)."
        )
    loaded = require("safetensors.numpy", EXTRA).load_file(str(path))
    return {
        name.removeprefix("bert."): np.asarray(array, dtype=np.float32)
        for name, array in loaded.items()
        if array.dtype.kind == "f"
    }


class _Graph(Graph):
    """With matrices as float32, or as int8 that meets inputs quantized as they come."""

    def __init__(self, weights: dict[str, NDArray[np.float32]], *, int8: bool) -> None:
        super().__init__(weights, "It is no plain BERT: use a MiniLM encoder.")
        self.int8 = int8

    def matrix(self, *names: str) -> list[str]:
        """Linear layers' weights side by side; as int8 with one scale a column if asked."""
        joined, name = self.joined(*names), "+".join(names)
        if not self.int8:
            return [self.const(name, joined)]
        codes, scale = quantized(joined, axis=0)
        return [self.const(name, codes), self.const(f"{name}.scale", scale[0])]


def quantized(
    array: NDArray[np.float32], axis: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 codes and the scales along `axis` that bring them back."""
    # x86 without VNNI adds pairs of products in 16 bits, which overflow with full 8-bit weights; ARM does not.
    top = 127 if platform.machine().lower() in ("aarch64", "arm64") else 64
    scale = np.maximum(np.abs(array).max(axis=axis, keepdims=True), 1e-12) / top
    return np.round(array / scale).astype(np.int8), np.asarray(scale, dtype=np.float32)


def build(
    shape: BertShape, weights: dict[str, NDArray[np.float32]], *, int8: bool
) -> bytes:
    """The ONNX model: token ids and mask (batch × length, int64) to unit vectors (batch × hidden, float32)."""
    graph = _Graph(weights, int8=int8)
    mask = graph.one("Cast", "mask", to=graph.onnx.TensorProto.INT32)
    hidden = _embeddings(graph, shape)
    for layer in range(shape.layers):
        hidden = _layer(graph, shape, f"encoder.layer.{layer}", hidden, mask)
    graph.name(_pooled(graph, hidden), "vectors")
    texts = ["batch", "length"]
    return graph.model(
        {"ids": texts, "mask": texts},
        {"vectors": ["batch", shape.hidden]},
        integers=("ids", "mask"),
    )


def _embeddings(graph: _Graph, shape: BertShape) -> str:
    table = "embeddings.word_embeddings.weight"
    if graph.int8:
        codes, scale = quantized(graph.array(table), axis=1)
        rows = graph.one(
            "Cast",
            graph.one("Gather", graph.const(table, codes), "ids"),
            to=graph.onnx.TensorProto.FLOAT,
        )
        words = graph.one(
            "Mul",
            rows,
            graph.one("Gather", graph.const(f"{table}.scale", scale), "ids"),
        )
    else:
        words = graph.one("Gather", graph.weight(table), "ids")
    # Every text is of type 0, so that type's vector is folded into the positions.
    places = graph.array("embeddings.position_embeddings.weight")[: shape.positions]
    places = places + graph.array("embeddings.token_type_embeddings.weight")[0]
    length = graph.one("Gather", graph.one("Shape", "ids"), graph.numbers(1))
    placed = graph.one(
        "Add",
        words,
        graph.one("Slice", graph.const("places", places), graph.numbers(0), length),
    )
    norm = graph.scale_and_shift("embeddings.LayerNorm")
    return graph.one(
        "LayerNormalization", placed, *norm, axis=-1, epsilon=shape.epsilon
    )


def _layer(graph: _Graph, shape: BertShape, name: str, hidden: str, mask: str) -> str:
    seen = _attention(graph, shape, f"{name}.attention.self", hidden, mask)
    hidden = _add_and_norm(graph, shape, f"{name}.attention.output", seen, hidden)
    wide = _product(graph, f"{name}.intermediate.dense", hidden)
    wide = graph.one("BiasGelu", wide, graph.bias(f"{name}.intermediate.dense"))
    return _add_and_norm(graph, shape, f"{name}.output", wide, hidden)


def _attention(
    graph: _Graph, shape: BertShape, name: str, hidden: str, mask: str
) -> str:
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    matrix, bias = graph.matrix(*parts), graph.bias(*parts)
    if not graph.int8:
        return graph.one(
            "Attention", hidden, *matrix, bias, mask, num_heads=shape.heads
        )
    codes, scale, zero = graph.op("DynamicQuantizeLinear", hidden, outputs=3)
    inputs = [codes, matrix[0], bias, scale, matrix[1], mask, zero]
    return graph.one("QAttention", *inputs, num_heads=shape.heads)


def _product(graph: _Graph, name: str, value: str) -> str:
    return graph.one(
        "DynamicQuantizeMatMul" if graph.int8 else "MatMul", value, *graph.matrix(name)
    )


def _add_and_norm(
    graph: _Graph, shape: BertShape, name: str, value: str, hidden: str
) -> str:
    norm = graph.scale_and_shift(f"{name}.LayerNorm")
    inputs = [
        _product(graph, f"{name}.dense", value),
        hidden,
        *norm,
        graph.bias(f"{name}.dense"),
    ]
    return graph.one("SkipLayerNormalization", *inputs, epsilon=shape.epsilon)


def _pooled(graph: _Graph, hidden: str) -> str:
    """The mean over a text's tokens, at length 1. The sum will do: the length is divided out."""
    mask = graph.one("Cast", "mask", to=graph.onnx.TensorProto.FLOAT)
    kept = graph.one("Mul", hidden, graph.one("Unsqueeze", mask, graph.numbers(2)))
    return graph.one(
        "LpNormalization",
        graph.one("ReduceSum", kept, graph.numbers(1), keepdims=0),
        axis=-1,
        p=2,
    )


def serialized(folder: Path, *, int8: bool = True) -> bytes:
    """The BERT in `folder` as the bytes of an ONNX file; matrices and word vectors are int8 unless told otherwise."""
    return build(read_shape(folder), read_weights(folder), int8=int8)
