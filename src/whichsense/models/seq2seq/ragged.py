"""Batches without padding: sequences of different lengths in one row, and the weights that read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from whichsense.errors import BadInput
from whichsense.types import frozen

# Sequences of different lengths laid end to end: no computation is spent on padding.
#
# A fused batch is ragged twice over the same tokens: as passages, which the encoder reads one by one,
# and as questions, whose passages the decoder reads together. On CUDA in half precision a kernel
# computes ragged attention; elsewhere only the attention itself is computed on a padded view.

_HALF = (torch.bfloat16, torch.float16)


class RaggedRows(NamedTuple):
    """The places of `rows` sequences among the tokens of a batch."""

    starts: Tensor
    """The first token of each, and the end of the last: int32, for the kernels."""
    place: Tensor
    """Each token's number in a padded table of `rows` × `longest`."""
    position: Tensor
    """Each token's position in its own sequence."""
    longest: int
    rows: int

    @classmethod
    def of(cls, lengths: Sequence[int]) -> RaggedRows:
        """Return rows of these lengths.

        >>> RaggedRows.of([2, 1]).place.tolist(), RaggedRows.of([2, 1]).position.tolist()
        ([0, 1, 2], [0, 1, 0])
        """
        sizes = torch.tensor(list(lengths), dtype=torch.int64)
        starts = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
        longest = int(sizes.max())
        row = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        position = torch.arange(int(starts[-1])) - starts[row]
        place = row * longest + position
        return cls(starts.int(), place, position, longest, len(sizes))

    def to(self, device: torch.device) -> RaggedRows:
        return self._replace(
            starts=self.starts.to(device),
            place=self.place.to(device),
            position=self.position.to(device),
        )

    @property
    def is_full(self) -> bool:
        """Whether all are equally long: then the padded table is the same memory."""
        return bool(self.place.shape[0] == self.rows * self.longest)

    def padded(self, flat: Tensor) -> Tensor:
        """(tokens, …) → (rows, longest, …), with zeros for padding."""
        shape = (self.rows, self.longest, *flat.shape[1:])
        if self.is_full:
            return flat.view(shape)
        table = flat.new_zeros((self.rows * self.longest, *flat.shape[1:]))
        return table.index_copy(0, self.place, flat).view(shape)

    def flat(self, padded: Tensor) -> Tensor:
        """(rows, longest, …) → (tokens, …)."""
        table = padded.flatten(0, 1)
        return table if self.is_full else table.index_select(0, self.place)

    def mask(self) -> Tensor | None:
        """Mark tokens by True (rows, 1, 1, longest); None if there is no padding."""
        if self.is_full:
            return None
        table = torch.zeros(self.rows * self.longest, dtype=torch.bool, device=self.place.device)
        return table.index_fill(0, self.place, True).view(self.rows, 1, 1, self.longest)


def self_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rows: RaggedRows,
    *,
    scale: float,
    dropout: float,
    bias: Tensor | None,
) -> Tensor:
    """Compute attention of each token over its own sequence: (tokens, heads, width) in and out."""
    if bias is None and not rows.is_full and has_kernel(query):
        return _ragged_kernel(
            query, key, value, rows.starts, rows.starts, rows.longest, rows.longest, dropout, scale
        )
    table = _attention(
        rows.padded(query).transpose(1, 2),
        rows.padded(key).transpose(1, 2),
        rows.padded(value).transpose(1, 2),
        mask=_with_bias(rows.mask(), bias),
        scale=scale,
        dropout=dropout,
    )
    return rows.flat(table.transpose(1, 2))


def cross_attention(
    query: Tensor, key: Tensor, value: Tensor, rows: RaggedRows, *, scale: float, dropout: float
) -> Tensor:
    """Attention of targets (count, length, heads, width) over their own question's tokens (tokens, heads, width)."""
    if not rows.is_full and has_kernel(query):
        count, length = query.shape[:2]
        starts = torch.arange(
            0, (count + 1) * length, length, dtype=torch.int32, device=query.device
        )
        flat = _ragged_kernel(
            query.flatten(0, 1),
            key,
            value,
            starts,
            rows.starts,
            length,
            rows.longest,
            dropout,
            scale,
        )
        return flat.view(query.shape)
    table = _attention(
        query.transpose(1, 2),
        rows.padded(key).transpose(1, 2),
        rows.padded(value).transpose(1, 2),
        mask=rows.mask(),
        scale=scale,
        dropout=dropout,
    )
    return table.transpose(1, 2)


def _with_bias(mask: Tensor | None, bias: Tensor | None) -> Tensor | None:
    """Combine a mask and a bias (1, heads, queries, keys) into one attention mask."""
    if mask is None or bias is None:
        return bias if mask is None else mask
    return bias.masked_fill(~mask, float("-inf"))


def _attention(
    query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None, scale: float, dropout: float
) -> Tensor:
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, scale=scale
    )


def has_kernel(query: Tensor) -> bool:
    """Tell whether a kernel can compute attention over ragged rows without padding."""
    return query.is_cuda and query.dtype in _HALF and query.shape[-1] % 8 == 0


