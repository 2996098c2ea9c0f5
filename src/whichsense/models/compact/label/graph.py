"""The network that finds labels as two ONNX graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whichsense.models.compact.encoder.graph import EncoderGraph, Weights


def label(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """The early states of a pair (batch × length × width) and what each token is part of (batch × length) → logits
    of being of the label (batch × length), and the states behind them."""
    graph = EncoderGraph(weights, shape, int8=int8)
    marks = graph.one("Gather", graph.weight("marks.weight"), "marks", axis=0)
    states = graph.one("Add", "early", marks)
    for number in range(shape["label_layers"]):
        states = graph.layer(states, f"layers.{number}")
    graph.name(states, "states")
    product = graph.one(
        "MatMul", states, graph.const("label.weight", graph.joined("label"))
    )
    logits = graph.one("Add", product, graph.bias("label"))
    graph.name(graph.one("Squeeze", logits, graph.numbers(-1)), "label")
    size = ["batch", "length", shape["width"]]
    tokens = ["batch", "length"]
    return graph.model(
        {"early": size, "marks": tokens},
        {"label": tokens, "states": size},
        integers=("marks",),
    )


def frame(weights: Weights, shape: Mapping[str, Any], *, int8: bool) -> bytes:
    """The states of [CLS] and the mean ones of answer and label, side by side (batch × 3 · width) → the frames."""
    graph = EncoderGraph(weights, shape, int8=int8)
    hidden = graph.one("Tanh", graph.gemm("edges", "frame_hidden"))
    graph.name(graph.gemm(hidden, "frame_out"), "frames")
    frames = len(weights["frame_out.bias"])
    return graph.model(
        {"edges": ["batch", 3 * shape["width"]]}, {"frames": ["batch", frames]}
    )
