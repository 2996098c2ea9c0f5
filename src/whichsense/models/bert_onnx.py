"""A BERT folder (config.json, model.safetensors) written out as an ONNX graph that ends in one unit vector a text.

The usual way to an ONNX file runs the model in torch once. Encoding passages needs no torch, so nothing here may ask
for it: the graph of a BERT is short, and it is written down node by node, in ONNX Runtime's fused operators.
"""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput, require

EXTRA = "dense"
_FUSED = "com.microsoft"
_FUSED_KINDS = ("Attention", "BiasGelu", "DynamicQuantizeMatMul", "QAttention", "SkipLayerNormalization")
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
        raise BadInput(f"'{path}' cannot be read: {error}. Give the folder of a BERT sentence encoder.") from None
    missing = [key for key in _NEEDED if key not in config]
    if missing or config.get("model_type", "bert") != "bert" or config.get("hidden_act", "gelu") != "gelu":
        raise BadInput(f"'{folder}' holds no plain BERT (gelu, absolute positions). Use a MiniLM or BERT encoder.")
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
        raise BadInput(f"'{path}' is missing. Save the model as safetensors: model.save_pretrained(folder).")
    loaded = require("safetensors.numpy", EXTRA).load_file(str(path))
    return {
        name.removeprefix("bert."): np.asarray(array, dtype=np.float32)
        for name, array in loaded.items()
        if array.dtype.kind == "f"
    }


