"""Triton kernels of what lies between the matrix products: GELU, dropout, casts to eight bits.

Only loaded where there is a GPU (Triton comes with PyTorch for CUDA); `reference.py` says the same in PyTorch.
"""
# mypy: ignore-errors

from __future__ import annotations

import os

import triton
import triton.language as tl

ON_GPU: tl.constexpr = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") != "1")


@triton.jit
def seeds_at(seed):
    """The two numbers that decide a dropout; the second one multiplies, and has to be odd."""
    return tl.load(seed).to(tl.uint32), tl.load(seed + 1).to(tl.uint32) | 1


@triton.jit
def is_kept(line, place, start, factor, DROPPED: tl.constexpr):
    """Whether dropout keeps the value number line + place: a hash of the number is not below DROPPED (of 2**32).

    Both come in apart, so that the first multiplication is done once for a row and once for a column.
    """
    golden = tl.full((), 0x9E3779B1, tl.uint32)
    h = (line.to(tl.uint32) * golden + start) + place.to(tl.uint32) * golden
    h = (h ^ (h >> 16)) * tl.full((), 0x21F0AAAD, tl.uint32)
    h = (h ^ (h >> 15)) * factor
    return h >= tl.full((), DROPPED, tl.uint32)


@triton.jit
def normal_share(u, square):
    """Φ(u) as 1 / (1 + 2^-p(u)), fitted: GELU is right to 2.5e-5, its slope to 5e-5."""
    near = tl.minimum(square, 30.25)
    p = u * ((-0.00101448323 * near + 0.106776737) * near + 2.30112047)
    return 1.0 / (1.0 + tl.exp2(-p))


@triton.jit
def eight_bits(value, LARGEST: tl.constexpr):
    """The bytes of a tile in eight bits; what is too large becomes the kind's LARGEST.

    Four at a time, and as one instruction to the compiler: ptxas 12.9 loses bytes of such casts when they are read
    both as they lie and one by one (Triton's issue 11111).
    """
    if ON_GPU:
        if LARGEST == 448.0:
            bits = tl.inline_asm_elementwise(
                "{ .reg .b16 a, b; cvt.rn.satfinite.e4m3x2.f32 a, $2, $1; cvt.rn.satfinite.e4m3x2.f32 b, $4, $3;"
                " mov.b32 $0, {a, b}; }",
                "=r,f,f,f,f", [value], dtype=tl.uint8, is_pure=False, pack=4,
            )  # fmt: skip
        else:
            bits = tl.inline_asm_elementwise(
                "{ .reg .b16 a, b; cvt.rn.satfinite.e5m2x2.f32 a, $2, $1; cvt.rn.satfinite.e5m2x2.f32 b, $4, $3;"
                " mov.b32 $0, {a, b}; }",
                "=r,f,f,f,f", [value], dtype=tl.uint8, is_pure=False, pack=4,
            )  # fmt: skip
    elif LARGEST == 448.0:
        bits = value.to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    else:
        bits = value.to(tl.float8e5).to(tl.uint8, bitcast=True)
    return bits


@triton.jit
def store_eight(
    value, out, at, mask, packed, PART: tl.constexpr, LARGEST: tl.constexpr
):
    """A scaled tile in eight bits; its bytes join those of the three other rows of each four."""
    bits = eight_bits(value, LARGEST)
    tl.store(out + at, bits, mask=mask)
    return packed | (bits.to(tl.uint32) << (8 * PART))


