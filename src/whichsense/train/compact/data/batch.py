"""Batches of lists: pairs of a question and a passage as tensors, with gold spans and the teacher's soft labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.models.compact.encoder.tokens import BEGIN, END
from whichsense.train.compact.data.list_builder import MAX_ANSWERS, MAX_SPANS
from whichsense.train.compact.data.pack import Ints, Pack

TEACHER_TOKENS = 6  # likeliest first and last tokens of a passage that have soft labels
_POSITIVE_BONUS = 0.6  # of a passage that holds an answer, when slots are drawn
_NO_SLOT = -1


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


class SoftLabels(NamedTuple):
    """The teacher's scores of the passages of a batch."""

    relevance: Tensor
    """Lists × slots."""
    places: Tensor
    """Pairs × 2 × tokens: likely first and last tokens of an answer, as places in the pair."""
    chances: Tensor
    """Pairs × 2 × tokens: their probabilities."""


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
    ambiguous: Tensor
    """Lists: 1 if the question has several readings, 0 if it has not, -1 without a label."""
    taught: SoftLabels | None = None
    alone: bool = False
    """Whether the last slot of each list, which is never valid, holds its question without a passage."""


class TeacherScores(NamedTuple):
    """The teacher's scores of every slot of a pack."""

    relevance: NDArray[Any]
    """Slots."""
    places: NDArray[Any]
    """Slots × 2 × tokens: likely first and last tokens, counted from the title's first token."""
    chances: NDArray[Any]
    """Slots × 2 × tokens: their log probabilities."""

    @classmethod
    def zeros(cls, slots: int) -> TeacherScores:
        tokens = (slots, 2, TEACHER_TOKENS)
        return cls(
            np.zeros(slots, np.float16),
            np.zeros(tokens, np.uint8),
            np.zeros(tokens, np.float16),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[TeacherScores]) -> TeacherScores:
        relevance, places, chances = zip(*parts, strict=True)
        return cls(
            np.concatenate(relevance),
            np.concatenate(places),
            np.concatenate(chances),
        )


def sample_slots(
    pack: Pack,
    number: int,
    count: int,
    rng: np.random.Generator,
) -> list[int]:
    """Some slots of a list in their order; slots that hold an answer are more likely."""
    slots = pack.slot_range(number)
    if len(slots) <= count:
        return list(slots)
    positive = np.diff(pack.spans.starts[slots.start : slots.stop + 1]) > 0
    keys = rng.random(len(slots)) + _POSITIVE_BONUS * positive
    best = np.argpartition(-keys, count)[:count]
    return sorted((best + slots.start).tolist())


