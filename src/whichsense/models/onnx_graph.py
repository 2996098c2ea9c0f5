"""Builds an ONNX graph node by node, with ONNX Runtime's fused operators and without torch.

It needs the package onnx; running a graph does not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput, require

Shape = Sequence[str | int]
EXTRA = "dense"
_OPSET = 20
_FUSED = "com.microsoft"
_FUSED_KINDS = (
    "Attention",
    "BiasGelu",
    "DynamicQuantizeMatMul",
    "FastGelu",
    "MatMulIntegerToFloat",
    "MultiHeadAttention",
    "QAttention",
    "SkipLayerNormalization",
)


class Graph:
    """Nodes and constants in the order of their creation, so that code that builds a model reads like the model."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]], expected: str) -> None:
        """`expected` ends the error about a missing weight: "Use a MiniLM encoder."."""
        self.onnx = require("onnx", EXTRA)
        self.weights = weights
        self.expected = expected
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def const(self, name: str, array: NDArray[Any] | np.generic) -> str:
        if name not in self.constants:
            # Unlike ascontiguousarray, this keeps a scalar a scalar.
            shaped = np.asarray(array, order="C")
            self.constants[name] = self.onnx.numpy_helper.from_array(shaped, name)
        return name

    def array(self, name: str) -> NDArray[np.float32]:
        try:
            return self.weights[name]
        except KeyError:
            raise BadInput(f"The model has no weight '{name}'. {self.expected}") from None

    def weight(self, name: str) -> str:
        return self.const(name, self.array(name))

    def bias(self, *names: str) -> str:
        """Return the biases of linear layers that stand side by side."""
        biases = [self.array(f"{name}.bias") for name in names]
        return self.const("+".join(names) + ".bias", np.concatenate(biases))

    def scale_and_shift(self, norm: str) -> list[str]:
        return [self.weight(f"{norm}.weight"), self.weight(f"{norm}.bias")]

    def joined(self, *names: str) -> NDArray[np.float32]:
        """Return the weights of linear layers side by side, as MatMul takes them: inputs × outputs."""
        weights = [self.array(f"{name}.weight") for name in names]
        return np.concatenate(weights).T

    def numbers(self, *values: int) -> str:
        """Return a constant list of integers: a shape, axes, places."""
        name = "ints" + "_".join(map(str, values))
        return self.const(name, np.array(values, dtype=np.int64))

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node and return the names of its outputs. The domain follows from the kind."""
        names = [f"{kind}_{len(self.nodes)}_{place}" for place in range(outputs)]
        domain = _FUSED if kind in _FUSED_KINDS else ""
        node = self.onnx.helper.make_node(
            kind, inputs, names, name=names[0], domain=domain, **attributes
        )
        self.nodes.append(node)
        return names

    def one(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output."""
        return self.op(kind, *inputs, **attributes)[0]

    def name(self, value: str, name: str) -> None:
        """Make a value an output of the graph under a name."""
        node = self.onnx.helper.make_node("Identity", [value], [name], name=name)
        self.nodes.append(node)

    def model(
        self,
        inputs: Mapping[str, Shape],
        outputs: Mapping[str, Shape],
        *,
        integers: Collection[str] = (),
    ) -> bytes:
        """Return the graph as an ONNX file. Inputs and outputs are float32, except the inputs named in `integers`."""
        helper = self.onnx.helper
        kinds = self.onnx.TensorProto
        input_values, output_values = [], []
        for name, shape in inputs.items():
            kind = kinds.INT64 if name in integers else kinds.FLOAT
            value = helper.make_tensor_value_info(name, kind, list(shape))
            input_values.append(value)
        for name, shape in outputs.items():
            value = helper.make_tensor_value_info(name, kinds.FLOAT, list(shape))
            output_values.append(value)
        constants = list(self.constants.values())
        body = helper.make_graph(self.nodes, "whichsense", input_values, output_values, constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
        model = helper.make_model(body, opset_imports=opsets, ir_version=9)
        return bytes(model.SerializeToString())


def read_constants(path: Path) -> dict[str, NDArray[Any]]:
    """Return the constants of an ONNX file by name, in the file's order."""
    onnx = require("onnx", EXTRA)
    # protobuf has no public base class of its decoding errors.
    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:
        raise BadInput(f"'{path}' is not an ONNX file that can be read: {error}") from None
    if not graph.initializer:
        raise BadInput(f"'{path}' is not an ONNX file with constants.")
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
