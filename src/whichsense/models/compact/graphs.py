"""The networks as ONNX graphs: the encoder's two halves, the writer, the tagger, the support judge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.models.onnx_graph import Graph, Shape

# The encoder's two halves as ONNX graphs, and its verdict head, which is small and stays in float.
#
# A graph reads one pair without padding, so it has no mask, and its output never depends on other
# pairs. Linear layers are int8 with fixed steps, learned in training; in float mode (for tests) they
# compute what torch does without them.

# x86 without VNNI adds two products in 16 bits: with weights up to 63 that cannot overflow, on any machine.
WEIGHT_TOP = 63
# GELU never goes below -0.17, so its output is coded from there upwards.
GELU_FLOOR = 0.17
_MISSING = "It is not a checkpoint of the compact model."

Weights = Mapping[str, NDArray[np.float32]]


def _coded(graph: Graph, name: str, matrix: NDArray[np.float32]) -> list[str]:
    """Add a matrix (inputs × outputs) as codes, with one step for each output."""
    steps = np.maximum(np.abs(matrix).max(axis=0), 1e-8) / WEIGHT_TOP
    codes = graph.const(name, np.round(matrix / steps).astype(np.int8))
    return [codes, graph.const(f"{name}.steps", steps.astype(np.float32))]


class EncoderGraph(Graph):
    """A graph with the encoder's layers. A method adds nodes and returns the name of their output."""

    def __init__(self, weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> None:
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

    def linear(self, value: str, *layers: str, after_gelu: bool = False, bias: bool = True) -> str:
        """One or more linear layers of the same input, side by side."""
        matrix = self.joined(*layers)
        name = "+".join(layers)
        if not self.int8:
            product = self.one("MatMul", value, self.const(name, matrix))
            return self.one("Add", product, self.bias(*layers)) if bias else product
        coded, step, zero = self.codes(value, layers[0], after_gelu=after_gelu)
        codes, steps = _coded(self, name, matrix)
        biases = [self.bias(*layers)] if bias else []
        # The weights' zero point is 0.
        return self.one("MatMulIntegerToFloat", coded, codes, step, steps, zero, "", *biases)

    def layer(self, states: str, name: str, distances: str = "") -> str:
        """BERT's layer: attention and feed-forward, each added to the states and normalized. `distances` is added to
        the scores of attention."""
        attention = f"{name}.attention"
        parts = self.linear(states, f"{attention}.query", f"{attention}.key", f"{attention}.value")
        given = self.op("Split", parts, outputs=3, axis=-1, num_outputs=3)
        for place, part in ((0, "query"), (2, "value")):
            if f"{attention}.{part}.down" in self.weights:
                adapted = self.thin(states, f"{attention}.{part}")
                given[place] = self.one("Add", given[place], adapted)
        if distances:
            given += ["", "", distances]  # no bias, no mask of keys
        context = self.one("MultiHeadAttention", *given, num_heads=self.shape["heads"])
        output = self.linear(context, f"{attention}.output")
        states = self.norm(self.one("Add", output, states), f"{attention}_norm")
        # The bias is added within FastGelu.
        wide = self.linear(states, f"{name}.wide", bias=False)
        wide = self.one("FastGelu", wide, self.bias(f"{name}.wide"))
        narrow = self.linear(wide, f"{name}.narrow", after_gelu=True)
        if f"{name}.beside.down" in self.weights:
            narrow = self.one("Add", narrow, self.thin(states, f"{name}.beside", bias=True))
        return self.norm(self.one("Add", narrow, states), f"{name}.norm")

    def thin(self, value: str, name: str, *, bias: bool = False) -> str:
        """Add an adapter's two thin matrices, in half precision; with a bias, GELU is between them."""
        inner = self.one("MatMul", value, self.half(f"{name}.down"))
        if bias:
            inner = self.one("FastGelu", inner, self.weight(f"{name}.bias"))
        return self.one("MatMul", inner, self.half(f"{name}.up"))

    def half(self, name: str) -> str:
        """Return a matrix as MatMul takes it (inputs × outputs)."""
        stored = self.const(name, self.array(name).T.astype(np.float16))
        return self.one("Cast", stored, to=self.onnx.TensorProto.FLOAT)

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
        """Add a head over the [CLS] state: one number a pair (batch)."""
        hidden = self.one("Tanh", self.gemm(self.first(states), f"{head}.dense"))
        return self.one("Squeeze", self.gemm(hidden, f"{head}.out"), self.numbers(1))

    def project(self, states: str, layer: str) -> str:
        """Add a linear layer of every token's state, in float."""
        product = self.one("MatMul", states, self.const(f"{layer}.weight", self.joined(layer)))
        return self.one("Add", product, self.bias(layer))

    def first(self, states: str) -> str:
        """Return the [CLS] state (batch × width)."""
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
    """Build a graph: the early states → final states, relevance, span scores (batch × length × 2), ambiguity."""
    graph = EncoderGraph(weights, shape, int8=int8)
    states = "early"
    for number in range(shape["early"], shape["layers"]):
        states = graph.layer(states, f"encoder.layers.{number}")
    graph.name(states, "states")
    graph.name(graph.score(states, "relevance"), "relevance")
    graph.name(graph.project(states, "span"), "span")
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


# The writer as an ONNX graph: any number of sequences, any number of new tokens each.
#
# All sequences attend to one memory, the prompts that were read, each to its own part of it. The same
# graph reads a prompt, as a sequence of new tokens that all attend to each other.

_LAYER = "writer.layers.{}"


class _WriterGraph(Graph):
    """A graph with the writer's layers. A method adds nodes and returns the name of their output.

    In int8 mode a product quantizes its inputs with a step computed from them; in float mode (for tests) nothing is
    rounded.
    """

    def __init__(self, weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> None:
        super().__init__(weights, _MISSING)
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
        return self.one("DynamicQuantizeMatMul", value, *_coded(self, name, matrix))

    def norm(self, value: str, name: str) -> str:
        weights = self.scale_and_shift(name)
        return self.one("LayerNormalization", value, *weights, axis=-1, epsilon=self.epsilon)

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
        """Return the size of the last of four axes, of each."""
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
        """Return the memory's values by attention weights (sequences × heads × new × head width)."""
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
        """Return the sizes of the first three of four axes."""
        shape = self.one("Shape", value)
        return self.one("Slice", shape, self.numbers(0), self.numbers(3))

    def written(self, states: str) -> str:
        """Return log probabilities over the words that may be written (new tokens × words)."""
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


# The tagger as two ONNX graphs.


def tag(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """Embedded pairs (batch × length × width, before their LayerNorm), and what distances add to the scores of
    attention (1 × heads × length × length) → logits of being inside an answer, of beginning one and of being of the
    marked one's label (batch × length × 3), of the pair to hold an answer (batch), and the states."""
    graph = EncoderGraph(weights, shape, int8=int8)
    states = graph.norm("embedded", "encoder.norm")
    for number in range(shape["layers"]):
        states = graph.layer(states, f"encoder.layers.{number}", "distances")
    graph.name(graph.project(states, "tag"), "tags")
    graph.name(graph.score(states, "answers"), "answers")
    graph.name(states, "states")
    size = ["batch", "length", shape["width"]]
    distances: Shape = [1, shape["heads"], "length", "length"]
    tags: Shape = ["batch", "length", 3]
    return graph.model(
        {"embedded": size, "distances": distances},
        {"tags": tags, "answers": ["batch"], "states": size},
    )


def frame(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """Build a graph: the states of [CLS] and the mean ones of answer and label, side by side (batch × 3 · width) → the
    frames."""
    graph = EncoderGraph(weights, shape, int8=int8)
    hidden = graph.one("Tanh", graph.gemm("edges", "frame_hidden"))
    graph.name(graph.gemm(hidden, "frame_out"), "frames")
    frames = len(weights["frame_out.bias"])
    return graph.model({"edges": ["batch", 3 * shape["width"]]}, {"frames": ["batch", frames]})


# The support judge's network as an ONNX graph. The verifier's matrices are not stored again: the
# graph refers to them by their places in early.onnx and verifier.onnx, which lie in the same folder.

_LEAST_SHARED = 4096  # bytes: smaller constants are stored


def support(
    weights: Weights, shape: Mapping[str, Any], *, int8: bool, beside: Path | None
) -> bytes:
    """Embedded pairs (batch × length × width, before their LayerNorm) → logits of support (batch).

    `beside` is the folder of early.onnx and verifier.onnx: constants that these hold are referred to. None: all are
    stored.
    """
    graph = EncoderGraph(weights, shape, int8=int8)
    states = graph.norm("embedded", "encoder.norm")
    for number in range(shape["layers"]):
        states = graph.layer(states, f"encoder.layers.{number}")
    graph.name(graph.score(states, "support"), "support")
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
        for key, value in (("location", file.name), ("offset", place), ("length", len(raw))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
