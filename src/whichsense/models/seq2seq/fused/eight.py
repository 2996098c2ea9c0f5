"""Tables in eight bits."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

FORWARD = torch.float8_e4m3fn  # more digits
BACKWARD = (
    torch.float8_e5m2
)  # more range: the gradients of two tokens may differ by powers of ten
_ROWS = 64  # of a transpose: at most those of a kernel's tile, which zeroes what is behind the last row


def largest(kind: torch.dtype) -> float:
    """
    >>> largest(FORWARD), largest(BACKWARD)
    (448.0, 57344.0)
    """
    return torch.finfo(kind).max


class Eight(NamedTuple):
    """A table in eight bits, and its transpose: Hopper's products read both operands along the side they sum over."""

    straight: Tensor
    """(rows, columns)"""
    turned: Tensor
    """(columns, rows), rows padded with zeros to a multiple of 64: each kernel writes whole sectors of memory"""
    scale: Tensor
    """What its numbers are to be multiplied with, float32"""


def empty_eight(rows: int, columns: int, bound: Tensor, kind: torch.dtype) -> Eight:
    """Room for a table whose numbers are at most `bound` in size."""
    straight = torch.empty((rows, columns), dtype=kind, device=bound.device)
    turned = torch.empty(
        (columns, -(-rows // _ROWS) * _ROWS), dtype=kind, device=bound.device
    )
    return Eight(straight, turned, bound / largest(kind))
