"""Triton kernels of attention within short sequences: a sequence's head fits into one program, there and back."""
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from whichsense.models.seq2seq.fused.elementwise_kernels import is_kept, seeds_at

QUERIES: tl.constexpr = tl.constexpr(64)  # in a block
SLOTS: tl.constexpr = tl.constexpr(
    64
)  # for the largest value: one alone would be a queue


@triton.jit(do_not_specialize=["longest"])
def attention_forward_kernel(
    qkv, out, levels, starts, bound, seed, longest, scale,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, DROPPED: tl.constexpr, BOUNDED: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """softmax(q kᵀ) v of one block of queries; `levels` (heads, tokens): log2 of each softmax's sum."""
    block = tl.program_id(0)
    sequence = tl.program_id(1) // HEADS
    head = tl.program_id(1) % HEADS
    start, factor = seeds_at(seed)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    if block * QUERIES < length:
        tokens = tl.load(starts + tl.num_programs(1) // HEADS)
        row = block * QUERIES + tl.arange(0, QUERIES)
        lane = tl.arange(0, WIDTH)
        step: tl.constexpr = 3 * HEADS * WIDTH
        base = qkv + begin.to(tl.int64) * step + head * WIDTH
        q = tl.load(
            base + row[:, None] * step + lane[None, :],
            mask=(row < length)[:, None],
            other=0.0,
        )
        high = tl.full((QUERIES,), -float("inf"), tl.float32)
        mass = tl.zeros((QUERIES,), tl.float32)
        line = (tl.program_id(1) * longest + row) * longest
        found = tl.zeros((QUERIES, WIDTH), tl.float32)
        for first in range(0, length, KEYS):
            key = first + tl.arange(0, KEYS)
            there = key < length
            k = tl.load(
                base + HEADS * WIDTH + key[:, None] * step + lane[None, :],
                mask=there[:, None],
                other=0.0,
            )
            s = tl.where(there[None, :], tl.dot(q, tl.trans(k)), -float("inf"))
            new = tl.maximum(high, tl.max(s, 1) * scale)  # scale is positive
            p = tl.exp2(s * scale - new[:, None])
            fade = tl.exp2(high - new)
            mass = mass * fade + tl.sum(p, 1)
            if DROPPED > 0:
                p = tl.where(
                    is_kept(line[:, None], key[None, :], start, factor, DROPPED), p, 0.0
                )
            v = tl.load(
                base + 2 * HEADS * WIDTH + key[:, None] * step + lane[None, :],
                mask=there[:, None],
                other=0.0,
            )
            found = tl.dot(p.to(v.dtype), v, found * fade[:, None])
            high = new
        found = found * ((4294967296.0 / (4294967296 - DROPPED)) / mass)[:, None]
        at = (
            (begin + row[:, None]).to(tl.int64) * (HEADS * WIDTH)
            + head * WIDTH
            + lane[None, :]
        )
        tl.store(out + at, found.to(out.dtype.element_ty), mask=(row < length)[:, None])
        tl.store(
            levels + head.to(tl.int64) * tokens + begin + row,
            high + tl.log2(mass),
            mask=row < length,
        )
        if BOUNDED:
            tl.atomic_max(
                bound + tl.program_id(1) % SLOTS,
                tl.max(tl.where((row < length)[:, None], tl.abs(found), 0.0)),
            )


@triton.jit(do_not_specialize=["longest"])
def query_gradient_kernel(
    qkv, out, dout, levels, deltas, dqkv, sums, starts, bound, seed, longest, scale, plain_scale,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, DROPPED: tl.constexpr, BOUNDED: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """The gradient of a block of queries; `deltas` (heads, tokens): how much of each row's gradient is its mean.

    `sums` (sequences × blocks, queries and values, heads × width) gets the block's share of the biases' gradients.
    """
    block = tl.program_id(0)
    sequence = tl.program_id(1) // HEADS
    head = tl.program_id(1) % HEADS
    start, factor = seeds_at(seed)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    step: tl.constexpr = 3 * HEADS * WIDTH
    side: tl.constexpr = HEADS * WIDTH
    lane = tl.arange(0, WIDTH)
    if block * QUERIES < length:
        tokens = tl.load(starts + tl.num_programs(1) // HEADS)
        inner = tl.arange(0, QUERIES)
        row = block * QUERIES + inner
        there = (row < length)[:, None]
        base = qkv + begin.to(tl.int64) * step + head * WIDTH
        near = row[:, None] * side + lane[None, :]
        apart = begin.to(tl.int64) * side + head * WIDTH
        q = tl.load(base + row[:, None] * step + lane[None, :], mask=there, other=0.0)
        g = tl.load(dout + apart + near, mask=there, other=0.0)
        o = tl.load(out + apart + near, mask=there, other=0.0)
        of_row = head * tokens.to(tl.int64) + begin + row
        level = tl.load(levels + of_row, mask=row < length, other=float("inf"))
        delta = tl.sum(g.to(tl.float32) * o.to(tl.float32), 1) * (
            (4294967296 - DROPPED) / 4294967296
        )
        tl.store(deltas + of_row, delta, mask=row < length)
        dq = tl.zeros((QUERIES, WIDTH), tl.float32)
        line = (tl.program_id(1) * longest + row) * longest
        for first in range(0, length, KEYS):
            key = first + tl.arange(0, KEYS)
            at = key[:, None] * step + lane[None, :]
            k = tl.load(base + side + at, mask=(key < length)[:, None], other=0.0)
            v = tl.load(base + 2 * side + at, mask=(key < length)[:, None], other=0.0)
            p = tl.exp2(tl.dot(q, tl.trans(k)) * scale - level[:, None])
            dp = tl.dot(g, tl.trans(v))
            if DROPPED > 0:
                dp = tl.where(
                    is_kept(line[:, None], key[None, :], start, factor, DROPPED),
                    dp,
                    0.0,
                )
            dq = tl.dot(
                (p * (dp - delta[:, None])).to(k.dtype), k, dq
            )  # keys behind the end are zeros
        dq = dq * (plain_scale * (4294967296.0 / (4294967296 - DROPPED)))
        tl.store(dqkv + begin.to(tl.int64) * step + head * WIDTH + row[:, None] * step + lane[None, :],
                 dq.to(dqkv.dtype.element_ty), mask=there)  # fmt: skip
        of_block = (sequence * tl.num_programs(0) + block).to(tl.int64) * (
            2 * side
        ) + head * WIDTH
        tl.store(sums + of_block + lane, tl.sum(dq, 0))  # rows behind the end are zeros
        if BOUNDED:
            tl.atomic_max(bound + tl.program_id(1) % SLOTS, tl.max(tl.abs(dq)))


@triton.jit(do_not_specialize=["longest"])
def key_gradient_kernel(
    qkv, dout, levels, deltas, dqkv, sums, starts, bound, seed, longest, scale, plain_scale,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, DROPPED: tl.constexpr, BOUNDED: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of keys and values. The keys' bias has none: it adds the same to all scores of a row."""
    block = tl.program_id(0)
    sequence = tl.program_id(1) // HEADS
    head = tl.program_id(1) % HEADS
    start, factor = seeds_at(seed)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    step: tl.constexpr = 3 * HEADS * WIDTH
    side: tl.constexpr = HEADS * WIDTH
    lane = tl.arange(0, WIDTH)
    if block * QUERIES < length:
        tokens = tl.load(starts + tl.num_programs(1) // HEADS)
        inner = tl.arange(0, QUERIES)
        key = block * QUERIES + inner
        there = (key < length)[:, None]
        base = qkv + begin.to(tl.int64) * step + head * WIDTH
        given = dout + begin.to(tl.int64) * side + head * WIDTH
        of_head = head * tokens.to(tl.int64) + begin
        at = key[:, None] * step + lane[None, :]
        k = tl.load(base + side + at, mask=there, other=0.0)
        v = tl.load(base + 2 * side + at, mask=there, other=0.0)
        dk = tl.zeros((QUERIES, WIDTH), tl.float32)
        dv = tl.zeros((QUERIES, WIDTH), tl.float32)
        for top in range(0, length, QUERIES):
            row = top + inner
            q = tl.load(
                base + row[:, None] * step + lane[None, :],
                mask=(row < length)[:, None],
                other=0.0,
            )
            g = tl.load(
                given + row[:, None] * side + lane[None, :],
                mask=(row < length)[:, None],
                other=0.0,
            )
            level = tl.load(
                levels + of_head + row, mask=row < length, other=float("inf")
            )
            delta = tl.load(deltas + of_head + row, mask=row < length, other=0.0)
            p = tl.exp2(tl.dot(q, tl.trans(k)) * scale - level[:, None])
            dp = tl.dot(g, tl.trans(v))
            shown = p
            if DROPPED > 0:
                line = (tl.program_id(1) * longest + row) * longest
                keep = is_kept(line[:, None], key[None, :], start, factor, DROPPED)
                shown = tl.where(keep, p, 0.0)
                dp = tl.where(keep, dp, 0.0)
            dv = tl.dot(tl.trans(shown.to(g.dtype)), g, dv)
            dk = tl.dot(tl.trans((p * (dp - delta[:, None])).to(g.dtype)), q, dk)
        dk = tl.where(
            there, dk * (plain_scale * (4294967296.0 / (4294967296 - DROPPED))), 0.0
        )
        dv = tl.where(there, dv * (4294967296.0 / (4294967296 - DROPPED)), 0.0)
        grads = dqkv + begin.to(tl.int64) * step + head * WIDTH
        tl.store(grads + side + at, dk.to(dqkv.dtype.element_ty), mask=there)
        tl.store(grads + 2 * side + at, dv.to(dqkv.dtype.element_ty), mask=there)
        of_block = (
            (sequence * tl.num_programs(0) + block).to(tl.int64) * (2 * side)
            + side
            + head * WIDTH
        )
        tl.store(sums + of_block + lane, tl.sum(dv, 0))
        if BOUNDED:
            tl.atomic_max(
                bound + tl.program_id(1) % SLOTS,
                tl.maximum(tl.max(tl.abs(dk)), tl.max(tl.abs(dv))),
            )
