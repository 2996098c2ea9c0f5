"""One step of the decoder as an ONNX graph: any number of sequences, any number of new tokens each.

All sequences look at one memory. What sets them apart (which passages one may see, which tokens are its answer)
is added to scores and sums: W(state + mark) = W state + W mark, so no sequence needs keys of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.models.compact.encoder_onnx import WEIGHT_TOP, Weights
from whichsense.models.onnx_graph import Graph, Shape

TOP = 127
EPSILON = 1e-5  # torch's default, which the decoder is trained with


class DecoderGraph(Graph):
    """Weights are stored as int8 and become float32 when the graph is loaded."""

    def __init__(self, weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> None:
        super().__init__(weights, "It is no checkpoint of the compact model.")
        self.shape, self.int8 = shape, int8
        self.heads, self.width = shape["heads"], shape["width"]
        self.each = self.width // self.heads

    def matrix(self, *layers: str) -> str:
        joined, name = self.joined(*layers), "+".join(layers)
        if not self.int8:
            return self.const(name, joined)
        steps = np.maximum(np.abs(joined).max(axis=0), 1e-8) / TOP
        codes = self.const(name, np.round(joined / steps).astype(np.int8))
        wide = self.one("Cast", codes, to=self.onnx.TensorProto.FLOAT)
        return self.one("Mul", wide, self.const(f"{name}.steps", steps.astype(np.float32)))

    def linear(self, value: str, *layers: str) -> str:
        return self.one("Add", self.one("MatMul", value, self.matrix(*layers)), self.bias(*layers))

    def norm(self, value: str, name: str) -> str:
        return self.one("LayerNormalization", value, *self.scale_and_shift(name), axis=-1, epsilon=EPSILON)

    def mark(self, layer: str) -> NDArray[np.float32]:
        """The mark as a linear layer of the memory projects it, with that layer's weights as they are used."""
        weight = self.array(f"{layer}.weight")
        if self.int8:
            steps = np.maximum(np.abs(weight).max(axis=1, keepdims=True), 1e-8) / WEIGHT_TOP
            weight = np.round(weight / steps) * steps
        return np.asarray(weight @ self.array("decoder.mark"), dtype=np.float32)

    def self_attention(self, states: str, number: int) -> str:
        """Over what the sequence has so far; keys and values of the new tokens are joined to the old ones."""
        name = f"decoder.layers.{number}.self_attention"
        parts = self.linear(states, *(f"{name}.{part}" for part in ("query", "key", "value")))
        split = self.op("Split", parts, outputs=3, axis=-1, num_outputs=3)
        apart = self.numbers(0, 0, self.heads, self.each)
        query, key, value = (self.one("Transpose", self.one("Reshape", p, apart), perm=[0, 2, 1, 3]) for p in split)
        key = self.one("Concat", f"past_keys_{number}", key, axis=2)
        value = self.one("Concat", f"past_values_{number}", value, axis=2)
        self.name(key, f"new_keys_{number}")
        self.name(value, f"new_values_{number}")
        scaled = self.one("Mul", query, self.const("attention_scale", np.float32(1 / math.sqrt(self.each))))
        scores = self.one("MatMul", scaled, self.one("Transpose", key, perm=[0, 1, 3, 2]))
        weights = self.one("Softmax", self.one("Add", scores, "self_mask"), axis=-1)
        seen = self.one("Transpose", self.one("MatMul", weights, value), perm=[0, 2, 1, 3])
        return self.linear(self.one("Reshape", seen, self.numbers(0, 0, self.width)), f"{name}.output")

    def cross_attention(self, states: str, number: int) -> str:
        """Over the memory: all new tokens of all sequences at once."""
        name = f"decoder.layers.{number}.cross_attention"
        query = self.one("Reshape", self.linear(states, f"{name}.query"), self.numbers(-1, self.heads, self.each))
        query = self.one("Mul", query, self.const("attention_scale", np.float32(1 / math.sqrt(self.each))))
        query = self.one("Transpose", query, perm=[1, 0, 2])
        scores = self.against(f"keys_{number}", query, [0, 2, 1])
        key_mark = self.const(f"{name}.key_mark", self.mark(f"{name}.key").reshape(self.heads, self.each, 1))
        weights = self.one("Softmax", self.marked(scores, query, key_mark), axis=-1)
        seen = self.one("MatMul", weights, f"values_{number}")
        share = self.one("ReduceSum", self.one("Mul", weights, "marks"), self.numbers(2), keepdims=1)
        value_mark = self.const(f"{name}.value_mark", self.mark(f"{name}.value").reshape(self.heads, 1, self.each))
        seen = self.one("Add", seen, self.one("Mul", share, value_mark))
        seen = self.one("Reshape", self.one("Transpose", seen, perm=[1, 0, 2]), self.one("Shape", states))
        return self.linear(seen, f"{name}.output")

    def against(self, keys: str, query: str, swap: list[int]) -> str:
        """query · keysᵀ, worked out as (keys · queryᵀ)ᵀ: what stands on the right is copied into another order at every
        call, unless it is a constant, and the keys are many."""
        product = self.one("MatMul", keys, self.one("Transpose", query, perm=swap))
        return self.one("Transpose", product, perm=swap)

    def marked(self, scores: str, query: str, mark: str, marks: str = "marks", mask: str = "mask") -> str:
        """Scores over the memory with what the marks add, and without what a sequence may not see."""
        of_marks = self.one("Mul", self.one("MatMul", query, mark), marks)
        return self.one("Add", scores, self.one("Add", of_marks, mask))

    def layer(self, states: str, number: int) -> str:
        name = f"decoder.layers.{number}"
        seen = self.self_attention(self.norm(states, f"{name}.self_norm"), number)
        states = self.one("Add", states, seen)
        seen = self.cross_attention(self.norm(states, f"{name}.cross_norm"), number)
        states = self.one("Add", states, seen)
        wide = self.one("MatMul", self.norm(states, f"{name}.norm"), self.matrix(f"{name}.wide"))
        wide = self.one("FastGelu", wide, self.bias(f"{name}.wide"))
        return self.one("Add", states, self.linear(wide, f"{name}.narrow"))

    def copying(self, states: str) -> str:
        """Log weights over the memory (new tokens × memory)."""
        query = self.linear(states, "decoder.copy_query")
        query = self.one("Mul", query, self.const("copy_scale", np.float32(1 / math.sqrt(self.width))))
        mark = self.const("copy_mark", self.mark("decoder.copy_key").reshape(self.width, 1))
        own = [self.one("Gather", name, "take", axis=0) for name in ("marks", "mask")]
        scores = self.marked(self.against("copy_keys", query, [1, 0]), query, mark, *own)
        return self.one("LogSoftmax", scores, axis=-1)

    def written(self, states: str) -> str:
        """Log probabilities over the words that may be written (new tokens × words)."""
        logits = self.against("words", self.linear(states, "decoder.out"), [1, 0])
        return self.one("LogSoftmax", self.one("Add", logits, "words_bias"), axis=-1)


