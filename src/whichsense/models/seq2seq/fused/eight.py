"""Tables in eight bits."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

FORWARD = torch.float8_e4m3fn  # more digits
BACKWARD = torch.float8_e5m2  # more range: the gradients of two tokens may differ by powers of ten


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
    """(columns, rows), rows padded with zeros to a multiple of 16"""
    scale: Tensor
    """What its numbers are to be multiplied with, float32"""


def empty_eight(rows: int, columns: int, bound: Tensor, kind: torch.dtype) -> Eight:
    """Room for a table whose numbers are at most `bound` in size."""
    straight = torch.empty((rows, columns), dtype=kind, device=bound.device)
    turned = torch.empty((columns, -(-rows // 16) * 16), dtype=kind, device=bound.device)
    return Eight(straight, turned, bound / largest(kind))
