"""Batches: pairs of a question and a passage, side by side in lists, and rows that the decoder is to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.models.compact.tokens import BEGIN, END
from whichsense.train.compact.lists import ANSWERS, SPANS
from whichsense.train.compact.pack import Pack

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
    ambiguous: Tensor
    taught: Taught | None = None


class Rows(NamedTuple):
    """Sequences for the decoder: all tokens, and at which places which targets are counted."""

    tokens: Tensor
    places: Tensor
    targets: Tensor
    counted: Tensor
    owner: Tensor
    """The list, or the pair, that a sequence looks at."""
    answer: Tensor
    """The answer that it is about; -1 for none."""


def sampled(pack: Pack, number: int, count: int, luck: np.random.Generator) -> list[int]:
    """Some slots of a list, good ones likelier; in their order."""
    slots = pack.slots_of(number)
    if len(slots) <= count:
        return list(slots)
    good = np.diff(pack.spans.starts[slots.start : slots.stop + 1]) > 0
    keys = luck.random(len(slots)) + 0.6 * good
    return sorted((np.argpartition(-keys, count)[:count] + slots.start).tolist())


def list_batch(
    pack: Pack, numbers: Sequence[int], slots: Sequence[Sequence[int]], longest: int, scores: Scores | None = None
) -> ListBatch:
    """Lists with some of their slots, all of one width."""
    wide = max(1, *map(len, slots))
    flat = np.array([[*own, *[-1] * (wide - len(own))] for own in slots]).reshape(-1)
    asked, rows = np.repeat(np.array(numbers), wide).tolist(), pack.slots.values[np.maximum(flat, 0)].tolist()
    made = [_pair(pack, number, row, longest) for number, row in zip(asked, rows, strict=True)]
    sizes = [(len(pack.questions[number]) + 2, len(pack.titles[row])) for number, row in zip(asked, rows, strict=True)]
    heads = np.array(sizes)
    first, last, answer = (np.full((len(flat), SPANS), fill) for fill in (0, 0, -1))
    held = np.zeros((len(flat), ANSWERS), bool)
    for place, slot in enumerate(flat.tolist()):
        spans = pack.spans[slot].astype(np.int64) if slot >= 0 else np.zeros((0, 3), np.int64)
        where = placed(spans[:, 1:], *sizes[place])
        inside = where[:, 1] < len(made[place]) - 1
        spans, where = spans[inside], where[inside]
        first[place, : len(spans)], last[place, : len(spans)] = where[:, 0], where[:, 1]
        answer[place, : len(spans)] = spans[:, 0]
        held[place, spans[:, 0]] = True
    shape = (len(numbers), wide)
    return ListBatch(
        pairs=padded_pairs(made, heads, longest),
        valid=torch.from_numpy(flat.reshape(shape) >= 0),
        held=torch.from_numpy(held.reshape(*shape, ANSWERS)),
        first=torch.from_numpy(first.reshape(*shape, SPANS)),
        last=torch.from_numpy(last.reshape(*shape, SPANS)),
        answer=torch.from_numpy(answer.reshape(*shape, SPANS)),
        ambiguous=torch.tensor([pack.asked[number].ambiguous for number in numbers]),
        taught=None if scores is None else _taught(scores, flat, heads, longest, shape),
    )


class Scores(NamedTuple):
    """The teacher's scores of every slot: relevance, and the likeliest first and last tokens (places, log chances)."""

    relevance: NDArray[Any]
    places: NDArray[Any]
    chances: NDArray[Any]


def _taught(
    scores: Scores, flat: NDArray[np.int64], heads: NDArray[np.int64], longest: int, shape: tuple[int, int]
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


def _pair(pack: Pack, number: int, row: int, longest: int) -> list[int]:
    return pair_ids(pack.questions[number].tolist(), pack.titles[row].tolist(), pack.texts[row].tolist(), longest)


def pair_ids(question: Sequence[int], title: Sequence[int], text: Sequence[int], longest: int) -> list[int]:
    """`[CLS] question [SEP] title [SEP] text [SEP]`: as `inputs.pair` makes it, of what is cut up already."""
    room = max(0, longest - len(question) - len(title) - 4)
    return [BEGIN, *question, END, *title, END, *text[:room], END]


def padded_pairs(rows: Sequence[Sequence[int]], heads: NDArray[np.int64], longest: int) -> Pairs:
    """All as wide as the longest may be: layers are compiled for one width."""
    ids = np.zeros((len(rows), longest), np.int64)
    sizes = np.array([len(row) for row in rows])
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    at = np.arange(longest)[None]
    mask = at < sizes[:, None]
    passage = (at >= heads[:, :1]) & mask
    ends = (at == heads.sum(1)[:, None]) | (at == sizes[:, None] - 1)
    types, seen, region = (torch.from_numpy(part) for part in (passage.astype(np.int64), mask, passage & ~ends))
    return Pairs(torch.from_numpy(ids), types, seen, region, torch.from_numpy(heads))


class Writing(NamedTuple):
    """A sequence before it is padded: given prefix, wanted output."""

    prefix: list[int]
    output: list[int]
    owner: int
    answer: int = -1


def written_rows(sequences: Sequence[Writing], longest: int) -> Rows | None:
    """Prefix and output in one row; None where there is no sequence."""
    if not sequences:
        return None
    wide = min(longest, max(len(one.prefix) + len(one.output) for one in sequences) - 1)
    most = max(len(one.output) for one in sequences)
    tokens = np.zeros((len(sequences), wide), np.int64)
    places, targets = (np.zeros((len(sequences), most), np.int64) for _ in range(2))
    said = np.zeros((len(sequences), most), bool)
    for row, one in enumerate(sequences):
        whole = [*one.prefix, *one.output][:wide]
        tokens[row, : len(whole)] = whole
        for number, target in enumerate(one.output):
            place = len(one.prefix) + number - 1
            if place < wide:
                places[row, number], targets[row, number], said[row, number] = place, target, True
    owner, answer = ([getattr(one, name) for one in sequences] for name in ("owner", "answer"))
    arrays = dict(zip(("tokens", "places", "targets", "counted"), (tokens, places, targets, said), strict=True))
    parts = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return Rows(**parts, owner=torch.tensor(owner), answer=torch.tensor(answer))
