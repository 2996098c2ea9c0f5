"""Batches of lists: pairs of a question and a passage as tensors, with gold spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.lab.compact.lists import (
    MAX_ANSWERS,
    MAX_SPANS,
    Ints,
    Pack,
    PairTensors,
    build_pairs,
    to_pair_places,
)

_POSITIVE_BONUS = 0.6  # of a passage that holds an answer, when slots are drawn
_NO_SLOT = -1


class SoftLabels(NamedTuple):
    """A teacher's scores of the passages of a batch."""

    relevance: Tensor
    """Lists × slots."""
    first: Tensor
    last: Tensor
    """Pairs × tokens: the probability of each token to be an answer's first, and its last."""


class ListBatch(NamedTuple):
    """Lists × slots. Gold spans are places in the pairs (lists × slots × spans)."""

    pairs: PairTensors
    valid: Tensor
    """Lists × slots: whether a slot holds a passage."""
    held: Tensor
    """Lists × slots × answers: which passage holds which answer."""
    first: Tensor
    last: Tensor
    answer: Tensor
    """The number of the span's answer; -1 where there is no span."""
    complete: Tensor
    """Lists: whether the answers are all that the passages give."""
    refuted: Tensor
    """Lists: whether the answers are wrong."""
    ambiguous: Tensor
    """Lists: 1 if the question has several readings, 0 if it has not, -1 without a label."""
    taught: SoftLabels | None = None
    alone: bool = False
    """Whether the last slot of each list, which is never valid, holds its question without a passage."""


def sample_slots(pack: Pack, number: int, count: int, rng: np.random.Generator) -> list[int]:
    """Return some slots of a list in their order; slots that hold an answer are more likely."""
    slots = pack.slot_range(number)
    if len(slots) <= count:
        return list(slots)
    # A slot is positive if it has spans.
    positive = np.diff(pack.spans.starts[slots.start : slots.stop + 1]) > 0
    keys = rng.random(len(slots)) + _POSITIVE_BONUS * positive
    return sorted((np.argpartition(-keys, count)[:count] + slots.start).tolist())


def build_list_batch(
    pack: Pack,
    numbers: Sequence[int],
    slots: Sequence[Sequence[int]],
    longest: int,
    *,
    alone: bool = False,
) -> ListBatch:
    """Return lists with some of their slots, all of one width. No loop runs over pairs: the GPU would wait for it.

    `longest`: tokens of a pair. `alone`: a last slot of each list holds the question without a passage.
    """
    table = _slot_table(slots, alone=alone)  # lists × slots
    flat = table.reshape(-1)
    bare = np.zeros(table.shape, bool)  # pairs without a passage
    bare[:, -1] = alone
    pair_lists = np.repeat(np.array(numbers), table.shape[1])
    # A slot without a passage reads as the first slot, and is masked by `valid`.
    rows = pack.slots.values[np.maximum(flat, 0)].astype(np.int64)
    pairs, sizes = build_pairs(pack, pair_lists, rows, longest, bare.reshape(-1))
    heads = pairs.heads.numpy()
    questions = [pack.asked[number] for number in numbers]
    return ListBatch(
        pairs,
        torch.from_numpy(table >= 0),
        *_gold_spans(pack, table, heads, sizes),
        complete=torch.tensor([one.complete for one in questions]),
        refuted=torch.tensor([one.refuted for one in questions]),
        ambiguous=torch.tensor([float(one.ambiguous) for one in questions]),
        alone=alone,
    )


def _slot_table(slots: Sequence[Sequence[int]], *, alone: bool) -> NDArray[np.int64]:
    """Slots side by side, filled up with -1 (lists × slots)."""
    width = max(1, *map(len, slots))
    if alone:
        width += 1
    table = np.full((len(slots), width), _NO_SLOT, np.int64)
    for row, own in enumerate(slots):
        table[row, : len(own)] = own
    return table


def _gold_spans(
    pack: Pack, table: NDArray[np.int64], heads: Ints, sizes: Ints
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return which answers each passage holds (lists × slots × answers); first tokens, last tokens and answers of the
    spans (lists × slots × spans)."""
    flat = table.reshape(-1)
    slots = np.maximum(flat, 0)
    spans = pack.spans.padded(slots, MAX_SPANS).astype(np.int64)  # pairs × spans × 3
    answers = spans[..., 0]
    places = to_pair_places(spans[..., 1:], heads[:, :1, None], heads[:, 1:, None])
    first = places[..., 0]
    last = places[..., 1]
    # Padding is not a span, nor is what was cut off at the end of a pair.
    counts = pack.spans.sizes(slots)
    exists = np.arange(MAX_SPANS) < counts[:, None]
    exists &= (flat >= 0)[:, None]
    exists &= last < sizes[:, None] - 1
    held = np.zeros((len(flat), MAX_ANSWERS), bool)
    held[np.nonzero(exists)[0], answers[exists]] = True
    arrays = (
        held,
        np.where(exists, first, 0),
        np.where(exists, last, 0),
        np.where(exists, answers, -1),
    )
    shape = (*table.shape, -1)
    tensors = [torch.from_numpy(array.reshape(shape)) for array in arrays]
    return tensors[0], tensors[1], tensors[2], tensors[3]
