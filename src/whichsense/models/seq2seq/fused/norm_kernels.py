"""Triton kernels of LayerNorms: of a residual sum, and of the embeddings before the first layer."""
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from whichsense.models.seq2seq.fused.elementwise_kernels import is_kept, seeds_at


@triton.jit(do_not_specialize=["tokens"])  # one compilation for all batches
def norm_forward_kernel(
    x, change, weight, bias, y, total, mean, spread, bounds, seed, tokens, epsilon,
    SIZE: tl.constexpr, DROPPED: tl.constexpr, BOUNDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y = norm(x + dropout(change)); the sum, mean and 1/deviation are kept for the way back."""
    column = tl.arange(0, BLOCK)
    inside = column < SIZE
    far = tl.full((), SIZE, tl.int64)
    thin = tl.full((), SIZE, tl.uint32)
    start, factor = seeds_at(seed)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    largest = tl.zeros((BLOCK,), tl.float32)
    longest = 0.0
    for row in range(tl.program_id(0), tokens, tl.num_programs(0)):
        at = row * far + column
        added = tl.load(change + at, mask=inside, other=0.0).to(tl.float32)
        if DROPPED > 0:
            keep = is_kept(row * thin, column, start, factor, DROPPED)
            added = tl.where(keep, added * (4294967296.0 / (4294967296 - DROPPED)), 0.0)
        s = (tl.load(x + at, mask=inside, other=0.0).to(tl.float32) + added).to(
            total.dtype.element_ty
        )
        tl.store(total + at, s, mask=inside)
        s = s.to(tl.float32)
        middle = tl.sum(s, 0) / SIZE
        off = tl.where(inside, s - middle, 0.0)
        rate = tl.rsqrt(tl.sum(off * off, 0) / SIZE + epsilon)
        out = off * rate * w + b
        tl.store(mean + row, middle)
        tl.store(spread + row, rate)
        tl.store(y + at, out.to(y.dtype.element_ty), mask=inside)
        if BOUNDED:
            largest = tl.maximum(largest, tl.abs(out))
            longest = tl.maximum(longest, tl.sum(out * out, 0))
    if BOUNDED:
        tl.atomic_max(bounds, tl.max(largest, 0))
        tl.atomic_max(bounds + 1, tl.sqrt(longest))


@triton.jit(do_not_specialize=["tokens"])  # one compilation for all batches
def norm_backward_kernel(
    dy, dy2, total, mean, spread, weight, dtotal, dchange, partial, bounds, seed, tokens,
    SIZE: tl.constexpr, DROPPED: tl.constexpr, BOUNDED: tl.constexpr, TWO: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of the sum, and of what was dropped out and added, from one or two gradients of the norm's output.

    `partial` (programs, 3, size) gets each program's share of the gradients of weight, bias and of the bias that went
    into `change`. Where bounds are wanted, the casting kernel repeats the dropout, and `dchange` is not written.
    """
    column = tl.arange(0, BLOCK)
    inside = column < SIZE
    far = tl.full((), SIZE, tl.int64)
    thin = tl.full((), SIZE, tl.uint32)
    start, factor = seeds_at(seed)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK,), tl.float32)
    dbias = tl.zeros((BLOCK,), tl.float32)
    dadded = tl.zeros((BLOCK,), tl.float32)
    largest = tl.zeros((BLOCK,), tl.float32)
    longest = 0.0
    for row in range(tl.program_id(0), tokens, tl.num_programs(0)):
        at = row * far + column
        g = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        if TWO:
            g += tl.load(dy2 + at, mask=inside, other=0.0).to(tl.float32)
        s = tl.load(total + at, mask=inside, other=0.0).to(tl.float32)
        rate = tl.load(spread + row)
        unit = tl.where(inside, (s - tl.load(mean + row)) * rate, 0.0)
        dweight += g * unit
        dbias += g
        gw = g * w
        along = tl.sum(gw * unit, 0) / SIZE
        even = tl.sum(gw, 0) / SIZE
        d = (gw - even - unit * along) * rate
        d = tl.where(inside, d, 0.0).to(dtotal.dtype.element_ty)
        tl.store(dtotal + at, d, mask=inside)
        d = d.to(tl.float32)
        if DROPPED > 0:
            keep = is_kept(row * thin, column, start, factor, DROPPED)
            d = tl.where(keep, d * (4294967296.0 / (4294967296 - DROPPED)), 0.0)
        dadded += d
        if BOUNDED:
            largest = tl.maximum(largest, tl.abs(d))
            longest = tl.maximum(longest, tl.sum(d * d, 0))
        else:
            tl.store(dchange + at, d.to(dchange.dtype.element_ty), mask=inside)
    own = partial + tl.program_id(0) * 3 * SIZE + column
    tl.store(own, dweight, mask=inside)
    tl.store(own + SIZE, dbias, mask=inside)
    tl.store(own + 2 * SIZE, dadded, mask=inside)
    if BOUNDED:
        tl.atomic_max(bounds, tl.max(largest, 0))
        tl.atomic_max(bounds + 1, tl.sqrt(longest))


