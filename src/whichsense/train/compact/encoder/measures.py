"""How well lists are read: whether the best passages answer, and whether the one best string is an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import torch
from torch import Tensor

from whichsense.models.compact.encoder.inputs import answer_ids
from whichsense.models.compact.encoder.tokens import Tokenizer
from whichsense.train.compact.data.batch import MOST_PIECES, ListBatch, list_batch
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.encoder.losses import shares, start_end
from whichsense.train.loop.optimizer import to_device

_LONGEST = 12
_LEAST = 0.003  # a passage that is less likely changes nothing
Read = Callable[[ListBatch], Mapping[str, Tensor]]


def measured(
    read: Read, pack: Pack, tokenizer: Tokenizer, longest: int, device: torch.device
) -> dict[str, float]:
    """`exact`: the share of lists whose best string is a gold answer; `top1`, `top5`: whose best passages hold one."""
    if not len(pack):
        return {"exact": 0.0, "top1": 0.0, "top5": 0.0}
    articles = {tuple(tokenizer.ids(article)) for article in ("the", "a", "an")}
    hits = [0, 0, 0]
    for numbers, batch in batches(pack, longest):
        said = read(to_device(batch, device))
        # Strings are put together one by one: a GPU would be waited for.
        output = {name: said[name].cpu() for name in ("relevance", "span")}
        logs = shares(output["relevance"], batch.valid)[:, :-1]
        order = logs.argsort(1, descending=True)
        good = batch.held.any(2).gather(1, order)
        hits[1] += int(good[:, :1].any(1).sum())
        hits[2] += int(good[:, :5].any(1).sum())
        for row, number in enumerate(numbers):
            best = _best_string(output["span"], batch, logs, row, articles)
            gold = {
                tuple(answer_ids(tokenizer, name))
                for names in pack.asked[number].answers
                for name in names
            }
            hits[0] += best in gold
    return dict(
        zip(("exact", "top1", "top5"), (hit / len(pack) for hit in hits), strict=True)
    )


def batches(
    pack: Pack, longest: int, size: int = 16
) -> Iterator[tuple[list[int], ListBatch]]:
    """All lists with all their slots, in their order."""
    for start in range(0, len(pack), size):
        numbers = list(range(start, min(start + size, len(pack))))
        yield (
            numbers,
            list_batch(pack, numbers, [pack.slots_of(n) for n in numbers], longest),
        )


def _best_string(
    span: Tensor,
    batch: ListBatch,
    logs: Tensor,
    row: int,
    articles: set[tuple[int, ...]],
) -> tuple[int, ...]:
    """The word pieces with most mass over all passages of a list; an article in front does not count."""
    slots = logs.shape[1]
    mass: dict[tuple[int, ...], float] = {}
    for slot, log in enumerate(logs[row].tolist()):
        if math.exp(log) < _LEAST:
            continue
        pair = row * slots + slot
        ids = batch.pairs.ids[pair].tolist()
        for (first, one), (last, other) in product(
            *_likeliest(span[pair], batch.pairs.region[pair])
        ):
            if first <= last < first + _LONGEST:
                pieces = tuple(ids[first : last + 1])
                pieces = (
                    pieces[1:] if len(pieces) > 1 and pieces[:1] in articles else pieces
                )
                mass[pieces] = mass.get(pieces, 0.0) + math.exp(log + one + other)
    return max(mass, key=mass.__getitem__, default=())


def _likeliest(span: Tensor, region: Tensor) -> list[Sequence[tuple[int, float]]]:
    found: list[Sequence[tuple[int, float]]] = []
    for logs in start_end(span[None].float(), region[None]):
        best = logs[0].topk(min(MOST_PIECES, logs.shape[1]))
        found.append(
            list(zip(best.indices.tolist(), best.values.tolist(), strict=True))
        )
    return found
