"""The writer as an ONNX graph: any number of sequences, any number of new tokens each.

All sequences look at one memory, the prompts that were read, each at its own part of it. A prompt is read by the same
graph, as a sequence of new tokens that all see each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from whichsense.models.compact.encoder.graph import WEIGHT_TOP, Weights
from whichsense.models.onnx_graph import Graph, Shape

LAYER = "writer.layers.{}"


class WriterGraph(Graph):
    """In int8 the step of a product's inputs is worked out from them; in float mode (for tests) nothing is rounded."""

    def __init__(
        self, weights: Weights, shape: Mapping[str, Any], *, int8: bool
    ) -> None:
        super().__init__(weights, "It is no checkpoint of the compact model.")
        self.int8, self.epsilon = int8, shape["epsilon"]
        self.heads, self.width = shape["heads"], shape["width"]
        self.each = self.width // self.heads

    def linear(self, value: str, *layers: str) -> str:
        return self.one("Add", self.product(value, *layers), self.bias(*layers))

    def product(self, value: str, *layers: str) -> str:
        joined, name = self.joined(*layers), "+".join(layers)
        if not self.int8:
            return self.one("MatMul", value, self.const(name, joined))
        steps = np.maximum(np.abs(joined).max(axis=0), 1e-8) / WEIGHT_TOP
        codes = self.const(name, np.round(joined / steps).astype(np.int8))
        return self.one(
            "DynamicQuantizeMatMul",
            value,
            codes,
            self.const(f"{name}.steps", steps.astype(np.float32)),
        )

    def norm(self, value: str, name: str) -> str:
        return self.one(
            "LayerNormalization",
            value,
            *self.scale_and_shift(name),
            axis=-1,
            epsilon=self.epsilon,
        )

    def layer(self, states: str, number: int) -> str:
        """BERT's: attention and feed-forward, each followed by its LayerNorm."""
        name = LAYER.format(number)
        states = self.norm(
            self.one("Add", states, self.attention(states, number)),
            f"{name}.attention_norm",
        )
        wide = self.product(states, f"{name}.wide")
        wide = self.one("FastGelu", wide, self.bias(f"{name}.wide"))
        return self.norm(
            self.one("Add", states, self.linear(wide, f"{name}.narrow")), f"{name}.norm"
        )

    def attention(self, states: str, number: int) -> str:
        """Over the memory and over what the sequence has so far, weighed together; keys and values of the new tokens
        are joined to the old ones."""
        name = f"{LAYER.format(number)}.attention"
        parts = self.linear(
            states, *(f"{name}.{part}" for part in ("query", "key", "value"))
        )
        split = self.op("Split", parts, outputs=3, axis=-1, num_outputs=3)
        apart = self.numbers(0, 0, self.heads, self.each)
        query, key, value = (
            self.one("Transpose", self.one("Reshape", p, apart), perm=[0, 2, 1, 3])
            for p in split
        )
        key = self.one("Concat", f"past_keys_{number}", key, axis=2)
        value = self.one("Concat", f"past_values_{number}", value, axis=2)
        self.name(key, f"new_keys_{number}")
        self.name(value, f"new_values_{number}")
        query = self.one(
            "Mul",
            query,
            self.const("attention_scale", np.float32(1 / math.sqrt(self.each))),
        )
        own = self.one("MatMul", query, self.one("Transpose", key, perm=[0, 1, 3, 2]))
        scores = [self.told(query, number), self.one("Add", own, "self_mask")]
        weights = self.one("Softmax", self.one("Concat", *scores, axis=-1), axis=-1)
        of_memory, of_own = self.op(
            "Split", weights, self.sizes(scores), outputs=2, axis=-1
        )
        seen = self.one(
            "Add",
            self.one("MatMul", of_own, value),
            self.from_memory(of_memory, number),
        )
        seen = self.one(
            "Reshape",
            self.one("Transpose", seen, perm=[0, 2, 1, 3]),
            self.numbers(0, 0, self.width),
        )
        return self.linear(seen, f"{name}.output")

    def sizes(self, scores: list[str]) -> str:
        last = [
            self.one("Gather", self.one("Shape", score), self.numbers(3))
            for score in scores
        ]
        return self.one("Concat", *last, axis=0)

    def told(self, query: str, number: int) -> str:
        """Scores over the memory (sequences × heads × new × memory). All tokens at once, as (keys · queryᵀ)ᵀ: what
        stands on the right of a product is copied into another order at every call, and the keys are many."""
        swapped = self.one("Transpose", query, perm=[1, 0, 2, 3])
        flat = self.one("Reshape", swapped, self.numbers(self.heads, -1, self.each))
        product = self.one(
            "MatMul", f"keys_{number}", self.one("Transpose", flat, perm=[0, 2, 1])
        )
        scores = self.one("Transpose", product, perm=[0, 2, 1])
        shape = self.one("Concat", self.but_last(swapped), self.numbers(-1), axis=0)
        scores = self.one(
            "Transpose", self.one("Reshape", scores, shape), perm=[1, 0, 2, 3]
        )
        return self.one("Add", scores, "mask")

    def from_memory(self, weights: str, number: int) -> str:
        swapped = self.one("Transpose", weights, perm=[1, 0, 2, 3])
        shape = self.one(
            "Concat", self.but_last(swapped), self.numbers(self.each), axis=0
        )
        memory = self.one("Gather", self.one("Shape", swapped), self.numbers(3))
        flat = self.one(
            "Reshape",
            swapped,
            self.one("Concat", self.numbers(self.heads, -1), memory, axis=0),
        )
        seen = self.one("MatMul", flat, f"values_{number}")
        return self.one(
            "Transpose", self.one("Reshape", seen, shape), perm=[1, 0, 2, 3]
        )

    def but_last(self, value: str) -> str:
        """The shape of something with four axes, without the last."""
        return self.one(
            "Slice", self.one("Shape", value), self.numbers(0), self.numbers(3)
        )

    def written(self, states: str) -> str:
        """Log probabilities over the words that may be written (new tokens × words)."""
        hidden = self.one(
            "FastGelu", self.product(states, "writer.out"), self.bias("writer.out")
        )
        hidden = self.norm(hidden, "writer.out_norm")
        logits = self.one("MatMul", "words", self.one("Transpose", hidden, perm=[1, 0]))
        logits = self.one(
            "Add", self.one("Transpose", logits, perm=[1, 0]), "words_bias"
        )
        return self.one("LogSoftmax", logits, axis=-1)