class _Graph:
    """Nodes and constants in the order they are made, so that the model below reads like the model."""

    def __init__(self, weights: dict[str, NDArray[np.float32]], *, int8: bool) -> None:
        self.onnx = require("onnx", EXTRA)
        self.weights = weights
        self.int8 = int8
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def const(self, name: str, array: NDArray[Any]) -> str:
        if name not in self.constants:
            self.constants[name] = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def array(self, name: str) -> NDArray[np.float32]:
        try:
            return self.weights[name]
        except KeyError:
            raise BadInput(f"The model has no weight '{name}': it is no plain BERT. Use a MiniLM encoder.") from None

    def weight(self, name: str) -> str:
        return self.const(name, self.array(name))

    def matrix(self, *names: str) -> list[str]:
        """Linear layers' weights side by side, as MatMul wants them; as int8 with one scale a column if asked."""
        joined = np.concatenate([self.array(f"{name}.weight") for name in names]).T
        name = "+".join(names)
        if not self.int8:
            return [self.const(name, joined)]
        codes, scale = quantized(joined, axis=0)
        return [self.const(name, codes), self.const(f"{name}.scale", scale[0])]

    def bias(self, *names: str) -> str:
        return self.const("+".join(names) + ".bias", np.concatenate([self.array(f"{name}.bias") for name in names]))

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        """A node; its domain follows from its kind."""
        names = [f"{kind}_{len(self.nodes)}_{place}" for place in range(outputs)]
        domain = _FUSED if kind in _FUSED_KINDS else ""
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, names, name=names[0], domain=domain, **attributes))
        return names

    def one(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self.op(kind, *inputs, **attributes)[0]


def quantized(array: NDArray[np.float32], axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 codes and the scales along `axis` that bring them back."""
    # x86 without VNNI adds pairs of products in 16 bits, which overflow with full 8-bit weights; ARM does not.
    top = 127 if platform.machine().lower() in ("aarch64", "arm64") else 64
    scale = np.maximum(np.abs(array).max(axis=axis, keepdims=True), 1e-12) / top
    return np.round(array / scale).astype(np.int8), np.asarray(scale, dtype=np.float32)


def build(shape: BertShape, weights: dict[str, NDArray[np.float32]], *, int8: bool) -> Any:
    """The ONNX model: token ids and mask (batch × length, int64) to unit vectors (batch × hidden, float32)."""
    graph = _Graph(weights, int8=int8)
    helper, kinds = graph.onnx.helper, graph.onnx.TensorProto
    mask = graph.one("Cast", "mask", to=kinds.INT32)
    hidden = _embeddings(graph, shape)
    for layer in range(shape.layers):
        hidden = _layer(graph, shape, f"encoder.layer.{layer}", hidden, mask)
    graph.nodes.append(helper.make_node("Identity", [_pooled(graph, hidden)], ["vectors"]))
    texts = [helper.make_tensor_value_info(name, kinds.INT64, ["batch", "length"]) for name in ("ids", "mask")]
    vectors = helper.make_tensor_value_info("vectors", kinds.FLOAT, ["batch", shape.hidden])
    body = helper.make_graph(graph.nodes, "bert", texts, [vectors], list(graph.constants.values()))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_FUSED, 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=8)


def _embeddings(graph: _Graph, shape: BertShape) -> str:
    table = "embeddings.word_embeddings.weight"
    if graph.int8:
        codes, scale = quantized(graph.array(table), axis=1)
        rows = graph.one("Cast", graph.one("Gather", graph.const(table, codes), "ids"), to=graph.onnx.TensorProto.FLOAT)
        words = graph.one("Mul", rows, graph.one("Gather", graph.const(f"{table}.scale", scale), "ids"))
    else:
        words = graph.one("Gather", graph.weight(table), "ids")
    # Every text is of type 0, so that type's vector is folded into the positions.
    places = graph.array("embeddings.position_embeddings.weight")[: shape.positions]
    places = places + graph.array("embeddings.token_type_embeddings.weight")[0]
    zero, one = (graph.const(f"int{value}", np.array([value], dtype=np.int64)) for value in (0, 1))
    length = graph.one("Gather", graph.one("Shape", "ids"), one)
    placed = graph.one("Add", words, graph.one("Slice", graph.const("places", places), zero, length))
    scale_and_shift = [graph.weight(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias")]
    return graph.one("LayerNormalization", placed, *scale_and_shift, axis=-1, epsilon=shape.epsilon)


def _layer(graph: _Graph, shape: BertShape, name: str, hidden: str, mask: str) -> str:
    seen = _attention(graph, shape, f"{name}.attention.self", hidden, mask)
    hidden = _add_and_norm(graph, shape, f"{name}.attention.output", seen, hidden)
    wide = _product(graph, f"{name}.intermediate.dense", hidden)
    wide = graph.one("BiasGelu", wide, graph.bias(f"{name}.intermediate.dense"))
    return _add_and_norm(graph, shape, f"{name}.output", wide, hidden)


def _attention(graph: _Graph, shape: BertShape, name: str, hidden: str, mask: str) -> str:
    parts = [f"{name}.{part}" for part in ("query", "key", "value")]
    matrix, bias = graph.matrix(*parts), graph.bias(*parts)
    if not graph.int8:
        return graph.one("Attention", hidden, *matrix, bias, mask, num_heads=shape.heads)
    codes, scale, zero = graph.op("DynamicQuantizeLinear", hidden, outputs=3)
    inputs = [codes, matrix[0], bias, scale, matrix[1], mask, zero]
    return graph.one("QAttention", *inputs, num_heads=shape.heads)


def _product(graph: _Graph, name: str, value: str) -> str:
    return graph.one("DynamicQuantizeMatMul" if graph.int8 else "MatMul", value, *graph.matrix(name))


def _add_and_norm(graph: _Graph, shape: BertShape, name: str, value: str, hidden: str) -> str:
    scale_and_shift = [graph.weight(f"{name}.LayerNorm.{part}") for part in ("weight", "bias")]
    inputs = [_product(graph, f"{name}.dense", value), hidden, *scale_and_shift, graph.bias(f"{name}.dense")]
    return graph.one("SkipLayerNormalization", *inputs, epsilon=shape.epsilon)


def _pooled(graph: _Graph, hidden: str) -> str:
    """The mean over a text's tokens, at length 1. The sum will do: the length is divided out."""
    mask = graph.one("Cast", "mask", to=graph.onnx.TensorProto.FLOAT)
    last, middle = (graph.const(f"axis{axis}", np.array([axis], dtype=np.int64)) for axis in (2, 1))
    kept = graph.one("Mul", hidden, graph.one("Unsqueeze", mask, last))
    return graph.one("LpNormalization", graph.one("ReduceSum", kept, middle, keepdims=0), axis=-1, p=2)


def serialized(folder: Path, *, int8: bool = True) -> bytes:
    """The BERT in `folder` as the bytes of an ONNX file; matrices and word vectors are int8 unless told otherwise."""
    model = build(read_shape(folder), read_weights(folder), int8=int8)
    return bytes(model.SerializeToString())
