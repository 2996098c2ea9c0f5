"""The writer as an ONNX graph: any number of sequences, any number of new tokens each.

All sequences attend to one memory, the prompts that were read, each to its own part of it. The same graph reads a
prompt, as a sequence of new tokens that all attend to each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from whichsense.models.compact.encoder.graph import WEIGHT_TOP, Weights
from whichsense.models.onnx_graph import Graph, Shape

_LAYER = "writer.layers.{}"


class _WriterGraph(Graph):
    """A graph with the writer's layers. A method adds nodes and returns the name of their output.

    In int8 mode a product quantizes its inputs with a step computed from them; in float mode (for tests) nothing is
    rounded.
    """

    def __init__(
        self, weights: Weights, shape: Mapping[str, Any], *, int8: bool
    ) -> None:
        super().__init__(weights, "It is not a checkpoint of the compact model.")
        self.int8 = int8
        self.epsilon = shape["epsilon"]
        self.heads = shape["heads"]
        self.width = shape["width"]
        self.each = self.width // self.heads  # the width of a head

    def linear(self, value: str, *layers: str) -> str:
        product = self.product(value, *layers)
        return self.one("Add", product, self.bias(*layers))

    def product(self, value: str, *layers: str) -> str:
        """Linear layers of the same input, side by side, without their biases."""
        matrix = self.joined(*layers)
        name = "+".join(layers)
        if not self.int8:
            return self.one("MatMul", value, self.const(name, matrix))
        # One step for each output: matrix is inputs × outputs.
        steps = np.maximum(np.abs(matrix).max(axis=0), 1e-8) / WEIGHT_TOP
        codes = self.const(name, np.round(matrix / steps).astype(np.int8))
        step_names = self.const(f"{name}.steps", steps.astype(np.float32))
        return self.one("DynamicQuantizeMatMul", value, codes, step_names)

    def norm(self, value: str, name: str) -> str:
        weights = self.scale_and_shift(name)
        return self.one(
            "LayerNormalization", value, *weights, axis=-1, epsilon=self.epsilon
        )

    def layer(self, states: str, number: int) -> str:
        """BERT's layer: attention and feed-forward, each added to the states and normalized."""
        name = _LAYER.format(number)
        context = self.attention(states, number)
        states = self.norm(self.one("Add", states, context), f"{name}.attention_norm")
        wide = self.product(states, f"{name}.wide")
        wide = self.one("FastGelu", wide, self.bias(f"{name}.wide"))
        narrow = self.linear(wide, f"{name}.narrow")
        return self.norm(self.one("Add", states, narrow), f"{name}.norm")

    def attention(self, states: str, number: int) -> str:
        """Attention over the memory and the sequence so far, under one softmax. Keys and values of the new tokens are
        appended to the old ones."""
        name = f"{_LAYER.format(number)}.attention"
        parts = self.linear(states, f"{name}.query", f"{name}.key", f"{name}.value")
        split = self.op("Split", parts, outputs=3, axis=-1, num_outputs=3)
        # All three: sequences × heads × new × head width.
        by_head = self.numbers(0, 0, self.heads, self.each)
        heads = []
        for part in split:
            reshaped = self.one("Reshape", part, by_head)
            heads.append(self.one("Transpose", reshaped, perm=[0, 2, 1, 3]))
        query, key, value = heads
        key = self.one("Concat", f"past_keys_{number}", key, axis=2)
        value = self.one("Concat", f"past_values_{number}", value, axis=2)
        self.name(key, f"new_keys_{number}")
        self.name(value, f"new_values_{number}")
        scale = self.const("attention_scale", np.float32(1 / math.sqrt(self.each)))
        query = self.one("Mul", query, scale)
        own = self.one("MatMul", query, self.one("Transpose", key, perm=[0, 1, 3, 2]))
        scores = [self.memory_scores(query, number), self.one("Add", own, "self_mask")]
        weights = self.one("Softmax", self.one("Concat", *scores, axis=-1), axis=-1)
        sizes = self.last_sizes(scores)
        on_memory, on_own = self.op("Split", weights, sizes, outputs=2, axis=-1)
        context = self.one("MatMul", on_own, value)
        context = self.one("Add", context, self.memory_values(on_memory, number))
        context = self.one("Transpose", context, perm=[0, 2, 1, 3])
        context = self.one("Reshape", context, self.numbers(0, 0, self.width))
        return self.linear(context, f"{name}.output")

    def last_sizes(self, scores: list[str]) -> str:
        """The size of the last of four axes, of each."""
        sizes = []
        for score in scores:
            shape = self.one("Shape", score)
            sizes.append(self.one("Gather", shape, self.numbers(3)))
        return self.one("Concat", *sizes, axis=0)

    def memory_scores(self, query: str, number: int) -> str:
        """Scores over the memory (sequences × heads × new × memory).

        All tokens at once, as (keys · queryᵀ)ᵀ: the right side of a product is reordered at every call, and the keys
        are many.
        """
        swapped = self.one("Transpose", query, perm=[1, 0, 2, 3])
        flat = self.one("Reshape", swapped, self.numbers(self.heads, -1, self.each))
        flat = self.one("Transpose", flat, perm=[0, 2, 1])
        product = self.one("MatMul", f"keys_{number}", flat)
        scores = self.one("Transpose", product, perm=[0, 2, 1])
        outer = self.outer_shape(swapped)
        shape = self.one("Concat", outer, self.numbers(-1), axis=0)
        scores = self.one("Reshape", scores, shape)
        scores = self.one("Transpose", scores, perm=[1, 0, 2, 3])
        return self.one("Add", scores, "mask")

    def memory_values(self, weights: str, number: int) -> str:
        """The memory's values by attention weights (sequences × heads × new × head width)."""
        swapped = self.one("Transpose", weights, perm=[1, 0, 2, 3])
        outer = self.outer_shape(swapped)
        shape = self.one("Concat", outer, self.numbers(self.each), axis=0)
        memory = self.one("Gather", self.one("Shape", swapped), self.numbers(3))
        flat_shape = self.one("Concat", self.numbers(self.heads, -1), memory, axis=0)
        flat = self.one("Reshape", swapped, flat_shape)
        values = self.one("MatMul", flat, f"values_{number}")
        values = self.one("Reshape", values, shape)
        return self.one("Transpose", values, perm=[1, 0, 2, 3])

    def outer_shape(self, value: str) -> str:
        """The sizes of the first three of four axes."""
        shape = self.one("Shape", value)
        return self.one("Slice", shape, self.numbers(0), self.numbers(3))

    def written(self, states: str) -> str:
        """Log probabilities over the words that may be written (new tokens × words)."""
        hidden = self.product(states, "writer.out")
        hidden = self.one("FastGelu", hidden, self.bias("writer.out"))
        hidden = self.norm(hidden, "writer.out_norm")
        hidden = self.one("Transpose", hidden, perm=[1, 0])
        logits = self.one("MatMul", "words", hidden)
        logits = self.one("Transpose", logits, perm=[1, 0])
        logits = self.one("Add", logits, "words_bias")
        return self.one("LogSoftmax", logits, axis=-1)


