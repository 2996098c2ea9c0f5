"""The round trip of synthetic questions: the teacher must answer each of them as it was meant."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.jobs.progress import show_progress
from whichsense.train.compact.data.batch import ListBatch, build_list_batch
from whichsense.train.compact.data.pack import Ints, Pack
from whichsense.train.compact.encoder.losses import start_end
from whichsense.train.compact.encoder.teacher_net import TeacherNet, infer
from whichsense.train.loop.batches import Lazy, prefetch
from whichsense.train.loop.optimizer import to_device

_BATCH = 512  # pairs
_BEST_TOKENS = 8  # likeliest first and last tokens of a span
_LONGEST_SPAN = 15  # tokens


def teacher_agrees(
    net: TeacherNet,
    lists: Pack,
    slots: Ints,
    longest: int,
    *,
    agreed: float,
    relevance: float,
) -> NDArray[np.bool_]:
    """Which questions the teacher answers as they were meant, from the passage that they were written for.

    `slots` are those passages. The teacher's best span must share `agreed` (F1 of tokens) with a gold span, and its
    score of the passage must be higher than `relevance`.
    """
    parts = []
    for start in range(0, len(lists), _BATCH):
        end = min(start + _BATCH, len(lists))
        parts.append(range(start, end))

    def build_batch(part: range) -> ListBatch:
        single = [[slot] for slot in slots[list(part)]]
        return build_list_batch(lists, part, single, longest)

    device = next(net.parameters()).device
    agrees = np.zeros(len(lists), bool)
    with show_progress("asking the teacher", "questions") as progress:
        batches = prefetch(Lazy(parts, build_batch))
        for part, cpu_batch in zip(parts, batches, strict=True):
            batch = to_device(cpu_batch, device)
            output = infer(net, batch.pairs)
            same_span = _span_f1(output["span"], batch) >= agreed
            relevant = output["relevance"].flatten() > relevance
            passes = same_span & relevant
            agrees[part.start : part.stop] = passes.cpu().numpy()
            progress(part.stop / len(lists), part.stop)
    return agrees


def _span_f1(span: Tensor, batch: ListBatch) -> Tensor:
    """The token F1 of each pair's likeliest span and the gold span that is most like it (pairs)."""
    first, last = best_spans(span, batch)
    gold_first = batch.first[:, 0]
    gold_last = batch.last[:, 0]
    # One slot a list: lists × spans.
    is_gold = batch.answer[:, 0] >= 0
    common_first = torch.maximum(first, gold_first)
    common_last = torch.minimum(last, gold_last)
    common = common_last - common_first + 1  # tokens; below 1 if they do not overlap
    sizes = (last - first + 1) + (gold_last - gold_first + 1)
    f1 = 2 * common.clamp(min=0) / sizes
    return f1.masked_fill(~is_gold, 0).amax(1)


def best_spans(span: Tensor, batch: ListBatch) -> tuple[Tensor, Tensor]:
    """The first and the last token of each pair's likeliest span (pairs × 1)."""
    first_logs, last_logs = start_end(span.float(), batch.pairs.region)
    starts = first_logs.topk(_BEST_TOKENS, dim=1)
    ends = last_logs.topk(_BEST_TOKENS, dim=1)
    # Pairs × first tokens × last tokens
    gap = ends.indices[:, None, :] - starts.indices[:, :, None]
    scores = starts.values[:, :, None] + ends.values[:, None, :]
    impossible = (gap < 0) | (gap >= _LONGEST_SPAN)
    scores = scores.masked_fill(impossible, float("-inf")).flatten(1)
    best = scores.argmax(1, keepdim=True)
    first = starts.indices.gather(1, best // _BEST_TOKENS)
    last = ends.indices.gather(1, best % _BEST_TOKENS)
    return first, last
