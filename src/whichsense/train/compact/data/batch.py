"""Batches: pairs of a question and a passage, side by side in lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.models.compact.encoder.tokens import BEGIN, END
from whichsense.train.compact.data.lists import ANSWERS, SPANS
from whichsense.train.compact.data.pack import Ints, Pack

MOST_PIECES = 6  # of a passage, whose scores as first and as last token of an answer the teacher tells


class Pairs(NamedTuple):
    """Pairs × tokens. `region` is where answers may stand: title and text.

    `heads` (pairs × 2) are the place of the title's first token, and how many it has.
    """

    ids: Tensor
    types: Tensor
    mask: Tensor
    region: Tensor
    heads: Tensor


class Taught(NamedTuple):
    """What the teacher says: of each passage (lists × slots), and of its likeliest first and last tokens."""

    relevance: Tensor
    places: Tensor
    """Pairs × 2 × 6, as places in the pair; `chances` are their probabilities."""
    chances: Tensor


class ListBatch(NamedTuple):
    """Lists × slots. Gold spans are places in the pairs (lists × slots × spans)."""

    pairs: Pairs
    valid: Tensor
    held: Tensor
    """Lists × slots × answers: which answer stands where."""
    first: Tensor
    last: Tensor
    answer: Tensor
    """The number of the span's answer; -1 where there is no span."""
    complete: Tensor
    """Which lists have every answer that their passages give."""
    ambiguous: Tensor
    """1 where a question has several readings, 0 where it has not, -1 without a label."""
    taught: Taught | None = None
    alone: bool = False
    """Whether the last slot of each list, which is never valid, holds its question without a passage."""


def sampled(
    pack: Pack, number: int, count: int, luck: np.random.Generator
) -> list[int]:
    """Some slots of a list, good ones likelier; in their order."""
    slots = pack.slots_of(number)
    if len(slots) <= count:
        return list(slots)
    good = np.diff(pack.spans.starts[slots.start : slots.stop + 1]) > 0
    keys = luck.random(len(slots)) + 0.6 * good
    return sorted((np.argpartition(-keys, count)[:count] + slots.start).tolist())


def list_batch(
    pack: Pack,
    numbers: Sequence[int],
    slots: Sequence[Sequence[int]],
    longest: int,
    scores: Scores | None = None,
    *,
    alone: bool = False,
) -> ListBatch:
    """Lists with some of their slots, all of one width. Without a loop over pairs: the GPU would wait for it."""
    wide = max(1, *map(len, slots)) + alone
    flat = np.array([[*own, *[-1] * (wide - len(own))] for own in slots]).reshape(-1)
    asked, rows = (
        np.repeat(np.array(numbers), wide),
        pack.slots.values[np.maximum(flat, 0)].astype(np.int64),
    )
    bare = (np.arange(len(flat)) % wide == wide - 1) & alone
    pairs, sizes = _joined_pairs(pack, asked, rows, longest, bare)
    heads = pairs.heads.numpy()
    found = pack.spans.padded(np.maximum(flat, 0), SPANS).astype(np.int64)
    where = placed(found[..., 1:], heads[:, :1, None], heads[:, 1:, None])
    there = np.arange(SPANS) < pack.spans.sizes(np.maximum(flat, 0))[:, None]
    there &= (flat >= 0)[:, None] & (where[..., 1] < sizes[:, None] - 1)
    held = np.zeros((len(flat), ANSWERS), bool)
    held[np.nonzero(there)[0], found[..., 0][there]] = True
    shape = (len(numbers), wide)
    first, last, answer = (
        torch.from_numpy(np.where(there, part, fill).reshape(*shape, SPANS))
        for part, fill in ((where[..., 0], 0), (where[..., 1], 0), (found[..., 0], -1))
    )
    return ListBatch(
        pairs=pairs,
        valid=torch.from_numpy(flat.reshape(shape) >= 0),
        held=torch.from_numpy(held.reshape(*shape, ANSWERS)),
        first=first,
        last=last,
        answer=answer,
        complete=torch.tensor([pack.asked[number].complete for number in numbers]),
        ambiguous=torch.tensor(
            [float(pack.asked[number].ambiguous) for number in numbers]
        ),
        taught=None if scores is None else _taught(scores, flat, heads, longest, shape),
        alone=alone,
    )


