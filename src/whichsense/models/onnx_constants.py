"""The constants of an ONNX file, read without the package onnx: what `onnx_graph.Graph` put in comes out again.

An ONNX file is a protobuf message: (field's number, kind, value) one after another. Constants are its graph's
initializers, and these have dimensions, a type, a name and raw bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput

_GRAPH, _INITIALIZER = 7, 5  # of a model, of a graph
_DIMENSION, _TYPE, _NAME, _RAW = 1, 2, 8, 9  # of an initializer
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_TYPES: dict[int, Any] = {
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    6: np.int32,
    7: np.int64,
    10: np.float16,
}
Field = tuple[int, Any]


def constants(path: Path) -> dict[str, NDArray[Any]]:
    """Name → array, in the file's order."""
    try:
        body = memoryview(path.read_bytes())
        graphs = [value for number, value in _fields(body) if number == _GRAPH]
        if not graphs:
            raise ValueError("it holds no graph")
        return dict(
            _array(value)
            for graph in graphs
            for number, value in _fields(graph)
            if number == _INITIALIZER
        )
    except (OSError, IndexError, KeyError, ValueError, TypeError) as error:
        raise BadInput(
            f"'{path}' is no ONNX file with constants that can be read: {error}"
        ) from None


def _array(message: memoryview) -> tuple[str, NDArray[Any]]:
    fields = list(_fields(message))
    single = dict(fields)
    dimensions: list[int] = []
    for number, value in fields:
        if number == _DIMENSION:
            dimensions += [value] if isinstance(value, int) else _packed(value)
    values = np.frombuffer(
        single[_RAW], np.dtype(_TYPES[single[_TYPE]]).newbyteorder("<")
    )
    return bytes(single[_NAME]).decode(), values.reshape(dimensions)


def _fields(message: memoryview) -> Iterator[Field]:
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            yield number, value
            continue
        size, place = {_FIXED64: (8, place), _FIXED32: (4, place)}.get(kind) or _varint(
            message, place
        )
        if kind not in (_FIXED64, _BYTES, _FIXED32) or place + size > len(message):
            raise ValueError("it is damaged")
        yield number, message[place : place + size]
        place += size


def _packed(message: memoryview) -> list[int]:
    found, place = list[int](), 0
    while place < len(message):
        value, place = _varint(message, place)
        found.append(value)
    return found


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; the eighth says whether there are more."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
