"""What the verdict on a span is learnt from: the spans that the reader itself holds for likely, and the gold ones.

Where an answer begins and ends is a choice among all tokens, in which one answer wins. A verdict is on a span alone, so
that two answers of a passage can both be right.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from whichsense.models.compact.encoder.net import CompactNet
from whichsense.models.compact.reader.candidates import LONGEST_SPAN
from whichsense.train.compact.data.batch import ListBatch
from whichsense.train.compact.encoder import losses

_ROUNDS, _EACH = (
    3,
    4,
)  # how often the best spans are looked for, each time without the one before, and how many of them
_LEAST = 1e-3  # of the probability that is left: what is below is not asked about
_LEAST_SHARE = 0.02  # what a span of a passage counts that is hardly believed to answer
_NEAR = 0.5  # what a span counts that overlaps an answer and is none, where all answers are told; elsewhere nothing
_INCOMPLETE = (
    0.5  # what a span counts where an answer may be missing from those that are told
)


def loss(
    model: CompactNet, output: Mapping[str, Tensor], batch: ListBatch, articles: Tensor
) -> Tensor:
    """The log loss of verdicts, passages counting as they are believed to answer. `articles` are word pieces that an
    answer may begin with or not."""
    wide = batch.valid.shape[1]
    with torch.no_grad():
        first, last, there = _asked(output["span"], batch)
        right, near = _labels(first, last, batch, articles)
        shares = losses.shares(output["relevance"], batch.valid)[:, :-1].exp().flatten()
        complete, told = (
            flag.repeat_interleave(wide)[:, None]
            for flag in (batch.complete, batch.told)
        )
        counts = (
            shares.clamp(min=_LEAST_SHARE)[:, None]
            * batch.valid.flatten()[:, None]
            * told
            * there
        )
        counts = counts * torch.where(
            complete, torch.where(near, _NEAR, 1.0), torch.where(near, 0.0, _INCOMPLETE)
        )
    said = model.verdict(output["states"], first, last).float()
    each = F.binary_cross_entropy_with_logits(said, right.float(), reduction="none")
    return (each * counts).sum() / counts.sum().clamp(min=1e-3)


def _asked(span: Tensor, batch: ListBatch) -> tuple[Tensor, Tensor, Tensor]:
    """First and last tokens of the likely spans, then of the gold ones (pairs × spans), and which of them count: none
    twice."""
    firsts, lasts, chances = likely(span, batch.pairs.region)
    gold_first, gold_last, gold = (
        part.flatten(0, 1) for part in (batch.first, batch.last, batch.answer >= 0)
    )
    first, last = torch.cat([firsts, gold_first], 1), torch.cat([lasts, gold_last], 1)
    there = torch.cat([chances > _LEAST, gold], 1)
    same = (first[..., None] == first[:, None]) & (last[..., None] == last[:, None])
    before = (same & there[:, None]).tril(-1).any(-1)
    return first, last, there & ~before


def _labels(
    first: Tensor, last: Tensor, batch: ListBatch, articles: Tensor
) -> tuple[Tensor, Tensor]:
    """Which spans are answers, and which only overlap one."""
    gold_first, gold_last, gold = (
        part.flatten(0, 1)[:, None]
        for part in (batch.first, batch.last, batch.answer >= 0)
    )
    article = torch.isin(batch.pairs.ids.gather(1, first), articles).long()
    begins = (first[..., None] == gold_first) | (
        (first + article)[..., None] == gold_first
    )
    right = (begins & (last[..., None] == gold_last) & gold).any(-1)
    over = (
        (first[..., None] <= gold_last) & (last[..., None] >= gold_first) & gold
    ).any(-1)
    return right, over & ~right


def likely(span: Tensor, region: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best spans, then those that are best without the tokens of the best one, and so on, as answers are looked for
    when a question is asked: first tokens, last tokens, probabilities (pairs × spans)."""
    free, found = region.clone(), []
    at = torch.arange(span.shape[1], device=span.device)
    for _ in range(_ROUNDS):
        firsts, lasts, chances = _best(span, free)
        found.append((firsts, lasts, chances))
        free = free & ~((at >= firsts[:, :1]) & (at <= lasts[:, :1]))
    first, last, chance = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
    return first, last, chance


def _best(span: Tensor, free: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The likeliest spans of free tokens that stand together."""
    begins, ends = losses.start_end(span, free)
    size = begins.shape[1]
    ends = F.pad(ends, (0, LONGEST_SPAN), value=losses.NONE).unfold(1, LONGEST_SPAN, 1)[
        :, :size
    ]
    whole = (
        F.pad(free, (0, LONGEST_SPAN))
        .unfold(1, LONGEST_SPAN, 1)[:, :size]
        .cumprod(-1)
        .bool()
    )
    scores = (begins[..., None] + ends).masked_fill(~whole, losses.NONE).flatten(1)
    top = scores.topk(min(_EACH, scores.shape[1]), 1)
    first = top.indices // LONGEST_SPAN
    last = (first + top.indices % LONGEST_SPAN).clamp(max=size - 1)
    return first, last, top.values.exp()
