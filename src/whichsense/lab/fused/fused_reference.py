"""What the kernels compute, in plain torch: dropout, and each step as a reference."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from whichsense.models.seq2seq.ragged import RaggedRows

# Dropout by a hash of each value's number: the same on every device, and recomputed in the backward
# pass.

_WORD = 0xFFFFFFFF


def is_kept(number: Tensor, seed: Tensor, dropped: int) -> Tensor:
    """Tell whether dropout keeps a value: whether the hash of its number is not below `dropped` (of 2**32).

    Two rounds of multiply and shift, decided by two seeds. Recomputing it costs less than storing it.
    """
    h = (number * 0x9E3779B1 + seed[0]) & _WORD
    h = ((h ^ (h >> 16)) * 0x21F0AAAD) & _WORD
    h = ((h ^ (h >> 15)) * (seed[1] | 1)) & _WORD
    return h >= dropped


def keep_mask(shape: Sequence[int], seed: Tensor, dropped: int) -> Tensor:
    """Return a mask of this shape, True where dropout keeps a value. Values are numbered in row-major order."""
    numbers = torch.arange(math.prod(shape), device=seed.device)
    return is_kept(numbers, seed, dropped).view(tuple(shape))


def thinned(x: Tensor, keep: Tensor, dropped: int) -> Tensor:
    """Return what dropout keeps, scaled up by what it drops; zeros elsewhere."""
    return torch.where(keep, x * (2**32 / (2**32 - dropped)), 0.0)


# What the kernels compute, in PyTorch: for CPUs, and as the yardstick of the kernels.


def norm_forward(
    x: Tensor,
    change: Tensor,
    weight: Tensor,
    bias: Tensor,
    seed: Tensor,
    *,
    epsilon: float,
    dropped: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """norm(x + dropout(change)), the sum, its mean and 1/deviation."""
    added = change.float()
    if dropped:
        added = thinned(added, keep_mask(x.shape, seed, dropped), dropped)
    total = (x.float() + added).to(x.dtype)
    wide = total.float()
    mean = wide.mean(1)
    spread = torch.rsqrt((wide - mean[:, None]).pow(2).mean(1) + epsilon)
    y = (wide - mean[:, None]) * spread[:, None] * weight.float() + bias.float()
    return y.to(x.dtype), total, mean, spread


def norm_backward(
    dy: Tensor, dy2: Tensor | None, total: Tensor, mean: Tensor, spread: Tensor, weight: Tensor, seed: Tensor, *,
    dropped: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return gradients of the sum and of the change; those of weight, bias and the change's own bias."""
    g = dy.float() if dy2 is None else dy.float() + dy2.float()
    unit = (total.float() - mean[:, None]) * spread[:, None]
    gw = g * weight.float()
    d = (gw - gw.mean(1, keepdim=True) - unit * (gw * unit).mean(1, keepdim=True)) * spread[:, None]
    dtotal = d.to(dy.dtype)
    d = dtotal.float()
    if dropped:
        d = thinned(d, keep_mask(d.shape, seed, dropped), dropped)
    sums = torch.stack([(g * unit).sum(0), g.sum(0), d.sum(0)])
    return dtotal, d.to(dy.dtype), sums


def gelu_forward(u: Tensor, seed: Tensor, *, dropped: int) -> Tensor:
    """Return dropout(gelu(u))."""
    h = F.gelu(u.float())
    if dropped:
        h = thinned(h, keep_mask(u.shape, seed, dropped), dropped)
    return h.to(u.dtype)


def gelu_backward(dh: Tensor, u: Tensor, seed: Tensor, *, dropped: int) -> tuple[Tensor, Tensor]:
    """Return the gradient of u, and its sum over the tokens."""
    wide = u.float()
    slope = 0.5 * (1 + torch.erf(wide * math.sqrt(0.5))) + wide * torch.exp(
        -wide * wide / 2
    ) / math.sqrt(2 * math.pi)
    g = dh.float() * slope
    if dropped:
        g = thinned(g, keep_mask(u.shape, seed, dropped), dropped)
    return g.to(u.dtype), g.sum(0)


def attention_forward(
    qkv: Tensor, rows: RaggedRows, seed: Tensor, *, heads: int, scale: float, dropped: int
) -> tuple[Tensor, Tensor]:
    """(tokens, 3 × heads × width) → (tokens, heads × width), and what the way back needs."""
    q, _, v, p, thin = _attended(qkv, rows, seed, heads, scale, dropped)
    found = (p if thin is None else thinned(p, thin, dropped)) @ v
    return rows.flat(found.transpose(1, 2)).flatten(1).to(qkv.dtype), q.new_empty(0)


def attention_backward(
    dout: Tensor, qkv: Tensor, out: Tensor, levels: Tensor, rows: RaggedRows, seed: Tensor, *, heads: int, scale: float,
    dropped: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradient of qkv, and its sum over the tokens (the keys' is zero, by any bias)."""
    q, k, v, p, thin = _attended(qkv, rows, seed, heads, scale, dropped)
    g = rows.padded(dout.float().view(len(dout), heads, -1)).transpose(1, 2)
    dp = g @ v.transpose(-1, -2)
    shown = p
    if thin is not None:
        shown = thinned(p, thin, dropped)
        dp = thinned(dp, thin, dropped)
    ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * scale
    parts = torch.stack([ds @ k, ds.transpose(-1, -2) @ q, shown.transpose(-1, -2) @ g], 2)
    wide = rows.flat(parts.permute(0, 3, 2, 1, 4)).flatten(1)
    sums = wide.sum(0).view(3, -1)
    sums[1] = 0
    return wide.to(qkv.dtype), sums.flatten()


def _attended(
    qkv: Tensor, rows: RaggedRows, seed: Tensor, heads: int, scale: float, dropped: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Queries, keys, values (sequences, heads, longest, width), the softmax, and which of it dropout keeps."""
    table = rows.padded(qkv.float().view(len(qkv), 3, heads, -1)).permute(2, 0, 3, 1, 4)
    q, k, v = table.unbind(0)
    scores = q @ k.transpose(-1, -2) * scale
    mask = rows.mask()
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    p = scores.softmax(-1)
    if mask is not None:
        p = p * mask.transpose(2, 3)  # rows that are no token have no gradient
    keep = keep_mask(p.shape, seed, dropped) if dropped else None
    return q, k, v, p, keep
