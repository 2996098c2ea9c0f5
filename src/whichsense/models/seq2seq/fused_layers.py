"""The encoder's training step in few passes over memory: embedding, layers, the decoder's memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from whichsense.models.seq2seq.fused_plan import (
    Operand,
    Plan,
    input_gradient,
    kernels,
    largest_of,
    product,
    safe,
    weight_gradient,
)
from whichsense.models.seq2seq.fused_reference import (
    BACKWARD,
    FORWARD,
    Eight,
    RowsOfSoftmax,
    empty_eight,
)
from whichsense.models.seq2seq.ragged import (
    CrossAttention,
    Embedding,
    EncoderWeights,
    FeedForward,
    RaggedRows,
    SelfAttention,
    Style,
)
from whichsense.models.seq2seq.transformer import Read

# What the first encoder layer reads, in one pass there and one back: words, places, their norm,
# dropout.


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


# One encoder layer of BART's kind, there and back, as one step of the gradient's graph.
#
# Between its four products there is one kernel each, and what the way back needs is kept as the
# products read it. In eight bits every operand is cast with a scale from a bound that is known
# before: the largest number and the longest row that the last kernel saw, and Cauchy-Schwarz for what
# a matrix makes of them. Nothing is carried from step to step.

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


# How decoder layers read the encoded tokens in training, where PyTorch's attention would be more
# work.
#
# `keys_values` computes the keys and values of all layers by one product in float8. `absorbed` needs
# neither: Cross-attention of short targets over a long memory, without keys and values.
#
# Projecting every token of a hundred passages to keys and values, in every decoder layer, is a
# seventh of all products of a training step, and some thirty target tokens read them. A score q·(W m)
# is as well (q W)·m, and a sum of values is a matrix times a sum of memory: so here the queries go
# through the matrices, and the memory is read as it is. A key's bias adds the same to all scores of a
# query, which no softmax sees.
#
# No layer adds to a gradient of the memory, which is larger than all that a layer computes: each
# leaves what it is made of in one table, and one product behind the last of them makes it.

_ALIGNED = 64  # columns of a table of scores come in so many, so that products and kernels read whole lines


class _Table:
    """The memory that all layers read, and from which its gradient is made: leftᵀ right, over layers and both halves.

    A row is a head of a target's token.
    """

    def __init__(
        self,
        memory: Tensor,
        rows: RaggedRows,
        layers: int,
        heads: int,
        length: int,
        plan: Plan,
    ) -> None:
        self.rows = rows.aligned(_ALIGNED)
        self.memory = _padded(memory, self.rows)
        self.lengths = rows.starts.diff()
        shape = (rows.rows, 2, layers, heads * length)
        self.left = memory.new_empty((*shape, self.rows.longest))
        """The weights of the tokens; their scores, which become the scores' gradients on the way back."""
        self.right = memory.new_empty((*shape, memory.shape[1]))
        """The gradients of what was read; the queries."""
        self.seeds = torch.randint(0, 2**32, (layers, 2), device=memory.device)
        self.options = {"scale": plan.scale, "dropped": plan.attention_dropped}
        self.unread = layers
        """Of whose gradient nothing is known yet."""

    def attend(
        self, queries: Tensor, layer: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(questions, heads, length, size) → weighted sums of that shape; levels, factors, masses (questions, rows)."""
        weights, scores = self.left[:, :, layer].unbind(1)
        asked = self.right[:, 1, layer]
        asked.view(queries.shape).copy_(queries)
        torch.bmm(asked, self.memory.transpose(1, 2), out=scores)
        of_rows: tuple[Tensor, Tensor, Tensor] = kernels(scores).softmax_forward(
            scores, weights, self.lengths, self.seeds[layer], **self.options
        )
        return torch.bmm(weights, self.memory).view(queries.shape), *of_rows

    def turn(
        self, dfound: Tensor, dmass: Tensor, kept: Sequence[Tensor], layer: int
    ) -> Tensor:
        """The gradient of a layer's queries; `kept` is what `attend` gave."""
        scores = self.left[:, 1, layer]
        given = self.right[:, 0, layer]
        found, levels, factors, masses = kept
        run = kernels(scores)
        dmass = dmass.contiguous()
        deltas = run.copied_product(dfound, given, found, dmass, masses)
        dweights = torch.bmm(given, self.memory.transpose(1, 2))
        of_rows = RowsOfSoftmax(levels, factors, deltas, dmass.view(levels.shape))
        run.softmax_backward(
            scores, dweights, of_rows, self.lengths, self.seeds[layer], **self.options
        )
        self.unread -= 1
        return torch.bmm(scores, self.memory).view(dfound.shape)

    def gradient(self) -> Tensor:
        """Of the memory: (tokens, size)."""
        if self.unread:
            raise RuntimeError(
                "The memory's gradient was asked for before every decoder layer's was known."
            )
        table = torch.bmm(
            self.left.flatten(1, 3).transpose(1, 2), self.right.flatten(1, 3)
        )
        del self.left, self.right  # whoever keeps the loss keeps this
        return self.rows.flat(table)


def _padded(memory: Tensor, rows: RaggedRows) -> Tensor:
    """(questions, longest, size); behind a question's end any token, as no score there counts."""
    if rows.is_full:
        return rows.padded(memory)
    token = rows.starts[:-1, None] + torch.arange(rows.longest, device=memory.device)
    return memory.index_select(0, token.clamp_max(len(memory) - 1).flatten()).view(
        rows.rows, rows.longest, -1
    )


class _Shared(torch.autograd.Function):
    """(tokens, size) → a thread that ties the layers to it: its gradient is wanted when all of theirs are known."""

    @staticmethod
    def forward(ctx: Any, memory: Tensor, table: _Table) -> Tensor:
        ctx.table = table
        return memory.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.table.gradient(), None


class _Attend(torch.autograd.Function):
    """Queries (questions, heads, length, size) → sums of memory of that shape; what makes them means; masses.

    A mass is what dropout left of a row's shares, which the values' bias is multiplied with.
    """

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        _thread: Tensor,
        bias: Tensor | None,
        table: _Table,
        layer: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        found, levels, factors, masses = table.attend(queries, layer)
        ctx.table = table
        ctx.layer = layer
        ctx.save_for_backward(bias, found, levels, factors, masses)
        factors, masses = (one.view(queries.shape[:-1]) for one in (factors, masses))
        ctx.mark_non_differentiable(factors)  # the softmax's gradient knows of them
        return found, factors, masses

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        dfound, _, dmass = gradients
        bias, *kept = ctx.saved_tensors
        dqueries = ctx.table.turn(dfound, dmass, kept, ctx.layer)
        # Nothing flows along the thread; that it has been handed on is all that the memory waits for.
        return (
            dqueries,
            None,
            None if bias is None else torch.zeros_like(bias),
            None,
            None,
        )


def _read(
    query: Tensor, thread: Tensor, w: CrossAttention, table: _Table, layer: int
) -> Tensor:
    """(questions, length, heads, width) → the same: queries go through the keys' matrix, sums through the values'."""
    heads, width = query.shape[2:]
    key, value = (
        part.weight.to(query.dtype).view(heads, width, -1) for part in (w.key, w.value)
    )
    queries = torch.einsum("blhw,hwd->bhld", query, key)
    found, factors, masses = _Attend.apply(queries, thread, w.key.bias, table, layer)  # type: ignore[no-untyped-call]
    seen: Tensor = (
        torch.einsum("bhld,hwd->blhw", found, value)
        * factors.transpose(1, 2)[..., None]
    )
    if w.value.bias is not None:
        seen = seen + masses.transpose(1, 2)[..., None] * w.value.bias.view(
            heads, width
        )
    return seen.to(query.dtype)


def absorbed(
    memory: Tensor,
    rows: RaggedRows,
    layers: Sequence[CrossAttention],
    length: int,
    style: Style,
) -> list[Read]:
    """How each decoder layer's queries, `length` of each question, read the memory."""
    table = _Table(
        memory.detach(),
        rows,
        len(layers),
        style.heads,
        length,
        Plan.of(style, float8=False),
    )
    thread: Tensor = _Shared.apply(memory, table)  # type: ignore[no-untyped-call]
    return [
        partial(_read, thread=thread, w=weights, table=table, layer=number)
        for number, weights in enumerate(layers)
    ]


def absorbs(memory: Tensor, longest: int, length: int, style: Style) -> bool:
    """Whether it can be computed so, and is less work than keys and values.

    For each column of a head's matrices: longest × width products with the memory, or length × width with the targets
    and longest × length with what these become.
    """
    able = not memory.is_cuda or (
        memory.dtype == torch.bfloat16 and find_spec("triton") is not None
    )
    return able and length * (longest + style.width) < longest * style.width


class _KeysValues(torch.autograd.Function):
    """(tokens, size), the joined matrices of n parts → n tensors (tokens, size of a part)."""

    @staticmethod
    def forward(
        ctx: Any, memory: Tensor, weight: Tensor, bias: Tensor, parts: int
    ) -> tuple[Tensor, ...]:
        run = kernels(memory)
        x: Eight = run.cast(memory, largest_of(memory), FORWARD)
        w: Eight = run.cast(weight, largest_of(weight), FORWARD)
        ctx.save_for_backward(x.turned, x.scale, w.turned, w.scale)
        ctx.dtype = memory.dtype
        return product(x, w, bias, memory.dtype).view(len(memory), parts, -1).unbind(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        run = kernels(gradients[0])
        x, x_scale, w, w_scale = ctx.saved_tensors
        tokens, size = gradients[0].shape
        bound = safe(
            torch.stack([largest_of(gradient) for gradient in gradients]).max()
        )
        g = empty_eight(tokens, size * len(gradients), bound, BACKWARD)
        dbias = [
            run.cast_summed(
                gradient.contiguous(), bound, BACKWARD, into=g, first=number * size
            )[1]
            for number, gradient in enumerate(gradients)
        ]
        dweight = weight_gradient(g, Eight(x, x, x_scale))
        return (
            input_gradient(g, Eight(w, w, w_scale), ctx.dtype),
            dweight,
            torch.cat(dbias),
            None,
        )


def keys_values(
    memory: Tensor, layers: Sequence[CrossAttention], style: Style
) -> list[tuple[Tensor, Tensor]]:
    """Keys and values (tokens, heads, width) of each layer."""
    parts = [part for layer in layers for part in (layer.key, layer.value)]
    weight = torch.cat([part.weight for part in parts])
    bias = torch.cat(
        [
            weight.new_zeros(len(part.weight)) if part.bias is None else part.bias
            for part in parts
        ]
    )
    found: tuple[Tensor, ...] = _KeysValues.apply(memory, weight, bias, len(parts))  # type: ignore[no-untyped-call]
    heads = [one.view(len(memory), style.heads, style.width) for one in found]
    return list(zip(heads[::2], heads[1::2], strict=True))