class Scores(NamedTuple):
    """The teacher's scores of every slot: relevance, and its likeliest first and last tokens (slots × 2 × pieces)."""

    relevance: NDArray[Any]
    places: NDArray[Any]
    """Of the tokens, counted from the title's first one."""
    chances: NDArray[Any]
    """Their log probabilities."""

    @classmethod
    def zeros(cls, slots: int) -> Scores:
        tokens = (slots, 2, MOST_PIECES)
        return cls(
            np.zeros(slots, np.float16),
            np.zeros(tokens, np.uint8),
            np.zeros(tokens, np.float16),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Scores]) -> Scores:
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _taught(
    scores: Scores,
    flat: NDArray[np.int64],
    heads: NDArray[np.int64],
    longest: int,
    shape: tuple[int, int],
) -> Taught:
    slots = np.maximum(flat, 0)
    places = scores.places[slots].astype(np.int64)
    places = placed(places, heads[:, :1, None], heads[:, 1:, None])
    return Taught(
        torch.from_numpy(scores.relevance[slots].reshape(shape).astype(np.float32)),
        torch.from_numpy(np.minimum(places, longest - 1)),
        torch.from_numpy(np.exp(scores.chances[slots].astype(np.float32))),
    )


def placed(places: NDArray[np.int64], first: Any, title: Any) -> NDArray[np.int64]:
    """Places counted from the title's first token, as places in a pair: a separator stands behind the title.

    >>> placed(np.array([0, 1, 2]), first=5, title=2).tolist()
    [5, 6, 8]
    """
    found: NDArray[np.int64] = places + first + (places >= title)
    return found


def counted(places: Tensor, first: Tensor, title: Tensor) -> Tensor:
    """The way back."""
    found = places - first
    return torch.where(found >= title, found - 1, found)


def _joined_pairs(
    pack: Pack, asked: Ints, rows: Ints, longest: int, bare: Ints
) -> tuple[Pairs, Ints]:
    """`[CLS] question [SEP] title [SEP] text [SEP]`, as `inputs.pair` makes it, for all pairs at once; and their sizes.
    `bare` ones have no passage."""
    question, title = (
        pack.questions.sizes(asked),
        np.where(bare, 0, pack.titles.sizes(rows)),
    )
    text = np.minimum(
        pack.texts.sizes(rows), np.maximum(0, longest - question - title - 4)
    )
    text = np.where(bare, 0, text)
    heads = np.stack([question + 2, title], 1)
    ids = np.zeros((len(rows), longest), np.int64)
    ids[:, 0] = BEGIN
    parts = (
        (pack.questions, asked, question),
        (pack.titles, rows, title),
        (pack.texts, rows, text),
    )
    place = np.ones(len(rows), np.int64)
    for source, chosen, size in parts:
        own, at = within(size)
        ids[own, place[own] + at] = source.values[source.starts[chosen][own] + at]
        ids[np.arange(len(rows)), place + size] = END
        place = place + size + 1
    return _masked(ids, place, heads), place


def within(sizes: Ints) -> tuple[Ints, Ints]:
    """For rows of these sizes, of every item: its row, and its place there.

    >>> [part.tolist() for part in within(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    own = np.repeat(np.arange(len(sizes)), sizes)
    return own, np.arange(len(own)) - (np.cumsum(sizes) - sizes)[own]


def _masked(ids: Ints, sizes: Ints, heads: Ints) -> Pairs:
    at = np.arange(ids.shape[1])[None]
    mask = at < sizes[:, None]
    passage = (at >= heads[:, :1]) & mask
    ends = (at == heads.sum(1)[:, None]) | (at == sizes[:, None] - 1)
    types, seen, region = (
        torch.from_numpy(part)
        for part in (passage.astype(np.int64), mask, passage & ~ends)
    )
    return Pairs(torch.from_numpy(ids), types, seen, region, torch.from_numpy(heads))
