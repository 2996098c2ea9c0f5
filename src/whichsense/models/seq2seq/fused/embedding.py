"""What the first encoder layer reads, in one pass there and one back: words, places, their norm, dropout."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from whichsense.models.seq2seq.fused.plan import Plan, kernels
from whichsense.models.seq2seq.weights import Embedding


class _Places(NamedTuple):
    """Where a token's word and place stand in their tables."""

    ids: Tensor
    position: Tensor


class _Embedded(torch.autograd.Function):
    """(words, places, the norm's weight and bias, …) → x, x again (as the layers hand it on), its bounds."""

    @staticmethod
    def forward(
        ctx: Any, words: Tensor, places: Tensor, weight: Tensor, bias: Tensor, at: _Places, w: Embedding, plan: Plan,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        seed = torch.randint(0, 2**32, (2,), device=words.device)
        y, total, mean, spread, bounds = kernels(words).embedding_forward(
            *at, words, places, weight, bias, seed, scale=w.scale, offset=w.offset, epsilon=plan.epsilon, dtype=dtype,
            **plan.norm,
        )  # fmt: skip
        ctx.save_for_backward(*at, total, mean, spread, weight, seed)
        ctx.sizes = (len(words), len(places))
        ctx.w = (w.scale, w.offset, w.unlearned)
        ctx.plan = plan
        ctx.mark_non_differentiable(bounds)
        ctx.set_materialize_grads(False)
        return y, y.view_as(y), bounds

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        ids, position, *kept, seed = ctx.saved_tensors
        scale, offset, unlearned = ctx.w
        dy = [
            gradient.contiguous() for gradient in gradients[:2] if gradient is not None
        ]
        dtotal, sums = kernels(dy[0]).embedding_backward(
            dy[0], dy[1] if len(dy) > 1 else None, *kept, seed, dropped=ctx.plan.dropped
        )
        spread = torch.ops.aten.embedding_dense_backward
        dwords = spread(dtotal, ids, ctx.sizes[0], unlearned, False)
        dplaces = spread(dtotal, position + offset, ctx.sizes[1], -1, False)
        return (
            dwords if scale == 1 else dwords * scale,
            dplaces,
            sums[0],
            sums[1],
            None,
            None,
            None,
            None,
        )


def fused_embedding(
    ids: Tensor, position: Tensor, w: Embedding, plan: Plan, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """(tokens, size), the same again, and its bounds: what `fused_encoder` begins with."""
    found: tuple[Tensor, Tensor, Tensor] = _Embedded.apply(  # type: ignore[no-untyped-call]
        w.words,
        w.places,
        w.norm.weight,
        w.norm.bias,
        _Places(ids, position),
        w,
        plan,
        dtype,
    )
    return found
