"""The encoder's training step in few passes over memory: its layers, the decoder's memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from whichsense.lab.fused.fused_plan import (
    KernelTrials,
    Plan,
    has_kernels,
    is_fusable,
    kernels,
    weight_gradient,
)
from whichsense.lab.fused.fused_reference import RowsOfSoftmax, cast_together
from whichsense.models.seq2seq.network import Network
from whichsense.models.seq2seq.ragged import (
    CrossAttention,
    DecoderWeights,
    EncoderWeights,
    FeedForward,
    Norm,
    RaggedRows,
    SelfAttention,
    Style,
)
from whichsense.models.seq2seq.transformer import Read

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
    """Two gradients of the half's input, to be added up, and those of its weights in their order."""
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
    """All layers; with `saves_memory` each one's inside is computed anew on the way back."""
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


# How decoder layers read the encoded tokens in training, where PyTorch's attention would be more
# work.
#
# `absorbed` is cross-attention of short targets over a long memory, without keys and values.
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
        self, memory: Tensor, rows: RaggedRows, layers: int, heads: int, length: int, plan: Plan
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

    def attend(self, queries: Tensor, layer: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(questions, heads, length, size) → weighted sums of that shape; levels, factors, masses (questions, rows)."""
        weights, scores = self.left[:, :, layer].unbind(1)
        asked = self.right[:, 1, layer]
        asked.view(queries.shape).copy_(queries)
        torch.bmm(asked, self.memory.transpose(1, 2), out=scores)
        of_rows: tuple[Tensor, Tensor, Tensor] = kernels(scores).softmax_forward(
            scores, weights, self.lengths, self.seeds[layer], **self.options
        )
        return torch.bmm(weights, self.memory).view(queries.shape), *of_rows

    def turn(self, dfound: Tensor, dmass: Tensor, kept: Sequence[Tensor], layer: int) -> Tensor:
        """The gradient of a layer's queries; `kept` is what `attend` gave."""
        scores = self.left[:, 1, layer]
        given = self.right[:, 0, layer]
        found, levels, factors, masses = kept
        run = kernels(scores)
        given.view(dfound.shape).copy_(dfound)
        deltas = (dfound.float() * found.float()).sum(-1) + dmass * masses.view(dmass.shape)
        dweights = torch.bmm(given, self.memory.transpose(1, 2))
        shape = levels.shape
        of_rows = RowsOfSoftmax(levels, factors, deltas.reshape(shape), dmass.reshape(shape))
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
        table = torch.bmm(self.left.flatten(1, 3).transpose(1, 2), self.right.flatten(1, 3))
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
        ctx: Any, queries: Tensor, _thread: Tensor, bias: Tensor | None, table: _Table, layer: int
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
        return (dqueries, None, None if bias is None else torch.zeros_like(bias), None, None)


def _read(query: Tensor, thread: Tensor, w: CrossAttention, table: _Table, layer: int) -> Tensor:
    """(questions, length, heads, width) → the same: queries go through the keys' matrix, sums through the values'."""
    heads, width = query.shape[2:]
    key, value = (part.weight.to(query.dtype).view(heads, width, -1) for part in (w.key, w.value))
    queries = torch.einsum("blhw,hwd->bhld", query, key)
    found, factors, masses = _Attend.apply(queries, thread, w.key.bias, table, layer)  # type: ignore[no-untyped-call]
    seen: Tensor = torch.einsum("bhld,hwd->blhw", found, value) * factors.transpose(1, 2)[..., None]
    if w.value.bias is not None:
        seen = seen + masses.transpose(1, 2)[..., None] * w.value.bias.view(heads, width)
    return seen.to(query.dtype)


def absorbed(
    memory: Tensor, rows: RaggedRows, layers: Sequence[CrossAttention], length: int, style: Style
) -> list[Read]:
    """How each decoder layer's queries, `length` of each question, read the memory."""
    table = _Table(memory.detach(), rows, len(layers), style.heads, length, Plan.of(style))
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
        """The plan of a training step in fused kernels; None if the step does not use them.

        `x` is like the input of the layers.
        """
        style = self.family.encoder_style
        if not self.training or not is_fusable(style) or not self._uses_kernels(x):
            return None
        if not has_kernels(x, style, longest):
            return None
        plan = Plan.of(style)
        inner = self.family.encoder_layers(self.model)[0].feed.up.weight.shape[0]
        return plan if self.trials.passes(plan, x, inner) else None

    def _uses_kernels(self, x: Tensor) -> bool:
        return self._compiled and x.is_cuda

    def _decoder_layers(self, dtype: torch.dtype) -> list[DecoderWeights]:
        stack = self.family.decoder_layers(self.model)
        return stack if self.model.dtype == dtype else cast_together(stack, dtype)

    def _reads(
        self, memory: Tensor, questions: RaggedRows, length: int, layers: Sequence[DecoderWeights]
    ) -> Sequence[Tensor | Read]:
        """How each decoder layer reads the memory: in training in the way that is least work."""
        style = self.family.decoder_style
        if self.training and self._uses_kernels(memory):
            is_less = absorbs(memory, questions.longest, length, style)
            if is_less and self.trials.reads_well(memory, style):
                cross = [weights.cross for weights in layers]
                return absorbed(memory, questions, cross, length, style)
        return super()._reads(memory, questions, length, layers)
