"""The encoder's two halves as ONNX graphs, and its verdict head, which is small and stays in float.

A graph reads one pair without padding, so it has no mask, and its output never depends on other pairs. Linear layers
are int8 with fixed steps, learned in training; in float mode (for tests) they compute what torch does without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.models.onnx_graph import Graph

# x86 without VNNI adds two products in 16 bits: with weights up to 63 that cannot overflow, on any machine.
WEIGHT_TOP = 63
# GELU never goes below -0.17, so its output is coded from there upwards.
GELU_FLOOR = 0.17
_MISSING = "It is not a checkpoint of the compact model."

Weights = Mapping[str, NDArray[np.float32]]


class EncoderGraph(Graph):
    """A graph with the encoder's layers. A method adds nodes and returns the name of their output."""

    def __init__(
        self, weights: Weights, shape: Mapping[str, Any], *, int8: bool
    ) -> None:
        super().__init__(weights, _MISSING)
        self.shape = shape
        self.int8 = int8

    def codes(self, value: str, layer: str, *, after_gelu: bool = False) -> list[str]:
        """Quantize a value to uint8 with the step that its linear layer learned: codes, step and zero point."""
        step = step_of(self.array(f"{layer}.scale"))
        zero = round(float(GELU_FLOOR / step)) if after_gelu else 128
        step_name = self.const(f"{layer}.step", step)
        zero_name = self.const(f"{layer}.zero", np.array(zero, dtype=np.uint8))
        codes = self.one("QuantizeLinear", value, step_name, zero_name)
        return [codes, step_name, zero_name]

    def linear(
        self, value: str, *layers: str, after_gelu: bool = False, bias: bool = True
    ) -> str:
        """One or more linear layers of the same input, side by side."""
        matrix = self.joined(*layers)
        name = "+".join(layers)
        if not self.int8:
            product = self.one("MatMul", value, self.const(name, matrix))
            return self.one("Add", product, self.bias(*layers)) if bias else product
        # One step for each output: matrix is inputs × outputs.
        steps = np.maximum(np.abs(matrix).max(axis=0), 1e-8) / WEIGHT_TOP
        codes = np.round(matrix / steps).astype(np.int8)
        coded, step, zero = self.codes(value, layers[0], after_gelu=after_gelu)
        inputs = [
            coded,
            self.const(name, codes),
            step,
            self.const(f"{name}.steps", steps.astype(np.float32)),
            zero,
            "",  # the weights' zero point is 0
        ]
        if bias:
            inputs.append(self.bias(*layers))
        return self.one("MatMulIntegerToFloat", *inputs)

    def layer(self, states: str, name: str) -> str:
        """BERT's layer: attention and feed-forward, each added to the states and normalized."""
        attention = f"{name}.attention"
        parts = self.linear(
            states, f"{attention}.query", f"{attention}.key", f"{attention}.value"
        )
        query, key, value = self.op("Split", parts, outputs=3, axis=-1, num_outputs=3)
        context = self.one(
            "MultiHeadAttention", query, key, value, num_heads=self.shape["heads"]
        )
        output = self.linear(context, f"{attention}.output")
        states = self.norm(self.one("Add", output, states), f"{attention}_norm")
        # The bias is added within FastGelu.
        wide = self.linear(states, f"{name}.wide", bias=False)
        wide = self.one("FastGelu", wide, self.bias(f"{name}.wide"))
        narrow = self.linear(wide, f"{name}.narrow", after_gelu=True)
        return self.norm(self.one("Add", narrow, states), f"{name}.norm")

    def norm(self, value: str, name: str) -> str:
        """LayerNorm step by step: on ARM half the time of ONNX Runtime's own, which is not vectorized there."""
        axis = self.numbers(-1)
        scale, shift = self.scale_and_shift(name)
        mean = self.one("ReduceMean", value, axis, keepdims=1)
        centred = self.one("Sub", value, mean)
        squares = self.one("ReduceSumSquare", centred, axis, keepdims=1)
        by_width = self.const("one_by_width", np.float32(1 / self.shape["width"]))
        variance = self.one("Mul", squares, by_width)
        epsilon = self.const("epsilon", np.float32(self.shape["epsilon"]))
        deviation = self.one("Sqrt", self.one("Add", variance, epsilon))
        unit = self.one("Mul", centred, self.one("Reciprocal", deviation))
        return self.one("Add", self.one("Mul", unit, scale), shift)

    def score(self, states: str, head: str) -> str:
        """A head over the [CLS] state: one number a pair (batch)."""
        hidden = self.one("Tanh", self.gemm(self.first(states), f"{head}.dense"))
        return self.one("Squeeze", self.gemm(hidden, f"{head}.out"), self.numbers(1))

    def first(self, states: str) -> str:
        """The [CLS] state (batch × width)."""
        zero = self.const("zero", np.array(0, dtype=np.int64))
        return self.one("Gather", states, zero, axis=1)

    def gemm(self, value: str, layer: str) -> str:
        weight = self.weight(f"{layer}.weight")
        bias = self.weight(f"{layer}.bias")
        return self.one("Gemm", value, weight, bias, transB=1)


def verdict(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """States of [CLS], of a span's first and of its last token, side by side (spans × 3 · width) → logits of being an
    answer (spans)."""
    graph = EncoderGraph(weights, shape, int8=int8)
    hidden = graph.one("Gelu", graph.gemm("edges", "verdict.dense"), approximate="tanh")
    logit = graph.gemm(hidden, "verdict.out")
    graph.name(graph.one("Squeeze", logit, graph.numbers(1)), "verdict")
    return graph.model({"edges": ["spans", 3 * shape["width"]]}, {"verdict": ["spans"]})


def step_of(scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """exp of a learned scale, in float64: machines differ in the last bit of exp in float32."""
    step = np.exp(np.asarray(scale, np.float64))
    return np.asarray(step, np.float32)


def early(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """Embedded pairs (batch × length × width, before their LayerNorm) → states and relevance after the first layers."""
    graph = EncoderGraph(weights, shape, int8=int8)
    states = graph.norm("embedded", "encoder.norm")
    for number in range(shape["early"]):
        states = graph.layer(states, f"encoder.layers.{number}")
    graph.name(states, "states")
    graph.name(graph.score(states, "exit_relevance"), "relevance")
    size = ["batch", "length", shape["width"]]
    return graph.model({"embedded": size}, {"states": size, "relevance": ["batch"]})


def late(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """The early states → final states, relevance, span scores (batch × length × 2), ambiguity."""
    graph = EncoderGraph(weights, shape, int8=int8)
    states = "early"
    for number in range(shape["early"], shape["layers"]):
        states = graph.layer(states, f"encoder.layers.{number}")
    graph.name(states, "states")
    graph.name(graph.score(states, "relevance"), "relevance")
    span = graph.one("MatMul", states, graph.const("span.weight", graph.joined("span")))
    graph.name(graph.one("Add", span, graph.bias("span")), "span")
    ambiguity = graph.gemm(graph.first(states), "ambiguity")
    graph.name(graph.one("Squeeze", ambiguity, graph.numbers(1)), "ambiguity")
    size = ["batch", "length", shape["width"]]
    outputs = {
        "states": size,
        "relevance": ["batch"],
        "span": ["batch", "length", 2],
        "ambiguity": ["batch"],
    }
    return graph.model({"early": size}, outputs)
