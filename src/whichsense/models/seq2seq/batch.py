"""The records that go in and out of a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from whichsense.models.seq2seq.ragged import RaggedRows
from whichsense.models.seq2seq.weights import DecoderWeights, EncoderWeights

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


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The weights of all layers: parameters in training, a copy in the working precision otherwise."""

    encoder: list[EncoderWeights]
    decoder: list[DecoderWeights]


@dataclass(frozen=True, slots=True)
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
    """The decoder's input before each label: the start, then the labels before it."""
    inputs = labels.new_full(labels.shape, signs.pad)
    inputs[:, 0] = signs.start
    before = labels[:, :-1]
    inputs[:, 1:] = before.masked_fill(before == IGNORED, signs.pad)
    return inputs


def mean_loss(scores: Tensor, batch: Batch, label_smoothing: float = 0.0) -> Tensor:
    """The mean cross-entropy over the labels, weighted if the batch has weights."""
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