def writer(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """New tokens' vectors, what came before, the memory → the next token's distribution for each of `take`.

    embedded (before its LayerNorm): sequences × new × width; self_mask: sequences × 1 × new × (past + new); mask:
    sequences × 1 × 1 × memory, masks being 0 or very low. For each layer: past_keys, past_values: sequences × heads ×
    past × head width; keys, values: heads × memory × head width. `take` says for which tokens (numbered over sequences
    · new); words: words × width.
    """
    graph, layers = WriterGraph(weights, shape, int8=int8), shape["writer_layers"]
    states = graph.norm("embedded", "writer.norm")
    for number in range(layers):
        states = graph.layer(states, number)
    flat = graph.one(
        "Gather",
        graph.one("Reshape", states, graph.numbers(-1, graph.width)),
        "take",
        axis=0,
    )
    graph.name(graph.written(flat), "written")
    inputs: dict[str, Shape] = {
        "embedded": ["sequences", "new", graph.width],
        "self_mask": ["sequences", 1, "new", "all"],
        "mask": ["sequences", 1, 1, "memory"],
        "take": ["taken"],
        "words": ["words", graph.width],
        "words_bias": ["words"],
    }
    outputs: dict[str, Shape] = {"written": ["taken", "words"]}
    for number in range(layers):
        for kind in ("keys", "values"):
            inputs[f"{kind}_{number}"] = [graph.heads, "memory", graph.each]
            inputs[f"past_{kind}_{number}"] = [
                "sequences",
                graph.heads,
                "past",
                graph.each,
            ]
            outputs[f"new_{kind}_{number}"] = [
                "sequences",
                graph.heads,
                "all",
                graph.each,
            ]
    return graph.model(inputs, outputs, integers=("take",))