@triton.jit(do_not_specialize=["tokens"])  # one compilation for all batches
def embedding_forward_kernel(
    ids, position, words, places, weight, bias, y, total, mean, spread, bounds, seed, tokens,
    word_scale, offset, epsilon,
    SIZE: tl.constexpr, DROPPED: tl.constexpr, BOUNDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y = dropout(norm(word + place)); the sum, mean and 1/deviation are kept for the way back."""
    column = tl.arange(0, BLOCK)
    inside = column < SIZE
    far = tl.full((), SIZE, tl.int64)
    thin = tl.full((), SIZE, tl.uint32)
    start, factor = seeds_at(seed)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    largest = tl.zeros((BLOCK,), tl.float32)
    longest = 0.0
    for row in range(tl.program_id(0), tokens, tl.num_programs(0)):
        word = tl.load(ids + row).to(tl.int64) * far
        place = (tl.load(position + row) + offset).to(tl.int64) * far
        s = (
            tl.load(words + word + column, mask=inside, other=0.0).to(tl.float32)
            * word_scale
        )
        s += tl.load(places + place + column, mask=inside, other=0.0).to(tl.float32)
        s = s.to(total.dtype.element_ty)
        at = row * far + column
        tl.store(total + at, s, mask=inside)
        s = s.to(tl.float32)
        middle = tl.sum(s, 0) / SIZE
        off = tl.where(inside, s - middle, 0.0)
        rate = tl.rsqrt(tl.sum(off * off, 0) / SIZE + epsilon)
        out = (off * rate * w + b) * (4294967296.0 / (4294967296 - DROPPED))
        if DROPPED > 0:
            out = tl.where(
                is_kept(row * thin, column, start, factor, DROPPED), out, 0.0
            )
        tl.store(mean + row, middle)
        tl.store(spread + row, rate)
        tl.store(y + at, out.to(y.dtype.element_ty), mask=inside)
        if BOUNDED:
            out = tl.where(inside, out, 0.0)
            largest = tl.maximum(largest, tl.abs(out))
            longest = tl.maximum(longest, tl.sum(out * out, 0))
    if BOUNDED:
        tl.atomic_max(bounds, tl.max(largest, 0))
        tl.atomic_max(bounds + 1, tl.sqrt(longest))


@triton.jit(do_not_specialize=["tokens"])  # one compilation for all batches
def embedding_backward_kernel(
    dy, dy2, total, mean, spread, weight, dtotal, partial, seed, tokens,
    SIZE: tl.constexpr, DROPPED: tl.constexpr, TWO: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of the sum, from one or two of y; `partial` (programs, 2, size): shares of weight's and bias's."""
    column = tl.arange(0, BLOCK)
    inside = column < SIZE
    far = tl.full((), SIZE, tl.int64)
    thin = tl.full((), SIZE, tl.uint32)
    start, factor = seeds_at(seed)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK,), tl.float32)
    dbias = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), tokens, tl.num_programs(0)):
        at = row * far + column
        g = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        if TWO:
            g += tl.load(dy2 + at, mask=inside, other=0.0).to(tl.float32)
        g = g * (4294967296.0 / (4294967296 - DROPPED))
        if DROPPED > 0:
            g = tl.where(is_kept(row * thin, column, start, factor, DROPPED), g, 0.0)
        rate = tl.load(spread + row)
        s = tl.load(total + at, mask=inside, other=0.0).to(tl.float32)
        unit = tl.where(inside, (s - tl.load(mean + row)) * rate, 0.0)
        dweight += g * unit
        dbias += g
        gw = g * w
        d = (gw - tl.sum(gw, 0) / SIZE - unit * (tl.sum(gw * unit, 0) / SIZE)) * rate
        tl.store(dtotal + at, d, mask=inside)
    own = partial + tl.program_id(0) * 2 * SIZE + column
    tl.store(own, dweight, mask=inside)
    tl.store(own + SIZE, dbias, mask=inside)
