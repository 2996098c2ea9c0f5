"""One encoder layer of BART's kind, there and back, as one step of the gradient's graph.

Between its four products there is one kernel each, and what the way back needs is kept as the products read it. In
eight bits every operand is cast with a scale from a bound that is known before: the largest number and the longest row
that the last kernel saw, and Cauchy-Schwarz for what a matrix makes of them. Nothing is carried from step to step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from whichsense.models.seq2seq.fused.plan import (
    Operand,
    Plan,
    input_gradient,
    kernels,
    product,
    safe,
    weight_gradient,
)
from whichsense.models.seq2seq.fused.precision import BACKWARD, FORWARD, Eight
from whichsense.models.seq2seq.ragged import RaggedRows
from whichsense.models.seq2seq.weights import EncoderWeights, FeedForward, SelfAttention

_ROUNDING = 1.2  # by how much a product of rounded operands may exceed the exact one, and a little more
_STEEPEST = 1.13  # slope of GELU


class _Attention(NamedTuple):
    """What the way back needs of a layer's first half."""

    x: Operand
    into: Operand
    qkv: Tensor
    seen: Tensor
    levels: Tensor
    read: Operand
    out: Operand
    norm: Tensor
    total: Tensor
    mean: Tensor
    spread: Tensor


class _Feed(NamedTuple):
    """And of its second."""

    y: Operand
    up: Operand
    inner: Tensor
    h: Operand
    down: Operand
    steepest: Tensor
    norm: Tensor
    total: Tensor
    mean: Tensor
    spread: Tensor


_Bounded = tuple[Tensor, Tensor]
"""A tensor, and its largest number and longest row (empty where nobody asks)."""


def _attention_forward(
    x: Tensor,
    bounds: Tensor,
    w: SelfAttention,
    rows: RaggedRows,
    seeds: Tensor,
    plan: Plan,
) -> tuple[_Bounded, _Attention]:
    run = kernels(x)
    dtype = x.dtype
    into, out = (plan.weight(one.weight, dtype) for one in (w.joined, w.out))
    x_ = plan.operand(x, bounds[:1], dtype)
    qkv = product(x_, into, _bias(w.joined.bias), dtype)
    seen, levels, bound = run.attention_forward(qkv, rows, seeds[0], **plan.attention)
    read = plan.operand(seen, safe(bound), dtype)
    change = product(read, out, _bias(w.out.bias), dtype)
    y, total, mean, spread, bounds = run.norm_forward(
        x,
        change,
        w.norm.weight,
        w.norm.bias,
        seeds[1],
        epsilon=plan.epsilon,
        **plan.norm,
    )
    return (y, bounds), _Attention(
        x_, into, qkv, seen, levels, read, out, w.norm.weight, total, mean, spread
    )


def _feed_forward(
    y: Tensor, bounds: Tensor, w: FeedForward, seeds: Tensor, plan: Plan
) -> tuple[_Bounded, _Feed]:
    run = kernels(y)
    dtype = y.dtype
    up, down = (plan.weight(one.weight, dtype) for one in (w.up, w.down))
    y_ = plan.operand(y, bounds[:1], dtype)
    inner = product(y_, up, _bias(w.up.bias), dtype)
    bound = None
    steepest = bounds
    more = 2**32 / (2**32 - plan.activation_dropped)
    if plan.float8:  # |Wx + b| ≤ |W| |x| + |b|, and GELU makes nothing larger
        widest = torch.linalg.vector_norm(w.up.weight, dim=1).max()
        bound = (bounds[1] * widest * _ROUNDING + _bias(w.up.bias).abs().max()) * more
        steepest = torch.linalg.vector_norm(w.down.weight, dim=0).max() * (
            _ROUNDING * _STEEPEST * more
        )
    h = run.gelu_forward(
        inner, seeds[2], dropped=plan.activation_dropped, bound=bound, kind=FORWARD
    )
    change = product(h, down, _bias(w.down.bias), dtype)
    z, total, mean, spread, bounds = run.norm_forward(
        y,
        change,
        w.norm.weight,
        w.norm.bias,
        seeds[3],
        epsilon=plan.epsilon,
        **plan.norm,
    )
    return (z, bounds), _Feed(
        y_, up, inner, h, down, steepest, w.norm.weight, total, mean, spread
    )


def _feed_backward(
    dz: tuple[Tensor, Tensor | None], kept: _Feed, seeds: Tensor, plan: Plan
) -> tuple[tuple[Tensor, Tensor], list[Tensor]]:
    """Two gradients of the half's input, to be added up, and those of its weights in their order."""
    run = kernels(dz[0])
    dtype = dz[0].dtype
    dtotal, dchange, sums, bounds = run.norm_backward(
        *dz, kept.total, kept.mean, kept.spread, kept.norm, seeds[3], **plan.norm
    )
    g = plan.gradient(dtotal, dchange, bounds[:1], seeds[3])
    dh = input_gradient(g, kept.down, dtype)
    ddown = weight_gradient(g, kept.h)
    bound = safe(bounds[1] * kept.steepest) if plan.float8 else None
    g, dbias = run.gelu_backward(
        dh,
        kept.inner,
        seeds[2],
        dropped=plan.activation_dropped,
        bound=bound,
        kind=BACKWARD,
    )
    dup = weight_gradient(g, kept.y)
    return (dtotal, input_gradient(g, kept.up, dtype)), [
        dup,
        dbias,
        ddown,
        sums[2],
        sums[0],
        sums[1],
    ]


