"""The encoder's training step in few passes over memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from whichsense.lab.fused.fused_plan import (
    KernelTrials,
    Plan,
    has_kernels,
    kernels,
    weight_gradient,
)
from whichsense.models.seq2seq.network import Network
from whichsense.models.seq2seq.ragged import (
    EncoderWeights,
    FeedForward,
    Norm,
    RaggedRows,
    SelfAttention,
)

# One encoder layer of BART's kind, there and back, as one step of the gradient's graph.
#
# Between its four products there is one kernel each, and what the way back needs is kept as the
# products read it.


class _Normed(NamedTuple):
    """What the way back needs of a residual's norm."""

    total: Tensor
    mean: Tensor
    spread: Tensor
    norm: Tensor


class _Attention(NamedTuple):
    """What the way back needs of a layer's first half."""

    x: Tensor
    into: Tensor
    qkv: Tensor
    seen: Tensor
    levels: Tensor
    out: Tensor


class _Feed(NamedTuple):
    """And of its second."""

    y: Tensor
    up: Tensor
    inner: Tensor
    h: Tensor
    down: Tensor


_Pair = tuple[Tensor, Tensor | None]
"""Gradients to be added up."""


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x Wᵀ + b."""
    assert bias is not None  # BART has one everywhere
    return torch.addmm(bias.to(x.dtype), x, weight.t())


def _add_and_norm(
    x: Tensor, change: Tensor, norm: Norm, seed: Tensor, plan: Plan
) -> tuple[Tensor, _Normed]:
    y, total, mean, spread = kernels(x).norm_forward(
        x, change, *norm, seed, epsilon=plan.epsilon, dropped=plan.dropped
    )
    return y, _Normed(total, mean, spread, norm.weight)


def _attention_forward(
    x: Tensor, w: SelfAttention, rows: RaggedRows, seeds: Tensor, plan: Plan
) -> tuple[Tensor, _Attention, _Normed]:
    into, out = w.joined.weight.to(x.dtype), w.out.weight.to(x.dtype)
    qkv = _product(x, into, w.joined.bias)
    seen, levels = kernels(x).attention_forward(qkv, rows, seeds[0], **plan.attention)
    change = _product(seen, out, w.out.bias)
    y, normed = _add_and_norm(x, change, w.norm, seeds[1], plan)
    return y, _Attention(x, into, qkv, seen, levels, out), normed


def _feed_forward(
    y: Tensor, w: FeedForward, seeds: Tensor, plan: Plan
) -> tuple[Tensor, _Feed, _Normed]:
    up, down = w.up.weight.to(y.dtype), w.down.weight.to(y.dtype)
    inner = _product(y, up, w.up.bias)
    h = kernels(y).gelu_forward(inner, seeds[2], dropped=plan.activation_dropped)
    z, normed = _add_and_norm(y, _product(h, down, w.down.bias), w.norm, seeds[3], plan)
    return z, _Feed(y, up, inner, h, down), normed


def _feed_backward(
    dz: _Pair, kept: _Feed, normed: _Normed, seeds: Tensor, plan: Plan
) -> tuple[_Pair, list[Tensor]]:
    """Return two gradients of the half's input, to be added up, and those of its weights in their order."""
    run = kernels(dz[0])
    dtotal, g, sums = run.norm_backward(*dz, *normed, seeds[3], dropped=plan.dropped)
    ddown = weight_gradient(g, kept.h)
    g, dbias = run.gelu_backward(
        g @ kept.down, kept.inner, seeds[2], dropped=plan.activation_dropped
    )
    dup = weight_gradient(g, kept.y)
    return (dtotal, g @ kept.up), [dup, dbias, ddown, sums[2], sums[0], sums[1]]


def _attention_backward(
    dy: _Pair, kept: _Attention, normed: _Normed, rows: RaggedRows, seeds: Tensor, plan: Plan
) -> tuple[_Pair, list[Tensor]]:
    run = kernels(dy[0])
    dtotal, g, sums = run.norm_backward(*dy, *normed, seeds[1], dropped=plan.dropped)
    dout = weight_gradient(g, kept.seen)
    dqkv, dbias = run.attention_backward(
        g @ kept.out, kept.qkv, kept.seen, kept.levels, rows, seeds[0], **plan.attention
    )
    dinto = weight_gradient(dqkv, kept.x)
    return (dtotal, dqkv @ kept.into), [dinto, dbias, dout, sums[2], sums[0], sums[1]]


