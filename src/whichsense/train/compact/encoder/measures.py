"""How well lists are read: whether the best passages answer, and whether the best string is an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product

import torch
from torch import Tensor

from whichsense.models.compact.encoder.inputs import answer_ids
from whichsense.models.compact.encoder.tokens import Tokenizer
from whichsense.train.compact.data.batch import (
    TEACHER_TOKENS,
    ListBatch,
    build_list_batch,
)
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.encoder.losses import shares, start_end
from whichsense.train.loop.optimizer import to_device

_LONGEST_SPAN = 12  # tokens
_LEAST_SHARE = 0.003  # a passage that is less likely changes nothing
_BATCH = 16  # lists
_ARTICLES = ("the", "a", "an")
_Pieces = tuple[int, ...]
_ReadLists = Callable[[ListBatch], Mapping[str, Tensor]]


def evaluate_lists(
    read: _ReadLists,
    pack: Pack,
    tokenizer: Tokenizer,
    longest: int,
    device: torch.device,
) -> dict[str, float]:
    """`exact`: the share of lists whose best string is a gold answer; `top1`, `top5`: whose best passages hold one."""
    totals = {"exact": 0, "top1": 0, "top5": 0}
    if not len(pack):
        return dict.fromkeys(totals, 0.0)
    articles = {tuple(tokenizer.ids(article)) for article in _ARTICLES}
    for numbers, batch in _all_batches(pack, longest):
        output = read(to_device(batch, device))
        # Strings are put together one by one, which would stall a GPU.
        relevance = output["relevance"].cpu()
        span = output["span"].cpu()
        logs = shares(relevance, batch.valid)[:, :-1]
        order = logs.argsort(1, descending=True)
        answers = batch.held.any(2).gather(1, order)  # lists × slots, best first
        for name, depth in (("top1", 1), ("top5", 5)):
            hits = answers[:, :depth].any(1)
            totals[name] += int(hits.sum())
        for row, number in enumerate(numbers):
            best = _best_string(span, batch, logs, row, articles)
            totals["exact"] += best in _gold_strings(pack, number, tokenizer)
    return {name: total / len(pack) for name, total in totals.items()}


def _all_batches(pack: Pack, longest: int) -> Iterator[tuple[range, ListBatch]]:
    """All lists with all their slots, in their order."""
    for start in range(0, len(pack), _BATCH):
        numbers = range(start, min(start + _BATCH, len(pack)))
        slots = [pack.slot_range(number) for number in numbers]
        yield (numbers, build_list_batch(pack, numbers, slots, longest))


def _gold_strings(pack: Pack, number: int, tokenizer: Tokenizer) -> set[_Pieces]:
    gold = set()
    for aliases in pack.asked[number].answers:
        for alias in aliases:
            gold.add(tuple(answer_ids(tokenizer, alias)))
    return gold


def _best_string(
    span: Tensor, batch: ListBatch, logs: Tensor, row: int, articles: set[_Pieces]
) -> _Pieces:
    """The word pieces with most mass over all passages of a list; a leading article does not count."""
    slots = logs.shape[1]
    mass: dict[_Pieces, float] = {}
    for slot, log in enumerate(logs[row].tolist()):
        if math.exp(log) < _LEAST_SHARE:
            continue
        pair = row * slots + slot
        ids = batch.pairs.ids[pair].tolist()
        starts, ends = _best_tokens(span[pair], batch.pairs.region[pair])
        for (first, log_first), (last, log_last) in product(starts, ends):
            if first <= last < first + _LONGEST_SPAN:
                pieces = tuple(ids[first : last + 1])
                if len(pieces) > 1 and pieces[:1] in articles:
                    pieces = pieces[1:]
                probability = math.exp(log + log_first + log_last)
                mass[pieces] = mass.get(pieces, 0.0) + probability
    return max(mass, key=mass.__getitem__, default=())


def _best_tokens(span: Tensor, region: Tensor) -> list[list[tuple[int, float]]]:
    """The likeliest first and the likeliest last tokens of a pair, each with its log probability."""
    best_tokens = []
    for logs in start_end(span[None].float(), region[None]):
        # A pair may be shorter than the number of tokens that are wanted.
        count = min(TEACHER_TOKENS, logs.shape[1])
        best = logs[0].topk(count)
        places = best.indices.tolist()
        tokens = zip(places, best.values.tolist(), strict=True)
        best_tokens.append(list(tokens))
    return best_tokens
