"""Dropout by a hash of each value's number: the same on every device, and recomputed in the backward pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_WORD = 0xFFFFFFFF


def is_kept(number: Tensor, seed: Tensor, dropped: int) -> Tensor:
    """Whether dropout keeps a value: whether the hash of its number is not below `dropped` (of 2**32).

    Two rounds of multiply and shift, decided by two seeds. Recomputing it costs less than storing it.
    """
    h = (number * 0x9E3779B1 + seed[0]) & _WORD
    h = ((h ^ (h >> 16)) * 0x21F0AAAD) & _WORD
    h = ((h ^ (h >> 15)) * (seed[1] | 1)) & _WORD
    return h >= dropped


def keep_mask(shape: Sequence[int], seed: Tensor, dropped: int) -> Tensor:
    """A mask of this shape, True where dropout keeps a value. Values are numbered in row-major order."""
    numbers = torch.arange(math.prod(shape), device=seed.device)
    return is_kept(numbers, seed, dropped).view(tuple(shape))


def thinned(x: Tensor, keep: Tensor, dropped: int) -> Tensor:
    """What dropout keeps, scaled up by what it drops; zeros elsewhere."""
    return torch.where(keep, x * (2**32 / (2**32 - dropped)), 0.0)