def writer(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """New tokens, the past and the memory → the next token's distribution after each token of `take`.

    embedded (before its LayerNorm): sequences × new × width; self_mask: sequences × 1 × new × (past + new); mask:
    sequences × 1 × 1 × memory, masks being 0 or very low. For each layer: past_keys, past_values: sequences × heads ×
    past × head width; keys, values: heads × memory × head width. `take` says for which tokens (numbered over sequences
    · new); words: words × width.
    """
    graph = _WriterGraph(weights, shape, int8=int8)
    layers = shape["writer_layers"]
    states = graph.norm("embedded", "writer.norm")
    for number in range(layers):
        states = graph.layer(states, number)
    flat = graph.one("Reshape", states, graph.numbers(-1, graph.width))
    taken = graph.one("Gather", flat, "take", axis=0)
    graph.name(graph.written(taken), "written")
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
            memory: Shape = [graph.heads, "memory", graph.each]
            past: Shape = ["sequences", graph.heads, "past", graph.each]
            new: Shape = ["sequences", graph.heads, "all", graph.each]
            inputs[f"{kind}_{number}"] = memory
            inputs[f"past_{kind}_{number}"] = past
            outputs[f"new_{kind}_{number}"] = new
    return graph.model(inputs, outputs, integers=("take",))