def build_list_batch(
    pack: Pack,
    numbers: Sequence[int],
    slots: Sequence[Sequence[int]],
    longest: int,
    scores: TeacherScores | None = None,
    *,
    alone: bool = False,
) -> ListBatch:
    """Lists with some of their slots, all of one width. No loop runs over pairs: the GPU would wait for it.

    `longest`: tokens of a pair. `alone`: a last slot of each list holds the question without a passage.
    """
    table = _slot_table(slots, alone=alone)  # lists × slots
    flat = table.reshape(-1)
    bare = np.zeros(table.shape, bool)  # pairs without a passage
    bare[:, -1] = alone
    pair_lists = np.repeat(np.array(numbers), table.shape[1])
    # A slot without a passage reads as the first slot, and is masked by `valid`.
    rows = pack.slots.values[np.maximum(flat, 0)].astype(np.int64)
    pairs, sizes = _build_pairs(
        pack,
        pair_lists,
        rows,
        longest,
        bare.reshape(-1),
    )
    heads = pairs.heads.numpy()
    taught = None
    if scores is not None:
        taught = _soft_labels(
            scores,
            table,
            heads,
            longest,
        )
    questions = [pack.asked[number] for number in numbers]
    return ListBatch(
        pairs,
        torch.from_numpy(table >= 0),
        *_gold_spans(
            pack,
            table,
            heads,
            sizes,
        ),
        complete=torch.tensor([one.complete for one in questions]),
        ambiguous=torch.tensor([float(one.ambiguous) for one in questions]),
        taught=taught,
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
    pack: Pack,
    table: NDArray[np.int64],
    heads: Ints,
    sizes: Ints,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Which answers each passage holds (lists × slots × answers); first tokens, last tokens and answers of the spans
    (lists × slots × spans)."""
    flat = table.reshape(-1)
    slots = np.maximum(flat, 0)
    spans = pack.spans.padded(slots, MAX_SPANS).astype(np.int64)  # pairs × spans × 3
    answers = spans[..., 0]
    places = _to_pair_places(spans[..., 1:], heads[:, :1, None], heads[:, 1:, None])
    first = places[..., 0]
    last = places[..., 1]
    # Padding is not a span, nor is what was cut off at the end of a pair.
    exists = np.arange(MAX_SPANS) < pack.spans.sizes(slots)[:, None]
    exists &= (flat >= 0)[:, None] & (last < sizes[:, None] - 1)
    held = np.zeros((len(flat), MAX_ANSWERS), bool)
    held[np.nonzero(exists)[0], answers[exists]] = True
    shape = (*table.shape, -1)
    return (
        torch.from_numpy(held.reshape(shape)),
        torch.from_numpy(np.where(exists, first, 0).reshape(shape)),
        torch.from_numpy(np.where(exists, last, 0).reshape(shape)),
        torch.from_numpy(np.where(exists, answers, -1).reshape(shape)),
    )


def _soft_labels(
    scores: TeacherScores,
    table: NDArray[np.int64],
    heads: Ints,
    longest: int,
) -> SoftLabels:
    slots = np.maximum(table.reshape(-1), 0)
    places = scores.places[slots].astype(np.int64)
    places = _to_pair_places(places, heads[:, :1, None], heads[:, 1:, None])
    relevance = scores.relevance[slots].reshape(table.shape).astype(np.float32)
    return SoftLabels(
        torch.from_numpy(relevance),
        torch.from_numpy(np.minimum(places, longest - 1)),
        torch.from_numpy(np.exp(scores.chances[slots].astype(np.float32))),
    )


def _to_pair_places(
    places: NDArray[np.int64],
    first: Any,
    title: Any,
) -> NDArray[np.int64]:
    """Places counted from the title's first token, as places in a pair: a separator follows the title.

    >>> _to_pair_places(np.array([0, 1, 2]), first=5, title=2).tolist()
    [5, 6, 8]
    """
    moved: NDArray[np.int64] = places + first + (places >= title)
    return moved


def to_passage_places(
    places: Tensor,
    first: Tensor,
    title: Tensor,
) -> Tensor:
    """The inverse of `_to_pair_places`."""
    moved = places - first
    return torch.where(moved >= title, moved - 1, moved)


def _build_pairs(
    pack: Pack,
    lists: Ints,
    rows: Ints,
    longest: int,
    bare: NDArray[np.bool_],
) -> tuple[PairTensors, Ints]:
    """The pairs of these lists and passages, as `inputs.pair` builds one, and the number of tokens of each."""
    question = pack.questions.sizes(lists)
    title = np.where(bare, 0, pack.titles.sizes(rows))
    room = np.maximum(0, longest - question - title - 4)  # four special tokens
    text = np.where(bare, 0, np.minimum(pack.texts.sizes(rows), room))
    ids = np.zeros((len(rows), longest), np.int64)
    ids[:, 0] = BEGIN
    place = np.ones(len(rows), np.int64)  # where the next part of each pair begins
    for tokens, chosen, sizes in (
        (pack.questions, lists, question),
        (pack.titles, rows, title),
        (pack.texts, rows, text),
    ):
        pair, at = _enumerate_rows(sizes)
        ids[pair, place[pair] + at] = tokens.values[tokens.starts[chosen][pair] + at]
        ids[np.arange(len(rows)), place + sizes] = END
        place = place + sizes + 1
    return _mask_pairs(ids, place, np.stack([question + 2, title], 1)), place


def _enumerate_rows(sizes: Ints) -> tuple[Ints, Ints]:
    """For rows of these sizes, each item's row and its place there.

    >>> [part.tolist() for part in _enumerate_rows(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    row = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.cumsum(sizes) - sizes
    return row, np.arange(len(row)) - starts[row]


def _mask_pairs(
    ids: Ints,
    sizes: Ints,
    heads: Ints,
) -> PairTensors:
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
