"""An ONNX graph written down node by node, in ONNX Runtime's fused operators: no torch runs to make one.

Needs the package onnx, which is for making graphs only: running them does not ask for it.
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
OPSET = 20
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
    """Nodes and constants in the order they are made, so that code that writes a model reads like the model."""

    def __init__(
        self, weights: Mapping[str, NDArray[np.float32]], expected: str
    ) -> None:
        """`expected` says what the weights should have been, where one is missing: "Use a MiniLM encoder."."""
        self.onnx = require("onnx", EXTRA)
        self.weights, self.expected = weights, expected
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def const(self, name: str, array: NDArray[Any] | np.generic) -> str:
        if name not in self.constants:
            shaped = np.asarray(
                array, order="C"
            )  # keeps a number a number, where ascontiguousarray makes it a row
            self.constants[name] = self.onnx.numpy_helper.from_array(shaped, name)
        return name

    def array(self, name: str) -> NDArray[np.float32]:
        try:
            return self.weights[name]
        except KeyError:
            raise BadInput(
                f"The model has no weight '{name}'. {self.expected}"
            ) from None

    def weight(self, name: str) -> str:
        return self.const(name, self.array(name))

    def bias(self, *names: str) -> str:
        return self.const(
            "+".join(names) + ".bias",
            np.concatenate([self.array(f"{name}.bias") for name in names]),
        )

    def scale_and_shift(self, norm: str) -> list[str]:
        return [self.weight(f"{norm}.{part}") for part in ("weight", "bias")]

    def joined(self, *names: str) -> NDArray[np.float32]:
        """Linear layers' weights side by side, as MatMul wants them: inputs × outputs."""
        return np.concatenate([self.array(f"{name}.weight") for name in names]).T

    def numbers(self, *values: int) -> str:
        """A constant list of whole numbers: a shape, axes, places."""
        return self.const(
            "ints" + "_".join(map(str, values)), np.array(values, dtype=np.int64)
        )

    def op(
        self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any
    ) -> list[str]:
        """A node; its domain follows from its kind."""
        names = [f"{kind}_{len(self.nodes)}_{place}" for place in range(outputs)]
        domain = _FUSED if kind in _FUSED_KINDS else ""
        self.nodes.append(
            self.onnx.helper.make_node(
                kind, inputs, names, name=names[0], domain=domain, **attributes
            )
        )
        return names

    def one(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self.op(kind, *inputs, **attributes)[0]

    def name(self, value: str, name: str) -> None:
        """Give a value the name under which the graph hands it out."""
        self.nodes.append(
            self.onnx.helper.make_node("Identity", [value], [name], name=name)
        )

    def model(
        self,
        inputs: Mapping[str, Shape],
        outputs: Mapping[str, Shape],
        *,
        integers: Collection[str] = (),
    ) -> bytes:
        """The whole as an ONNX file. All that goes in and out is float32, but for the inputs named in `integers`."""
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        kind_of = {
            name: kinds.INT64 if name in integers else kinds.FLOAT for name in inputs
        }
        taken = [
            helper.make_tensor_value_info(name, kind_of[name], list(shape))
            for name, shape in inputs.items()
        ]
        given = [
            helper.make_tensor_value_info(name, kinds.FLOAT, list(shape))
            for name, shape in outputs.items()
        ]
        body = helper.make_graph(
            self.nodes, "whichsense", taken, given, list(self.constants.values())
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(_FUSED, 1)]
        return bytes(
            helper.make_model(
                body, opset_imports=opsets, ir_version=9
            ).SerializeToString()
        )


def read_constants(path: Path) -> dict[str, NDArray[Any]]:
    """The constants of an ONNX file by name, in the file's order."""
    onnx = require("onnx", EXTRA)
    # protobuf has no public base class of its decoding errors.
    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:
        raise BadInput(
            f"'{path}' is not an ONNX file that can be read: {error}"
        ) from None
    if not graph.initializer:
        raise BadInput(f"'{path}' is not an ONNX file with constants.")
    constants = {}
    for tensor in graph.initializer:
        constants[tensor.name] = onnx.numpy_helper.to_array(tensor)
    return constants
