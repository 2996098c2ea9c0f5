"""How decoder layers read the encoded tokens in training, where PyTorch's attention would be more work.

`keys_values` computes the keys and values of all layers by one product in float8. `absorbed` needs neither:
Cross-attention of short targets over a long memory, without keys and values.

Projecting every token of a hundred passages to keys and values, in every decoder layer, is a seventh of all products of
a training step, and some thirty target tokens read them. A score q·(W m) is as well (q W)·m, and a sum of values is a
matrix times a sum of memory: so here the queries go through the matrices, and the memory is read as it is. A key's
bias adds the same to all scores of a query, which no softmax sees.

No layer adds to a gradient of the memory, which is larger than all that a layer computes: each leaves what it is made
of in one table, and one product behind the last of them makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from whichsense.models.seq2seq.fused.plan import (
    Plan,
    input_gradient,
    kernels,
    largest_of,
    product,
    safe,
    weight_gradient,
)
from whichsense.models.seq2seq.fused.precision import (
    BACKWARD,
    FORWARD,
    Eight,
    empty_eight,
)
from whichsense.models.seq2seq.fused.reference import RowsOfSoftmax
from whichsense.models.seq2seq.ragged import RaggedRows
from whichsense.models.seq2seq.transformer import Read
from whichsense.models.seq2seq.weights import CrossAttention, Style

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
