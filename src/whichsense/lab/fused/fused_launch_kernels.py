"""Launch the kernels: grids, strides, and one autograd function for each step."""

# mypy: ignore-errors

from __future__ import annotations

import math

import torch
from torch import Tensor

from whichsense.lab.fused import fused_kernels
from whichsense.models.seq2seq.ragged import RaggedRows

_LOG2E = math.log2(math.e)
_KEYS, _REGISTERS = (
    32,
    168,
)  # of an attention block; with as many registers three blocks share a multiprocessor


# Of GELU a program computes four times so many rows, so many columns, and so often that its sums are few.
_FOURS, _COLUMNS, _TIMES = 16, 64, 4
_GELU = {"FOURS": _FOURS, "COLUMNS": _COLUMNS, "num_warps": 4}


def _gelu_grid(u, times=1):
    tokens, size = u.shape
    return -(-tokens // (4 * _FOURS * times)), -(-size // _COLUMNS)


def _programs(x: Tensor) -> int:
    """Return how many programs compute a norm: each takes many rows, so that their sums are few."""
    most = torch.cuda.get_device_properties(x.device).multi_processor_count * 16 if x.is_cuda else 3
    return min(x.shape[0], most)


def _block(size: int) -> int:
    return 1 << (size - 1).bit_length()


def norm_forward(x, change, weight, bias, seed, *, epsilon, dropped):
    tokens, size = x.shape
    y, total = torch.empty_like(x), torch.empty_like(x)
    mean, spread = (torch.empty(tokens, dtype=torch.float32, device=x.device) for _ in range(2))
    fused_kernels.norm_forward_kernel[(_programs(x),)](
        x, change, weight, bias, y, total, mean, spread, seed, tokens, epsilon,
        SIZE=size, DROPPED=dropped, BLOCK=_block(size), num_warps=2,
    )  # fmt: skip
    return y, total, mean, spread


def norm_backward(dy, dy2, total, mean, spread, weight, seed, *, dropped):
    tokens, size = dy.shape
    dtotal = torch.empty_like(dy)
    dchange = torch.empty_like(dy)
    programs = _programs(dy)
    partial = torch.empty((programs, 3, size), dtype=torch.float32, device=dy.device)
    fused_kernels.norm_backward_kernel[(programs,)](
        dy, dy if dy2 is None else dy2, total, mean, spread, weight, dtotal, dchange, partial, seed,
        tokens, SIZE=size, DROPPED=dropped, TWO=dy2 is not None, BLOCK=_block(size),
        num_warps=4,
    )  # fmt: skip
    return dtotal, dchange, partial.sum(0)


def gelu_forward(u, seed, *, dropped):
    tokens, size = u.shape
    made = torch.empty_like(u)
    fused_kernels.gelu_forward_kernel[_gelu_grid(u)](
        u, made, seed, tokens, SIZE=size, DROPPED=dropped, **_GELU
    )
    return made


def gelu_backward(dh, u, seed, *, dropped):
    tokens, size = u.shape
    made = torch.empty_like(u)
    grid = _gelu_grid(u, _TIMES)
    partial = torch.empty((grid[0], size), dtype=torch.float32, device=u.device)
    fused_kernels.gelu_backward_kernel[grid](
        dh, u, made, partial, seed, tokens, SIZE=size, DROPPED=dropped, TIMES=_TIMES, **_GELU
    )  # fmt: skip
    return made, partial.sum(0)


def attention_forward(qkv: Tensor, rows: RaggedRows, seed, *, heads, scale, dropped):
    tokens, width = qkv.shape[0], qkv.shape[1] // (3 * heads)
    out = torch.empty((tokens, heads * width), dtype=qkv.dtype, device=qkv.device)
    levels = torch.empty((heads, tokens), dtype=torch.float32, device=qkv.device)
    fused_kernels.attention_forward_kernel[_blocks(rows, heads)](
        qkv, out, levels, rows.starts, seed, rows.longest, scale * _LOG2E,
        HEADS=heads, WIDTH=width, DROPPED=dropped, KEYS=_KEYS, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out, levels


def attention_backward(dout, qkv, out, levels, rows: RaggedRows, seed, *, heads, scale, dropped):
    width = qkv.shape[1] // (3 * heads)
    dqkv, deltas = torch.empty_like(qkv), torch.empty_like(levels)
    blocks = _blocks(rows, heads)
    sums = torch.zeros(
        (rows.rows * blocks[0], 2, heads * width), dtype=torch.float32, device=qkv.device
    )
    common = {"HEADS": heads, "WIDTH": width, "DROPPED": dropped}
    fused_kernels.query_gradient_kernel[blocks](
        qkv, out, dout, levels, deltas, dqkv, sums, rows.starts, seed, rows.longest, scale * _LOG2E, scale,
        **common, KEYS=_KEYS, num_warps=4, num_stages=1,
    )  # fmt: skip
    fused_kernels.key_gradient_kernel[blocks](
        qkv, dout, levels, deltas, dqkv, sums, rows.starts, seed, rows.longest, scale * _LOG2E, scale,
        **common, num_warps=4, num_stages=1, **({"maxnreg": _REGISTERS} if qkv.is_cuda else {}),
    )  # fmt: skip
    queries, values = sums.sum(0).unbind(0)
    return dqkv, torch.cat([queries, torch.zeros_like(queries), values])


def _blocks(rows: RaggedRows, heads: int) -> tuple[int, int]:
    return -(-rows.longest // fused_kernels.QUERIES.value), rows.rows * heads
