"""Triton kernels of the encoder's training step."""

# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

# Triton kernels of what lies between the matrix products: GELU and dropout.
#
# Only loaded where there is a GPU (Triton comes with PyTorch for CUDA); `fused_reference.py` says the
# same in PyTorch.


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
def thinned(value, line, place, start, factor, DROPPED: tl.constexpr):
    """What dropout keeps, scaled up by what it drops; zeros elsewhere."""
    if DROPPED > 0:
        keep = is_kept(line, place, start, factor, DROPPED)
        more: tl.constexpr = 4294967296.0 / (4294967296 - DROPPED)
        value = tl.where(keep, value * more, 0.0)
    return value


@triton.jit
def normal_share(u, square):
    """Φ(u) as 1 / (1 + 2^-p(u)), fitted: GELU is right to 2.5e-5, its slope to 5e-5."""
    near = tl.minimum(square, 30.25)
    p = u * ((-0.00101448323 * near + 0.106776737) * near + 2.30112047)
    return 1.0 / (1.0 + tl.exp2(-p))


@triton.jit(do_not_specialize=["tokens"])  # one compilation for all batches
def gelu_forward_kernel(
    u, h, seed, tokens,
    SIZE: tl.constexpr, DROPPED: tl.constexpr, FOURS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """h = dropout(gelu(u))."""
    four = tl.program_id(0) * FOURS + tl.arange(0, FOURS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < SIZE
    start, factor = seeds_at(seed)
    for part in tl.static_range(4):
        row = four * 4 + part
        at = row[:, None].to(tl.int64) * SIZE + column[None, :]
        both = (row < tokens)[:, None] & inside[None, :]
        value = tl.load(u + at, mask=both, other=0.0).to(tl.float32)
        value = value * normal_share(value, value * value)
        value = thinned(value, row[:, None] * SIZE, column[None, :], start, factor, DROPPED)
        tl.store(h + at, value.to(h.dtype.element_ty), mask=both)


@triton.jit(do_not_specialize=["tokens"])  # one compilation for all batches
def gelu_backward_kernel(
    dh, u, du, partial, seed, tokens,
    SIZE: tl.constexpr, DROPPED: tl.constexpr, FOURS: tl.constexpr, COLUMNS: tl.constexpr, TIMES: tl.constexpr,
):  # fmt: skip
    """The gradient of u; `partial` (programs along the rows, size) gets shares of its bias's gradient."""
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < SIZE
    start, factor = seeds_at(seed)
    sums = tl.zeros((FOURS, COLUMNS), tl.float32)
    for time in range(TIMES):
        four = (tl.program_id(0) * TIMES + time) * FOURS + tl.arange(0, FOURS)
        for part in tl.static_range(4):
            row = four * 4 + part
            at = row[:, None].to(tl.int64) * SIZE + column[None, :]
            both = (row < tokens)[:, None] & inside[None, :]
            value = tl.load(u + at, mask=both, other=0.0).to(tl.float32)
            g = tl.load(dh + at, mask=both, other=0.0).to(tl.float32)
            square = value * value
            bell = tl.exp2(square * -0.7213475204444817) * 0.3989422804014327
            g = g * (normal_share(value, square) + value * bell)
            g = thinned(g, row[:, None] * SIZE, column[None, :], start, factor, DROPPED)
            sums += g
            tl.store(du + at, g.to(du.dtype.element_ty), mask=both)
    tl.store(partial + tl.program_id(0) * SIZE + column, tl.sum(sums, 0), mask=inside)


# Triton kernels of the LayerNorm of a residual sum.


@triton.jit(do_not_specialize=["tokens"])  # one compilation for all batches
def norm_forward_kernel(
    x, change, weight, bias, y, total, mean, spread, seed, tokens, epsilon,
    SIZE: tl.constexpr, DROPPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y = norm(x + dropout(change)); the sum, mean and 1/deviation are kept for the way back."""
    column = tl.arange(0, BLOCK)
    inside = column < SIZE
    far = tl.full((), SIZE, tl.int64)
    thin = tl.full((), SIZE, tl.uint32)
    start, factor = seeds_at(seed)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), tokens, tl.num_programs(0)):
        at = row * far + column
        added = tl.load(change + at, mask=inside, other=0.0).to(tl.float32)
        added = thinned(added, row * thin, column, start, factor, DROPPED)
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


@triton.jit(do_not_specialize=["tokens"])  # one compilation for all batches
def norm_backward_kernel(
    dy, dy2, total, mean, spread, weight, dtotal, dchange, partial, seed, tokens,
    SIZE: tl.constexpr, DROPPED: tl.constexpr, TWO: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The gradient of the sum, and of what was dropped out and added, from one or two gradients of the norm's output.

    `partial` (programs, 3, size) gets each program's share of the gradients of weight, bias and of the bias that went
    into `change`.
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
        d = thinned(d.to(tl.float32), row * thin, column, start, factor, DROPPED)
        dadded += d
        tl.store(dchange + at, d.to(dchange.dtype.element_ty), mask=inside)
    own = partial + tl.program_id(0) * 3 * SIZE + column
    tl.store(own, dweight, mask=inside)
    tl.store(own + SIZE, dbias, mask=inside)
    tl.store(own + 2 * SIZE, dadded, mask=inside)


# Triton kernels of attention within short sequences: a sequence's head fits into one program, there
# and back.

QUERIES: tl.constexpr = tl.constexpr(64)  # in a block


@triton.jit
def place_in(starts, HEADS: tl.constexpr):
    """Of a program: its block, sequence and head, the sequence's first token and length, the number of all tokens."""
    sequence = tl.program_id(1) // HEADS
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    tokens = tl.load(starts + tl.num_programs(1) // HEADS)
    return tl.program_id(0), sequence, tl.program_id(1) % HEADS, begin, length, tokens


@triton.jit
def load_rows(base, row, step, lane, length):
    """Some rows of a matrix; zeros behind the last of `length`."""
    at = row[:, None] * step + lane[None, :]
    return tl.load(base + at, mask=(row < length)[:, None], other=0.0)


@triton.jit(do_not_specialize=["longest"])
def attention_forward_kernel(
    qkv, out, levels, starts, seed, longest, scale,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, DROPPED: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """softmax(q kᵀ) v of one block of queries; `levels` (heads, tokens): log2 of each softmax's sum."""
    block, _, head, begin, length, tokens = place_in(starts, HEADS)
    start, factor = seeds_at(seed)
    if block * QUERIES < length:
        row = block * QUERIES + tl.arange(0, QUERIES)
        lane = tl.arange(0, WIDTH)
        step: tl.constexpr = 3 * HEADS * WIDTH
        base = qkv + begin.to(tl.int64) * step + head * WIDTH
        q = load_rows(base, row, step, lane, length)
        high = tl.full((QUERIES,), -float("inf"), tl.float32)
        mass = tl.zeros((QUERIES,), tl.float32)
        line = (tl.program_id(1) * longest + row) * longest
        found = tl.zeros((QUERIES, WIDTH), tl.float32)
        for first in range(0, length, KEYS):
            key = first + tl.arange(0, KEYS)
            there = key < length
            k = load_rows(base + HEADS * WIDTH, key, step, lane, length)
            s = tl.where(there[None, :], tl.dot(q, tl.trans(k)), -float("inf"))
            new = tl.maximum(high, tl.max(s, 1) * scale)  # scale is positive
            p = tl.exp2(s * scale - new[:, None])
            fade = tl.exp2(high - new)
            mass = mass * fade + tl.sum(p, 1)
            if DROPPED > 0:
                p = tl.where(is_kept(line[:, None], key[None, :], start, factor, DROPPED), p, 0.0)
            v = load_rows(base + 2 * HEADS * WIDTH, key, step, lane, length)
            found = tl.dot(p.to(v.dtype), v, found * fade[:, None])
            high = new
        found = found * ((4294967296.0 / (4294967296 - DROPPED)) / mass)[:, None]
        at = (begin + row[:, None]).to(tl.int64) * (HEADS * WIDTH) + head * WIDTH + lane[None, :]
        tl.store(out + at, found.to(out.dtype.element_ty), mask=(row < length)[:, None])
        tl.store(
            levels + head.to(tl.int64) * tokens + begin + row,
            high + tl.log2(mass),
            mask=row < length,
        )


@triton.jit(do_not_specialize=["longest"])
def query_gradient_kernel(
    qkv, out, dout, levels, deltas, dqkv, sums, starts, seed, longest, scale, plain_scale,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, DROPPED: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """The gradient of a block of queries; `deltas` (heads, tokens): how much of each row's gradient is its mean.

    `sums` (sequences × blocks, queries and values, heads × width) gets the block's share of the biases' gradients.
    """
    block, sequence, head, begin, length, tokens = place_in(starts, HEADS)
    start, factor = seeds_at(seed)
    step: tl.constexpr = 3 * HEADS * WIDTH
    side: tl.constexpr = HEADS * WIDTH
    lane = tl.arange(0, WIDTH)
    if block * QUERIES < length:
        row = block * QUERIES + tl.arange(0, QUERIES)
        there = (row < length)[:, None]
        base = qkv + begin.to(tl.int64) * step + head * WIDTH
        apart = begin.to(tl.int64) * side + head * WIDTH
        q = load_rows(base, row, step, lane, length)
        g = load_rows(dout + apart, row, side, lane, length)
        o = load_rows(out + apart, row, side, lane, length)
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
            k = load_rows(base + side, key, step, lane, length)
            v = load_rows(base + 2 * side, key, step, lane, length)
            p = tl.exp2(tl.dot(q, tl.trans(k)) * scale - level[:, None])
            dp = tl.dot(g, tl.trans(v))
            if DROPPED > 0:
                dp = tl.where(is_kept(line[:, None], key[None, :], start, factor, DROPPED), dp, 0.0)
            dq = tl.dot(
                (p * (dp - delta[:, None])).to(k.dtype), k, dq
            )  # keys behind the end are zeros
        dq = dq * (plain_scale * (4294967296.0 / (4294967296 - DROPPED)))
        tl.store(dqkv + begin.to(tl.int64) * step + head * WIDTH + row[:, None] * step + lane[None, :],
                 dq.to(dqkv.dtype.element_ty), mask=there)  # fmt: skip
        of_block = (sequence * tl.num_programs(0) + block).to(tl.int64) * (2 * side) + head * WIDTH
        tl.store(sums + of_block + lane, tl.sum(dq, 0))  # rows behind the end are zeros


@triton.jit(do_not_specialize=["longest"])
def key_gradient_kernel(
    qkv, dout, levels, deltas, dqkv, sums, starts, seed, longest, scale, plain_scale,
    HEADS: tl.constexpr, WIDTH: tl.constexpr, DROPPED: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of keys and values. The keys' bias has none: it adds the same to all scores of a row."""
    block, sequence, head, begin, length, tokens = place_in(starts, HEADS)
    start, factor = seeds_at(seed)
    step: tl.constexpr = 3 * HEADS * WIDTH
    side: tl.constexpr = HEADS * WIDTH
    lane = tl.arange(0, WIDTH)
    if block * QUERIES < length:
        inner = tl.arange(0, QUERIES)
        key = block * QUERIES + inner
        there = (key < length)[:, None]
        base = qkv + begin.to(tl.int64) * step + head * WIDTH
        given = dout + begin.to(tl.int64) * side + head * WIDTH
        of_head = head * tokens.to(tl.int64) + begin
        at = key[:, None] * step + lane[None, :]
        k = load_rows(base + side, key, step, lane, length)
        v = load_rows(base + 2 * side, key, step, lane, length)
        dk = tl.zeros((QUERIES, WIDTH), tl.float32)
        dv = tl.zeros((QUERIES, WIDTH), tl.float32)
        for top in range(0, length, QUERIES):
            row = top + inner
            q = load_rows(base, row, step, lane, length)
            g = load_rows(given, row, side, lane, length)
            level = tl.load(levels + of_head + row, mask=row < length, other=float("inf"))
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
        dk = tl.where(there, dk * (plain_scale * (4294967296.0 / (4294967296 - DROPPED))), 0.0)
        dv = tl.where(there, dv * (4294967296.0 / (4294967296 - DROPPED)), 0.0)
        grads = dqkv + begin.to(tl.int64) * step + head * WIDTH
        tl.store(grads + side + at, dk.to(dqkv.dtype.element_ty), mask=there)
        tl.store(grads + 2 * side + at, dv.to(dqkv.dtype.element_ty), mask=there)
        of_block = (
            (sequence * tl.num_programs(0) + block).to(tl.int64) * (2 * side) + side + head * WIDTH
        )
        tl.store(sums + of_block + lane, tl.sum(dv, 0))
