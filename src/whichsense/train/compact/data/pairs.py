"""Pairs of a question and a passage as tensors, and the places of tokens in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.models.compact.encoder.tokens import BEGIN, END
from whichsense.train.compact.data.pack import Ints, Pack

_SPECIAL_TOKENS = 4  # of a pair


class PairTensors(NamedTuple):
    """Pairs × tokens: `[CLS] question [SEP] title [SEP] text [SEP]`."""

    ids: Tensor
    types: Tensor
    """1 for title and text."""
    mask: Tensor
    region: Tensor
    """Tokens of title and text, without separators: answers are among them."""
    heads: Tensor
    """Pairs × 2: the place of the title's first token, and the number of the title's tokens."""


def to_pair_places(
    places: NDArray[np.int64], first: Any, title: Any
) -> NDArray[np.int64]:
    """Places counted from the title's first token, as places in a pair: a separator follows the title.

    >>> to_pair_places(np.array([0, 1, 2]), first=5, title=2).tolist()
    [5, 6, 8]
    """
    moved: NDArray[np.int64] = places + first + (places >= title)
    return moved


def to_passage_places(places: Tensor, first: Tensor, title: Tensor) -> Tensor:
    """The inverse of `to_pair_places`."""
    moved = places - first
    return torch.where(moved >= title, moved - 1, moved)


def build_pairs(
    pack: Pack, lists: Ints, rows: Ints, longest: int, bare: NDArray[np.bool_]
) -> tuple[PairTensors, Ints]:
    """The pairs of these lists and passages, as `inputs.pair` builds one, and the number of tokens of each."""
    question = pack.questions.sizes(lists)
    title = np.where(bare, 0, pack.titles.sizes(rows))
    room = np.maximum(0, longest - question - title - _SPECIAL_TOKENS)
    text = np.minimum(pack.texts.sizes(rows), room)
    text = np.where(bare, 0, text)
    ids = np.zeros((len(rows), longest), np.int64)
    ids[:, 0] = BEGIN
    place = np.ones(len(rows), np.int64)  # where the next part of each pair begins
    for tokens, chosen, sizes in (
        (pack.questions, lists, question),
        (pack.titles, rows, title),
        (pack.texts, rows, text),
    ):
        pair, at = _enumerate_rows(sizes)
        first = tokens.starts[chosen]  # of each pair, in the flat values
        ids[pair, place[pair] + at] = tokens.values[first[pair] + at]
        ids[np.arange(len(rows)), place + sizes] = END
        place = place + sizes + 1
    # [CLS] and a separator stand before the title.
    heads = np.stack([question + 2, title], 1)
    return _mask_pairs(ids, place, heads), place


def _enumerate_rows(sizes: Ints) -> tuple[Ints, Ints]:
    """For rows of these sizes, each item's row and its place there.

    >>> [part.tolist() for part in _enumerate_rows(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    row = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.cumsum(sizes) - sizes
    return row, np.arange(len(row)) - starts[row]


def _mask_pairs(ids: Ints, sizes: Ints, heads: Ints) -> PairTensors:
    at = np.arange(ids.shape[1])[None]
    mask = at < sizes[:, None]
    passage = (at >= heads[:, :1]) & mask
    after_title = at == heads.sum(1)[:, None]
    at_end = at == sizes[:, None] - 1
    return PairTensors(
        torch.from_numpy(ids),
        torch.from_numpy(passage.astype(np.int64)),
        torch.from_numpy(mask),
        torch.from_numpy(passage & ~(after_title | at_end)),
        torch.from_numpy(heads),
    )
