"""Sequences of different lengths laid end to end: no computation is spent on padding.

A fused batch is ragged twice over the same tokens: as passages, which the encoder reads one by one, and as questions,
whose passages the decoder reads together. On CUDA in half precision a kernel computes ragged attention; elsewhere only
the attention itself is computed on a padded view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

_HALF = (torch.bfloat16, torch.float16)


class RaggedRows(NamedTuple):
    """The places of `rows` sequences among the tokens of a batch."""

    starts: Tensor
    """The first token of each, and the end of the last: int32, for the kernels."""
    place: Tensor
    """Each token's number in a padded table of `rows` × `longest`."""
    position: Tensor
    """Each token's position in its own sequence."""
    longest: int
    rows: int

    @classmethod
    def of(cls, lengths: Sequence[int]) -> RaggedRows:
        """Rows of these lengths.

        >>> RaggedRows.of([2, 1]).place.tolist(), RaggedRows.of([2, 1]).position.tolist()
        ([0, 1, 2], [0, 1, 0])
        """
        sizes = torch.tensor(list(lengths), dtype=torch.int64)
        starts = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
        longest = int(sizes.max())
        row = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        position = torch.arange(int(starts[-1])) - starts[row]
        place = row * longest + position
        return cls(starts.int(), place, position, longest, len(sizes))

    def to(self, device: torch.device) -> RaggedRows:
        return self._replace(
            starts=self.starts.to(device),
            place=self.place.to(device),
            position=self.position.to(device),
        )

    @property
    def is_full(self) -> bool:
        """Whether all are equally long: then the padded table is the same memory."""
        return bool(self.place.shape[0] == self.rows * self.longest)

    def aligned(self, to: int) -> RaggedRows:
        """The same sequences in a table with a multiple of `to` columns.

        >>> RaggedRows.of([2, 1]).aligned(4).place.tolist()
        [0, 1, 4]
        """
        longest = -(-self.longest // to) * to
        row = self.place // self.longest
        place = self.place + row * (longest - self.longest)
        return self._replace(longest=longest, place=place)

    def padded(self, flat: Tensor) -> Tensor:
        """(tokens, …) → (rows, longest, …), with zeros for padding."""
        shape = (self.rows, self.longest, *flat.shape[1:])
        if self.is_full:
            return flat.view(shape)
        table = flat.new_zeros((self.rows * self.longest, *flat.shape[1:]))
        return table.index_copy(0, self.place, flat).view(shape)

    def flat(self, padded: Tensor) -> Tensor:
        """(rows, longest, …) → (tokens, …)."""
        table = padded.flatten(0, 1)
        return table if self.is_full else table.index_select(0, self.place)

    def mask(self) -> Tensor | None:
        """(rows, longest), True at tokens; None if there is no padding."""
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
    rows: RaggedRows,
    *,
    scale: float,
    dropout: float,
    bias: Tensor | None,
) -> Tensor:
    """Attention of each token over its own sequence: (tokens, heads, width) in and out."""
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
    rows: RaggedRows,
    *,
    scale: float,
    dropout: float,
) -> Tensor:
    """Attention of targets (count, length, heads, width) over their own question's tokens (tokens, heads, width)."""
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
    table = _attention(
        query.transpose(1, 2),
        rows.padded(key).transpose(1, 2),
        rows.padded(value).transpose(1, 2),
        mask=_with_bias(rows.mask(), None),
        scale=scale,
        dropout=dropout,
    )
    return table.transpose(1, 2)


def _with_bias(mask: Tensor | None, bias: Tensor | None) -> Tensor | None:
    """Combine a mask (count, keys) and a bias (1, heads, queries, keys) into one attention mask."""
    if mask is None:
        return bias
    wide = mask[:, None, None, :]
    if bias is None:
        return wide
    return bias.masked_fill(~wide, float("-inf"))


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
    """Whether a kernel can compute attention over ragged rows without padding."""
    return query.is_cuda and query.dtype in _HALF and query.shape[-1] % 8 == 0


def _ragged_kernel(
    query: Tensor, key: Tensor, value: Tensor, starts_q: Tensor, starts_k: Tensor, longest_q: int, longest_k: int,
    dropout: float, scale: float,
) -> Tensor:  # fmt: skip
    # PyTorch's public `varlen_attn` has no dropout; this is the operator under it and under nested tensors.
    flash: Any = torch.ops.aten._flash_attention_forward
    output: Tensor = flash(
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
    return output