class _Layer(torch.autograd.Function):
    """(x, x again, …, the layer's twelve tensors) → (y, y again).

    One x is what is added to, the other what the product reads: so their gradients come back apart, and the layer
    before adds them up on the way.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, _same: Tensor, seeds: Tensor, rows: RaggedRows, plan: Plan, w: EncoderWeights, *_: Tensor,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        y, *first = _attention_forward(x, w.attention, rows, seeds, plan)
        z, *second = _feed_forward(y, w.feed, seeds, plan)
        ctx.plan = plan
        ctx.rows = rows[3:]
        kept = [tensor for part in (*first, *second) for tensor in part]
        ctx.save_for_backward(*rows[:3], seeds, *kept)
        ctx.set_materialize_grads(False)
        return z, z.view_as(z)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        starts, place, position, seeds, *tensors = ctx.saved_tensors
        rows = RaggedRows(starts, place, position, *ctx.rows)
        left = iter(tensors)
        kinds: tuple[Any, ...] = (_Attention, _Normed, _Feed, _Normed)
        first, first_norm, second, second_norm = (
            kind(*islice(left, len(kind._fields))) for kind in kinds
        )
        dz = [one.contiguous() for one in gradients if one is not None]
        dy, of_feed = _feed_backward(
            (dz[0], dz[1] if len(dz) > 1 else None), second, second_norm, seeds, ctx.plan
        )
        dx, of_attention = _attention_backward(dy, first, first_norm, rows, seeds, ctx.plan)
        return (*dx, None, None, None, None, *of_attention, *of_feed)


def fused_layer(
    x: Tensor, same: Tensor, w: EncoderWeights, rows: RaggedRows, seeds: Tensor, plan: Plan
) -> tuple[Tensor, Tensor]:
    """(tokens, size), and the same again → these of the next layer."""
    tensors = (
        *w.attention.joined,
        *w.attention.out,
        *w.attention.norm,
        *w.feed.up,
        *w.feed.down,
        *w.feed.norm,
    )
    found: tuple[Tensor, Tensor] = _Layer.apply(x, same, seeds, rows, plan, w, *tensors)  # type: ignore[no-untyped-call]
    return found


def fused_encoder(
    x: Tensor, layers: Sequence[EncoderWeights], rows: RaggedRows, plan: Plan, *, saves_memory: bool
) -> Tensor:
    """Run all layers; with `saves_memory` each one's inside is computed anew on the way back."""
    same = x
    seeds = torch.randint(0, 2**32, (len(layers), 4, 2), device=x.device)
    for weights, seed in zip(layers, seeds, strict=True):
        rest = (x, same, weights, rows, seed, plan)
        x, same = (
            checkpoint(fused_layer, *rest, use_reentrant=False)
            if saves_memory
            else fused_layer(*rest)
        )
    return x


# The network whose training steps run in these layers, where they fit and pass their trial.


class FusedNetwork(Network):
    """Computes what `Network` does; compiled and on a GPU, Triton kernels train BART's layers over passages."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._compiled = False
        self.trials = KernelTrials()

    def compile(self, *arguments: Any, **options: Any) -> None:
        self._compiled = True
        super().compile(*arguments, **options)

    def _run_layers(
        self, x: Tensor, stack: Sequence[EncoderWeights], passages: RaggedRows
    ) -> Tensor:
        plan = self._plan(x, passages.longest)
        if plan is None:
            return super()._run_layers(x, stack, passages)
        return fused_encoder(x, stack, passages, plan, saves_memory=self._saves_memory)

    def _plan(self, x: Tensor, longest: int) -> Plan | None:
        """Return the plan of a training step in fused kernels; None if the step does not use them.

        `x` is like the input of the layers.
        """
        style = self.family.encoder_style
        if not (self.training and self._compiled and has_kernels(x, style, longest)):
            return None
        plan = Plan.of(style)
        inner = self.family.encoder_layers(self.model)[0].feed.up.weight.shape[0]
        return plan if self.trials.passes(plan, x, inner) else None
