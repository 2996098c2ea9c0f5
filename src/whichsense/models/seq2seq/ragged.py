"""Sequences of different lengths laid end to end: no computation is spent on padding.

A fused batch is ragged twice over the same tokens: as passages, which the encoder reads one by one, and as questions,
whose passages the decoder reads together. Where a kernel for ragged attention is at hand (CUDA, half precision) it is
used; elsewhere only the attention itself is computed on a padded view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

HALF = (torch.bfloat16, torch.float16)


class Ragged(NamedTuple):
    """Where each of `rows` sequences lies among the tokens of a batch."""

    starts: Tensor
    """Where each one begins, and where the last one ends: int32, for the kernels."""
    place: Tensor
    """Each token's row-and-column number in a padded table of `rows` × `longest`."""
    position: Tensor
    """Each token's place in its own sequence."""
    longest: int
    rows: int

    @classmethod
    def of(cls, lengths: Sequence[int]) -> Ragged:
        """
        >>> Ragged.of([2, 1]).place.tolist(), Ragged.of([2, 1]).position.tolist()
        ([0, 1, 2], [0, 1, 0])
        """
        sizes = torch.tensor(list(lengths), dtype=torch.int64)
        starts = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
        longest = int(sizes.max())
        row = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        position = torch.arange(int(starts[-1])) - starts[row]
        return cls(
            starts.int(), row * longest + position, position, longest, len(sizes)
        )

    @property
    def is_full(self) -> bool:
        """Whether all are equally long: then the padded table is the same memory."""
        return bool(self.place.shape[0] == self.rows * self.longest)

    def aligned(self, to: int) -> Ragged:
        """The same sequences in a table with a multiple of `to` columns.

        >>> Ragged.of([2, 1]).aligned(4).place.tolist()
        [0, 1, 4]
        """
        longest = -(-self.longest // to) * to
        place = self.place + self.place // self.longest * (longest - self.longest)
        return self._replace(longest=longest, place=place)

    def padded(self, flat: Tensor) -> Tensor:
        """(tokens, …) as (rows, longest, …), zeros where there is no token."""
        shape = (self.rows, self.longest, *flat.shape[1:])
        if self.is_full:
            return flat.view(shape)
        table = flat.new_zeros((self.rows * self.longest, *flat.shape[1:]))
        return table.index_copy(0, self.place, flat).view(shape)

    def flat(self, padded: Tensor) -> Tensor:
        """The way back."""
        table = padded.flatten(0, 1)
        return table if self.is_full else table.index_select(0, self.place)

    def mask(self) -> Tensor | None:
        """(rows, longest), true where there is a token; None where that is everywhere."""
        if self.is_full:
            return None
        table = torch.zeros(
            self.rows * self.longest, dtype=torch.bool, device=self.place.device
        )
        return table.index_fill(0, self.place, True).view(self.rows, self.longest)


def self_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rows: Ragged,
    *,
    scale: float,
    dropout: float,
    bias: Tensor | None,
) -> Tensor:
    """Each token over the tokens of its own sequence: (tokens, heads, width) in and out."""
    if bias is None and not rows.is_full and has_kernel(query):
        return _ragged_kernel(
            query,
            key,
            value,
            rows.starts,
            rows.starts,
            rows.longest,
            rows.longest,
            dropout,
            scale,
        )
    table = _attention(
        rows.padded(query).transpose(1, 2),
        rows.padded(key).transpose(1, 2),
        rows.padded(value).transpose(1, 2),
        mask=_with_bias(rows.mask(), bias),
        scale=scale,
        dropout=dropout,
    )
    return rows.flat(table.transpose(1, 2))


def cross_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rows: Ragged,
    *,
    scale: float,
    dropout: float,
) -> Tensor:
    """Targets (count, length, heads, width) over the tokens of their own question (tokens, heads, width)."""
    if not rows.is_full and has_kernel(query):
        count, length = query.shape[:2]
        starts = torch.arange(
            0, (count + 1) * length, length, dtype=torch.int32, device=query.device
        )
        flat = _ragged_kernel(
            query.flatten(0, 1),
            key,
            value,
            starts,
            rows.starts,
            length,
            rows.longest,
            dropout,
            scale,
        )
        return flat.view(query.shape)
    found = _attention(
        query.transpose(1, 2),
        rows.padded(key).transpose(1, 2),
        rows.padded(value).transpose(1, 2),
        mask=_with_bias(rows.mask(), None),
        scale=scale,
        dropout=dropout,
    )
    return found.transpose(1, 2)


def _with_bias(mask: Tensor | None, bias: Tensor | None) -> Tensor | None:
    """Mask (count, keys) and bias (1, heads, queries, keys) as one thing that attention takes."""
    if mask is None or bias is None:
        return bias if mask is None else mask[:, None, None, :]
    return bias.masked_fill(~mask[:, None, None, :], float("-inf"))


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None,
    scale: float,
    dropout: float,
) -> Tensor:
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, scale=scale
    )


def has_kernel(query: Tensor) -> bool:
    """Whether attention over ragged rows can be computed as it is."""
    return query.is_cuda and query.dtype in HALF and query.shape[-1] % 8 == 0


def _ragged_kernel(
    query: Tensor, key: Tensor, value: Tensor, starts_q: Tensor, starts_k: Tensor, longest_q: int, longest_k: int,
    dropout: float, scale: float,
) -> Tensor:  # fmt: skip
    # PyTorch's public `varlen_attn` has no dropout; this is the operator under it and under nested tensors.
    flash: Any = torch.ops.aten._flash_attention_forward
    found: Tensor = flash(
        query,
        key,
        value,
        starts_q,
        starts_k,
        longest_q,
        longest_k,
        dropout,
        False,
        False,
        scale=scale,
    )[0]
    return found
