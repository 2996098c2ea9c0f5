"""Triton kernels of the softmax over a long memory, with dropout: rows of thousands of scores, in memory."""
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from whichsense.models.seq2seq.fused.elementwise_kernels import is_kept, seeds_at


@triton.jit
def softmax_forward_kernel(
    scores, weights, levels, factors, masses, lengths, seed, stride, span, scale,
    DROPPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row: weights beside its largest, those that dropout takes as zeros; what makes them shares, and their sum."""
    row = tl.program_id(0)
    question = tl.program_id(1)
    line = question * tl.num_programs(0) + row
    start, factor = seeds_at(seed)
    length = tl.load(lengths + question)
    at = question.to(tl.int64) * stride + row.to(tl.int64) * span
    lane = tl.arange(0, BLOCK)
    high = tl.full((BLOCK,), -float("inf"), tl.float32)
    for first in range(0, length, BLOCK):
        s = tl.load(
            scores + at + first + lane, mask=first + lane < length, other=-float("inf")
        )
        high = tl.maximum(high, s.to(tl.float32))
    top = tl.max(high, 0) * scale  # scale is positive
    mass = tl.zeros((BLOCK,), tl.float32)
    left = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, span, BLOCK):
        column = first + lane
        s = tl.load(scores + at + column, mask=column < length, other=-float("inf")).to(
            tl.float32
        )
        p = tl.exp2(s * scale - top)
        mass += p
        if DROPPED > 0:
            p = tl.where(is_kept(line * span, column, start, factor, DROPPED), p, 0.0)
            left += p
        tl.store(
            weights + at + column, p.to(weights.dtype.element_ty), mask=column < span
        )
    whole = tl.sum(mass, 0)
    share = (4294967296.0 / (4294967296 - DROPPED)) / whole
    tl.store(levels + line, top + tl.log2(whole))
    tl.store(factors + line, share)
    tl.store(masses + line, tl.sum(left, 0) * share if DROPPED > 0 else 1.0)


@triton.jit
def softmax_backward_kernel(
    scores, dweights, levels, factors, deltas, lifts, lengths, seed, stride, span, scale, plain_scale,
    DROPPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Part of a row: the scores become their gradients; nothing behind the last token."""
    row = tl.program_id(1)
    question = tl.program_id(2)
    line = question * tl.num_programs(1) + row
    start, factor = seeds_at(seed)
    length = tl.load(lengths + question)
    at = question.to(tl.int64) * stride + row.to(tl.int64) * span
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.load(scores + at + column, mask=column < length, other=-float("inf")).to(
        tl.float32
    )
    g = tl.load(
        dweights + line.to(tl.int64) * span + column, mask=column < length, other=0.0
    ).to(tl.float32)
    p = tl.exp2(s * scale - tl.load(levels + line))
    g = (g / tl.load(factors + line) + tl.load(lifts + line)) * (
        4294967296.0 / (4294967296 - DROPPED)
    )
    if DROPPED > 0:
        g = tl.where(is_kept(line * span, column, start, factor, DROPPED), g, 0.0)
    g = p * (g - tl.load(deltas + line)) * plain_scale
    tl.store(scores + at + column, g.to(scores.dtype.element_ty), mask=column < span)


@triton.jit
def copied_product_kernel(
    x, into, other, lifts, masses, products, x_question, x_head, x_place, into_question,
    HEADS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row of (questions, heads, length, size), copied from where it lies, times another; plus lift times mass."""
    row = tl.program_id(0)
    question = tl.program_id(1).to(tl.int64)
    rows = tl.num_programs(0)
    length = rows // HEADS
    column = tl.arange(0, BLOCK)
    inside = column < SIZE
    at = (
        question * x_question
        + (row // length).to(tl.int64) * x_head
        + (row % length).to(tl.int64) * x_place
    )
    value = tl.load(x + at + column, mask=inside, other=0.0)
    tl.store(into + question * into_question + row * SIZE + column, value, mask=inside)
    line = question * rows + row
    seen = tl.load(other + line * SIZE + column, mask=inside, other=0.0)
    product = tl.sum(value.to(tl.float32) * seen.to(tl.float32), 0)
    tl.store(products + line, product + tl.load(lifts + line) * tl.load(masses + line))
