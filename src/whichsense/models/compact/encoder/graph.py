"""The encoder's two halves as ONNX graphs, and its verdict on spans, which is small and stays in float.

A graph reads one pair without padding, so it has no mask, and what it gives never depends on other pairs. Linear layers
are int8 with fixed steps, learned in training; in float mode (for tests) they are what torch computes without them.
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
_MISSING = "It is no checkpoint of the compact model."

Weights = Mapping[str, NDArray[np.float32]]


class EncoderGraph(Graph):
    """With linear layers as the compact model has them."""

    def __init__(
        self, weights: Weights, shape: Mapping[str, Any], *, int8: bool
    ) -> None:
        super().__init__(weights, _MISSING)
        self.shape, self.int8 = shape, int8

    def codes(self, value: str, layer: str, *, after_gelu: bool = False) -> list[str]:
        """A value as uint8 codes with the step that its linear layer learned: the codes, the step, the zero point."""
        step = step_of(self.array(f"{layer}.scale"))
        zero = round(float(GELU_FLOOR / step)) if after_gelu else 128
        quantized = [
            self.const(f"{layer}.step", step),
            self.const(f"{layer}.zero", np.array(zero, dtype=np.uint8)),
        ]
        return [self.one("QuantizeLinear", value, *quantized), *quantized]

    def linear(
        self, value: str, *layers: str, after_gelu: bool = False, bias: bool = True
    ) -> str:
        """One or more linear layers of the same input, side by side."""
        matrix, name = self.joined(*layers), "+".join(layers)
        if not self.int8:
            found = self.one("MatMul", value, self.const(name, matrix))
            return self.one("Add", found, self.bias(*layers)) if bias else found
        steps = np.maximum(np.abs(matrix).max(axis=0), 1e-8) / WEIGHT_TOP
        codes = np.round(matrix / steps).astype(np.int8)
        coded, step, zero = self.codes(value, layers[0], after_gelu=after_gelu)
        inputs = [
            coded,
            self.const(name, codes),
            step,
            self.const(f"{name}.steps", steps.astype(np.float32)),
            zero,
        ]
        return self.one(
            "MatMulIntegerToFloat", *inputs, "", *([self.bias(*layers)] if bias else [])
        )

    def layer(self, states: str, name: str) -> str:
        """BERT's layer."""
        parts = self.linear(
            states, *(f"{name}.attention.{part}" for part in ("query", "key", "value"))
        )
        query, key, value = self.op("Split", parts, outputs=3, axis=-1, num_outputs=3)
        seen = self.one(
            "MultiHeadAttention", query, key, value, num_heads=self.shape["heads"]
        )
        states = self.added(
            f"{name}.attention.output", f"{name}.attention_norm", seen, states
        )
        wide = self.linear(states, f"{name}.wide", bias=False)
        wide = self.one("FastGelu", wide, self.bias(f"{name}.wide"))
        return self.added(
            f"{name}.narrow", f"{name}.norm", wide, states, after_gelu=True
        )

    def added(
        self,
        layer: str,
        norm: str,
        value: str,
        states: str,
        *,
        after_gelu: bool = False,
    ) -> str:
        """A linear layer's output added to the states, and their LayerNorm."""
        return self.norm(
            self.one("Add", self.linear(value, layer, after_gelu=after_gelu), states),
            norm,
        )

    def norm(self, value: str, name: str) -> str:
        """LayerNorm step by step: on ARM half the time of ONNX Runtime's own, which is not vectorized there."""
        axis, weights = self.numbers(-1), self.scale_and_shift(name)
        centred = self.one(
            "Sub", value, self.one("ReduceMean", value, axis, keepdims=1)
        )
        squares = self.one("ReduceSumSquare", centred, axis, keepdims=1)
        mean = self.one(
            "Mul",
            squares,
            self.const("one_by_width", np.float32(1 / self.shape["width"])),
        )
        spread = self.one(
            "Sqrt",
            self.one(
                "Add", mean, self.const("epsilon", np.float32(self.shape["epsilon"]))
            ),
        )
        scaled = self.one("Mul", centred, self.one("Reciprocal", spread))
        return self.one("Add", self.one("Mul", scaled, weights[0]), weights[1])

    def score(self, states: str, head: str) -> str:
        """A number from the [CLS] state (batch)."""
        hidden = self.one("Tanh", self.gemm(self.first(states), f"{head}.dense"))
        return self.one("Squeeze", self.gemm(hidden, f"{head}.out"), self.numbers(1))

    def first(self, states: str) -> str:
        return self.one(
            "Gather", states, self.const("zero", np.array(0, dtype=np.int64)), axis=1
        )

    def gemm(self, value: str, layer: str) -> str:
        return self.one(
            "Gemm",
            value,
            self.weight(f"{layer}.weight"),
            self.weight(f"{layer}.bias"),
            transB=1,
        )


def verdict(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """States of [CLS], a span's first and its last token, side by side (spans × 3 width) → whether it is an answer."""
    graph = EncoderGraph(weights, shape, int8=int8)
    hidden = graph.one("Gelu", graph.gemm("edges", "verdict.dense"), approximate="tanh")
    graph.name(
        graph.one("Squeeze", graph.gemm(hidden, "verdict.out"), graph.numbers(1)),
        "verdict",
    )
    return graph.model({"edges": ["spans", 3 * shape["width"]]}, {"verdict": ["spans"]})


def step_of(scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """By way of float64: machines differ in the last bit of exp in float32."""
    return np.asarray(np.exp(np.asarray(scale, np.float64)), np.float32)


def early(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """Embedded pairs (batch × length × width, before their LayerNorm) → states and the score for going on."""
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
    graph.name(
        graph.one(
            "Squeeze", graph.gemm(graph.first(states), "ambiguity"), graph.numbers(1)
        ),
        "ambiguity",
    )
    size = ["batch", "length", shape["width"]]
    outputs = {
        "states": size,
        "relevance": ["batch"],
        "span": ["batch", "length", 2],
        "ambiguity": ["batch"],
    }
    return graph.model({"early": size}, outputs)