@triton.jit
def store_turned(packed, out_t, four, column, inside, span):
    """The transposed tile, four rows at a time; those behind the last token are zeros."""
    at = column[:, None].to(tl.int64) * (span // 4) + four[None, :]
    tl.store(
        out_t + at, tl.trans(packed), mask=inside[:, None] & (four < span // 4)[None, :]
    )


@triton.jit(do_not_specialize=["tokens"])  # one compilation for all batches
def gelu_forward_kernel(
    u, h, h_t, bound, seed, tokens, span,
    SIZE: tl.constexpr, DROPPED: tl.constexpr, LARGEST: tl.constexpr, FOURS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """h = dropout(gelu(u)); with LARGEST in eight bits, as bytes, and transposed in `h_t`, as 32-bit words."""
    four = tl.program_id(0) * FOURS + tl.arange(0, FOURS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < SIZE
    start, factor = seeds_at(seed)
    more = 4294967296.0 / (4294967296 - DROPPED)
    if LARGEST > 0:
        more = more * (LARGEST / tl.load(bound))
    packed = tl.zeros((FOURS, COLUMNS), tl.uint32)
    for part in tl.static_range(4):
        row = four * 4 + part
        at = row[:, None].to(tl.int64) * SIZE + column[None, :]
        both = (row < tokens)[:, None] & inside[None, :]
        value = tl.load(u + at, mask=both, other=0.0).to(tl.float32)
        value = value * normal_share(value, value * value) * more
        if DROPPED > 0:
            value = tl.where(
                is_kept(row[:, None] * SIZE, column[None, :], start, factor, DROPPED),
                value,
                0.0,
            )
        if LARGEST > 0:
            packed = store_eight(value, h, at, both, packed, part, LARGEST)
        else:
            tl.store(h + at, value.to(h.dtype.element_ty), mask=both)
    if LARGEST > 0:
        store_turned(packed, h_t, four, column, inside, span)


@triton.jit(do_not_specialize=["tokens"])  # one compilation for all batches
def gelu_backward_kernel(
    dh, u, du, du_t, partial, bound, seed, tokens, span,
    SIZE: tl.constexpr, DROPPED: tl.constexpr, LARGEST: tl.constexpr, FOURS: tl.constexpr, COLUMNS: tl.constexpr,
    TIMES: tl.constexpr,
):  # fmt: skip
    """The gradient of u; `partial` (programs along the rows, size) gets shares of its bias's gradient."""
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < SIZE
    start, factor = seeds_at(seed)
    more = 4294967296.0 / (4294967296 - DROPPED)
    back = 1.0
    if LARGEST > 0:
        back = tl.load(bound) / LARGEST
        more = more / back
    sums = tl.zeros((FOURS, COLUMNS), tl.float32)
    for time in range(TIMES):
        four = (tl.program_id(0) * TIMES + time) * FOURS + tl.arange(0, FOURS)
        packed = tl.zeros((FOURS, COLUMNS), tl.uint32)
        for part in tl.static_range(4):
            row = four * 4 + part
            at = row[:, None].to(tl.int64) * SIZE + column[None, :]
            both = (row < tokens)[:, None] & inside[None, :]
            value = tl.load(u + at, mask=both, other=0.0).to(tl.float32)
            g = tl.load(dh + at, mask=both, other=0.0).to(tl.float32) * more
            square = value * value
            bell = tl.exp2(square * -0.7213475204444817) * 0.3989422804014327
            g = g * (normal_share(value, square) + value * bell)
            if DROPPED > 0:
                g = tl.where(
                    is_kept(
                        row[:, None] * SIZE, column[None, :], start, factor, DROPPED
                    ),
                    g,
                    0.0,
                )
            sums += g
            if LARGEST > 0:
                packed = store_eight(g, du, at, both, packed, part, LARGEST)
            else:
                tl.store(du + at, g.to(du.dtype.element_ty), mask=both)
        if LARGEST > 0:
            store_turned(packed, du_t, four, column, inside, span)
    tl.store(
        partial + tl.program_id(0) * SIZE + column, tl.sum(sums, 0) * back, mask=inside
    )


@triton.jit(do_not_specialize=["tokens"])  # one compilation for all batches
def cast_kernel(
    x, stride, out, out_t, partial, bound, seed, tokens, span, first,
    SIZE: tl.constexpr, WIDTH: tl.constexpr, DROPPED: tl.constexpr, LARGEST: tl.constexpr, SUMMED: tl.constexpr,
    FOURS: tl.constexpr, COLUMNS: tl.constexpr, TIMES: tl.constexpr,
):  # fmt: skip
    """(tokens, SIZE) → eight bits, dropped out if so wanted, as columns `first` … of a table WIDTH wide.

    With SUMMED, `partial` (programs along the rows, SIZE) gets shares of the sum over all tokens.
    """
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < SIZE
    more = 4294967296.0 / (4294967296 - DROPPED) * LARGEST / tl.load(bound)
    if DROPPED > 0:
        start, factor = seeds_at(seed)
    sums = tl.zeros((FOURS, COLUMNS), tl.float32)
    for time in range(TIMES):
        four = (tl.program_id(0) * TIMES + time) * FOURS + tl.arange(0, FOURS)
        packed = tl.zeros((FOURS, COLUMNS), tl.uint32)
        for part in tl.static_range(4):
            row = four * 4 + part
            both = (row < tokens)[:, None] & inside[None, :]
            value = tl.load(
                x + row[:, None].to(tl.int64) * stride + column[None, :],
                mask=both,
                other=0.0,
            )
            value = value.to(tl.float32)
            if SUMMED:
                sums += value
            value = value * more
            if DROPPED > 0:
                value = tl.where(
                    is_kept(
                        row[:, None] * SIZE, column[None, :], start, factor, DROPPED
                    ),
                    value,
                    0.0,
                )
            at = row[:, None].to(tl.int64) * WIDTH + first + column[None, :]
            packed = store_eight(value, out, at, both, packed, part, LARGEST)
        store_turned(packed, out_t, four, first + column, inside, span)
    if SUMMED:
        tl.store(
            partial + tl.program_id(0) * SIZE + column, tl.sum(sums, 0), mask=inside
        )