def _attention_backward(
    dy: tuple[Tensor, Tensor],
    kept: _Attention,
    rows: RaggedRows,
    seeds: Tensor,
    plan: Plan,
) -> tuple[tuple[Tensor, Tensor], list[Tensor]]:
    run = kernels(dy[0])
    dtype = dy[0].dtype
    dtotal, dchange, sums, bounds = run.norm_backward(
        *dy, kept.total, kept.mean, kept.spread, kept.norm, seeds[1], **plan.norm
    )
    g = plan.gradient(dtotal, dchange, bounds[:1], seeds[1])
    dseen = input_gradient(g, kept.out, dtype)
    dout = weight_gradient(g, kept.read)
    dqkv, dbias, bound = run.attention_backward(
        dseen, kept.qkv, kept.seen, kept.levels, rows, seeds[0], **plan.attention
    )
    g = run.cast(dqkv, safe(bound), BACKWARD) if plan.float8 else dqkv
    dinto = weight_gradient(g, kept.x)
    return (dtotal, input_gradient(g, kept.into, dtype)), [
        dinto,
        dbias,
        dout,
        sums[2],
        sums[0],
        sums[1],
    ]


class _Layer(torch.autograd.Function):
    """(x, x again, its bounds, …, the layer's twelve tensors) → (y, y again, its bounds).

    One x is what is added to, the other what the product reads: so their gradients come back apart, and the layer
    before adds them up on the way.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, _same: Tensor, bounds: Tensor, seeds: Tensor, rows: RaggedRows, plan: Plan,
        w: EncoderWeights, *_: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        (y, bounds), first = _attention_forward(
            x, bounds, w.attention, rows, seeds, plan
        )
        (z, bounds), second = _feed_forward(y, bounds, w.feed, seeds, plan)
        ctx.plan = plan
        ctx.rows = rows[3:]
        ctx.eights = [isinstance(one, Eight) for one in (*first, *second)]
        parts = [
            part
            for one in (*first, *second)
            for part in (one[1:] if isinstance(one, Eight) else (one,))
        ]
        ctx.save_for_backward(*rows[:3], seeds, *parts)
        ctx.mark_non_differentiable(bounds)
        ctx.set_materialize_grads(False)
        return z, z.view_as(z), bounds

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        starts, place, position, seeds, *parts = ctx.saved_tensors
        rows = RaggedRows(starts, place, position, *ctx.rows)
        left = iter(parts)
        kept: list[Any] = []
        for is_eight in ctx.eights:
            one = next(left)
            kept.append(
                Eight(one, one, next(left)) if is_eight else one
            )  # nobody reads it straight any more
        first = _Attention(*kept[: len(_Attention._fields)])
        second = _Feed(*kept[len(_Attention._fields) :])
        dz = [
            gradient.contiguous() for gradient in gradients[:2] if gradient is not None
        ]
        dy, of_feed = _feed_backward(
            (dz[0], dz[1] if len(dz) > 1 else None), second, seeds, ctx.plan
        )
        dx, of_attention = _attention_backward(dy, first, rows, seeds, ctx.plan)
        return (*dx, None, None, None, None, None, *of_attention, *of_feed)


def _bias(bias: Tensor | None) -> Tensor:
    assert bias is not None  # BART has one everywhere
    return bias


def fused_layer(
    x: Tensor,
    same: Tensor,
    bounds: Tensor,
    w: EncoderWeights,
    rows: RaggedRows,
    seeds: Tensor,
    plan: Plan,
) -> tuple[Tensor, Tensor, Tensor]:
    """(tokens, size), the same again, and its bounds → these of the next layer."""
    tensors = (
        *w.attention.joined,
        *w.attention.out,
        *w.attention.norm,
        *w.feed.up,
        *w.feed.down,
        *w.feed.norm,
    )
    found: tuple[Tensor, Tensor, Tensor] = _Layer.apply(
        x, same, bounds, seeds, rows, plan, w, *tensors
    )  # type: ignore[no-untyped-call]
    return found


def fused_encoder(
    embedded: tuple[Tensor, Tensor, Tensor], layers: Sequence[EncoderWeights], rows: RaggedRows, plan: Plan, *,
    saves_memory: bool,
) -> Tensor:  # fmt: skip
    """All layers; with `saves_memory` each one's inside is computed anew on the way back."""
    x, same, bounds = embedded
    seeds = torch.randint(0, 2**32, (len(layers), 4, 2), device=x.device)
    for weights, seed in zip(layers, seeds, strict=True):
        rest = (x, same, bounds, weights, rows, seed, plan)
        x, same, bounds = (
            checkpoint(fused_layer, *rest, use_reentrant=False)
            if saves_memory
            else fused_layer(*rest)
        )
    return x