def _ragged_kernel(
    query: Tensor, key: Tensor, value: Tensor, starts_q: Tensor, starts_k: Tensor, longest_q: int, longest_k: int,
    dropout: float, scale: float,
) -> Tensor:  # fmt: skip
    # PyTorch's public `varlen_attn` has no dropout; this is the operator under it and under nested tensors.
    flash: Any = torch.ops.aten._flash_attention_forward
    output: Tensor = flash(
        query,
        key,
        value,
        starts_q,
        starts_k,
        longest_q,
        longest_k,
        dropout,
        False,
        False,
        scale=scale,
    )[0]
    return output


# The weights of transformer layers as named tuples, the style of a family, and what a network needs
# from a family.

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


@frozen
class Style:
    """The sizes, and what the families do differently."""

    heads: int
    width: int
    """The width of a head."""
    scale: float
    """Of attention scores. T5 does not scale: its initialization accounts for it."""
    epsilon: float
    norm_first: bool
    """T5 normalizes the input of a block; BART its output."""
    root_mean_square: bool
    activation: str
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0


class Linear(NamedTuple):
    weight: Tensor
    bias: Tensor | None = None


class Norm(NamedTuple):
    weight: Tensor
    bias: Tensor | None = None


class FeedForward(NamedTuple):
    up: Linear
    gate: Linear | None
    down: Linear
    norm: Norm


class SelfAttention(NamedTuple):
    joined: Linear
    """Query, key and value in one matrix."""
    out: Linear
    norm: Norm


class CrossAttention(NamedTuple):
    query: Linear
    key: Linear
    value: Linear
    out: Linear
    norm: Norm


class EncoderWeights(NamedTuple):
    attention: SelfAttention
    feed: FeedForward


class DecoderWeights(NamedTuple):
    attention: SelfAttention
    cross: CrossAttention
    feed: FeedForward


def linear_of(*modules: nn.Linear) -> Linear:
    """Return the weights of linear modules with the same input, as one matrix."""
    if len(modules) == 1:
        return Linear(modules[0].weight, modules[0].bias)
    weights: list[Tensor] = [module.weight for module in modules]
    biases: list[Tensor] = [module.bias for module in modules if module.bias is not None]
    return Linear(torch.cat(weights), torch.cat(biases) if biases else None)


def norm_of(module: Any) -> Norm:
    return Norm(module.weight, getattr(module, "bias", None))


def check_activation(activation: str) -> None:
    """Reject an activation that is not built in."""
    if activation not in ACTIVATIONS:
        raise BadInput(
            f"This checkpoint's activation '{activation}' is not built in. Known: {', '.join(ACTIVATIONS)}."
        )


def cast_weights(part: Any, dtype: torch.dtype) -> Any:
    """Return the same named tuple with every tensor in another precision."""
    if isinstance(part, Tensor):
        return part.to(dtype)
    if part is None:
        return None
    return type(part)(*(cast_weights(one, dtype) for one in part))


# The records that go in and out of a network.

IGNORED = -100  # a label without loss


class SpecialTokens(NamedTuple):
    """Special tokens: the start of an output, its end, and padding."""

    start: int
    end: int
    pad: int


class Batch(NamedTuple):
    """Token ids end to end, the passages and questions in them, and the targets."""

    ids: Tensor
    passages: RaggedRows
    questions: RaggedRows
    labels: Tensor
    """(questions, length), IGNORED behind the end."""
    weights: Tensor | None = None
    """The weight of each label in the loss. None: 1."""


@frozen
class LayerWeights:
    """The weights of all layers: parameters in training, a copy in the working precision otherwise."""

    encoder: list[EncoderWeights]
    decoder: list[DecoderWeights]


@frozen
class EncodedInputs:
    """The decoder's view of the inputs, computed once for each question and shared by all steps and beams.

    Keys and values of each decoder layer are (questions, heads, tokens, width), or (tokens, heads, width) end to end
    without padding if `mask` is a `RaggedRows`.
    """

    keys: list[Tensor]
    values: list[Tensor]
    mask: Tensor | RaggedRows | None
    """(questions, 1, 1, tokens), or the places of the questions."""
    questions: int


def shift_labels(labels: Tensor, signs: SpecialTokens) -> Tensor:
    """Return the decoder's input before each label: the start, then the labels before it."""
    inputs = labels.new_full(labels.shape, signs.pad)
    inputs[:, 0] = signs.start
    before = labels[:, :-1]
    inputs[:, 1:] = before.masked_fill(before == IGNORED, signs.pad)
    return inputs


def mean_loss(scores: Tensor, batch: Batch, label_smoothing: float = 0.0) -> Tensor:
    """Return the mean cross-entropy over the labels, weighted if the batch has weights."""
    losses = F.cross_entropy(
        scores.float().flatten(0, 1),
        batch.labels.flatten(),
        ignore_index=IGNORED,
        reduction="none",
        label_smoothing=label_smoothing,
    ).view(batch.labels.shape)
    if batch.weights is not None:
        losses = losses * batch.weights
    return losses.sum() / (batch.labels != IGNORED).sum()