def decoder(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """New tokens' vectors, what came before, the memory → the next token's distribution for each of `take`.

    embedded: sequences × new × width; self_mask: sequences × 1 × new × (past + new); mask, marks: (sequences · new) ×
    memory, masks being 0 or very low. For each layer: past_keys, past_values: sequences × heads × past × head width;
    keys, values: heads × memory × head width.
    `take` says for which tokens (numbered over sequences · new); words: words × width.
    """
    graph = DecoderGraph(weights, shape, int8=int8)
    states = "embedded"
    for number in range(shape["decoder_layers"]):
        states = graph.layer(states, number)
    flat = graph.one("Gather", graph.one("Reshape", states, graph.numbers(-1, graph.width)), "take", axis=0)
    flat = graph.norm(flat, "decoder.norm")
    graph.name(graph.copying(flat), "copied")
    graph.name(graph.written(flat), "written")
    graph.name(graph.linear(flat, "decoder.gate"), "gate")
    return graph.model(*_sizes(graph, shape["decoder_layers"]), integers=("take",))


def _sizes(graph: DecoderGraph, layers: int) -> tuple[dict[str, Shape], dict[str, Shape]]:
    inputs: dict[str, Shape] = {
        "embedded": ["sequences", "new", graph.width],
        "self_mask": ["sequences", 1, "new", "all"],
        "copy_keys": ["memory", graph.width],
        "mask": ["tokens", "memory"],
        "marks": ["tokens", "memory"],
        "take": ["taken"],
        "words": ["words", graph.width],
        "words_bias": ["words"],
    }
    outputs: dict[str, Shape] = {
        "copied": ["taken", "memory"],
        "written": ["taken", "words"],
        "gate": ["taken", 1],
    }
    for number in range(layers):
        for kind in ("keys", "values"):
            inputs[f"{kind}_{number}"] = [graph.heads, "memory", graph.each]
            inputs[f"past_{kind}_{number}"] = ["sequences", graph.heads, "past", graph.each]
            outputs[f"new_{kind}_{number}"] = ["sequences", graph.heads, "all", graph.each]
    return inputs, outputs
