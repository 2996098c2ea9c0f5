"""The support judge's network as an ONNX graph. The verifier's matrices are not stored again: the graph refers to them
by their places in early.onnx and verifier.onnx, which lie in the same folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from whichsense.models.compact.encoder.graph import EncoderGraph, Weights

_LEAST_SHARED = 4096  # bytes: smaller constants are stored


class _SupportGraph(EncoderGraph):
    """The encoder's graph, with the additions of the adapters. These are stored in half precision."""

    def half(self, name: str) -> str:
        """A matrix as MatMul takes it (inputs × outputs)."""
        matrix = self.array(name).T.astype(np.float16)
        stored = self.const(name, matrix)
        return self.one("Cast", stored, to=self.onnx.TensorProto.FLOAT)

    def low_rank(self, value: str, name: str) -> str:
        inner = self.one("MatMul", value, self.half(f"{name}.down"))
        return self.one("MatMul", inner, self.half(f"{name}.up"))

    def bottleneck(self, value: str, name: str) -> str:
        inner = self.one("MatMul", value, self.half(f"{name}.down"))
        inner = self.one("FastGelu", inner, self.weight(f"{name}.bias"))
        return self.one("MatMul", inner, self.half(f"{name}.up"))

    def adapted_layer(self, states: str, number: int) -> str:
        """The encoder's layer with the additions of its adapters."""
        name = f"encoder.layers.{number}"
        attention = f"{name}.attention"
        parts = self.linear(
            states, f"{attention}.query", f"{attention}.key", f"{attention}.value"
        )
        query, key, value = self.op("Split", parts, outputs=3, axis=-1, num_outputs=3)
        query = self.one("Add", query, self.low_rank(states, f"query.{number}"))
        value = self.one("Add", value, self.low_rank(states, f"value.{number}"))
        context = self.one(
            "MultiHeadAttention", query, key, value, num_heads=self.shape["heads"]
        )
        output = self.linear(context, f"{attention}.output")
        states = self.norm(self.one("Add", output, states), f"{attention}_norm")
        # The bias is added within FastGelu.
        wide = self.linear(states, f"{name}.wide", bias=False)
        wide = self.one("FastGelu", wide, self.bias(f"{name}.wide"))
        narrow = self.linear(wide, f"{name}.narrow", after_gelu=True)
        inner = self.one("Add", narrow, self.bottleneck(states, f"beside.{number}"))
        return self.norm(self.one("Add", inner, states), f"{name}.norm")

    def half_gemm(self, value: str, layer: str) -> str:
        product = self.one("MatMul", value, self.half(f"{layer}.weight"))
        return self.one("Add", product, self.weight(f"{layer}.bias"))


def support(
    weights: Weights, shape: Mapping[str, Any], *, int8: bool, beside: Path | None
) -> bytes:
    """Embedded pairs (batch × length × width, before their LayerNorm) → logits of support (batch).

    `beside` is the folder of early.onnx and verifier.onnx: constants that these hold are referred to. None: all are
    stored.
    """
    graph = _SupportGraph(weights, shape, int8=int8)
    states = graph.norm("embedded", "encoder.norm")
    for number in range(shape["layers"]):
        states = graph.adapted_layer(states, number)
    hidden = graph.one("Tanh", graph.half_gemm(graph.first(states), "support.dense"))
    logit = graph.half_gemm(hidden, "support.out")
    graph.name(graph.one("Squeeze", logit, graph.numbers(1)), "support")
    if beside is not None:
        for name in ("early.onnx", "verifier.onnx"):
            _refer(graph, beside / name)
    size = ["batch", "length", shape["width"]]
    return graph.model({"embedded": size}, {"support": ["batch"]})


def _refer(graph: EncoderGraph, file: Path) -> None:
    """Replace the contents of constants that lie in a file, byte by byte, by their places there."""
    if not file.exists():
        return
    content = file.read_bytes()
    for tensor in graph.constants.values():
        raw = tensor.raw_data
        if len(raw) < _LEAST_SHARED:
            continue
        place = content.find(raw)
        if place < 0:
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = graph.onnx.TensorProto.EXTERNAL
        for key, value in (
            ("location", file.name),
            ("offset", place),
            ("length", len(raw)),
        ):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
