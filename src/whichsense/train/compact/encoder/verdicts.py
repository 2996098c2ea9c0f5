"""The loss of verdicts on spans: those that the reader finds likely, and the gold ones.

The first and the last token of an answer are a choice among all tokens, in which one answer wins. A verdict judges one
span by itself, so that two answers of a passage can both be right.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from whichsense.models.compact.encoder.net import CompactNet
from whichsense.models.compact.reader.spans import LONGEST_SPAN
from whichsense.train.compact.data.batch import ListBatch
from whichsense.train.compact.encoder import losses

_ROUNDS = (
    3  # of searching for the best spans, each without the tokens of the best before
)
_SPANS = 4  # of each round
_LEAST_PROBABILITY = 1e-3  # of a span that is judged
_LEAST_SHARE = 0.02  # the weight of a passage that hardly answers

# The weight of a span by what it is, where the gold answers are complete and where one may be missing. A span that
# overlaps an answer without being one may be an alias of it, unless every answer is known.
_COMPLETE_WEIGHTS = {"right or wrong": 1.0, "overlapping": 0.5}
_INCOMPLETE_WEIGHTS = {"right or wrong": 0.5, "overlapping": 0.0}


def loss(
    model: CompactNet, output: Mapping[str, Tensor], batch: ListBatch, articles: Tensor
) -> Tensor:
    """The weighted mean of the verdicts' log loss. `articles`: word pieces that an answer may begin with or not."""
    with torch.no_grad():
        first, last, counted = _candidate_spans(output["span"], batch)
        right, overlapping = _label_spans(first, last, batch, articles)
        weights = _passage_weights(output["relevance"], batch) * counted
        weights = weights * _span_weights(overlapping, batch)
        # Of a refuted list only its answers are known, as wrong ones.
        refuted = batch.refuted.repeat_interleave(batch.valid.shape[1])[:, None]
        weights = torch.where(refuted, weights * right, weights)
        right = right & ~refuted
    logits = model.verdict(output["states"], first, last).float()
    each = F.binary_cross_entropy_with_logits(logits, right.float(), reduction="none")
    total = weights.sum().clamp(min=1e-3)
    return (each * weights).sum() / total


def _passage_weights(relevance: Tensor, batch: ListBatch) -> Tensor:
    """How likely each passage is to answer (pairs × 1); 0 for a slot without a passage."""
    logs = losses.shares(relevance, batch.valid)[:, :-1]
    shares = logs.exp().flatten().clamp(min=_LEAST_SHARE)
    valid = batch.valid.flatten()
    return shares[:, None] * valid[:, None]


def _span_weights(overlapping: Tensor, batch: ListBatch) -> Tensor:
    """The weight of each span (pairs × spans)."""
    slots = batch.valid.shape[1]
    complete = batch.complete.repeat_interleave(slots)[:, None]
    return torch.where(
        complete,
        _weigh(overlapping, _COMPLETE_WEIGHTS),
        _weigh(overlapping, _INCOMPLETE_WEIGHTS),
    )


def _weigh(overlapping: Tensor, weights: Mapping[str, float]) -> Tensor:
    return torch.where(overlapping, weights["overlapping"], weights["right or wrong"])


def _candidate_spans(span: Tensor, batch: ListBatch) -> tuple[Tensor, Tensor, Tensor]:
    """First and last tokens of the likely spans, then of the gold ones, and which of them count, none twice.

    All three are pairs × spans.
    """
    firsts, lasts, probabilities = likely_spans(span, batch.pairs.region)
    gold_first, gold_last, is_gold = _gold_spans(batch)
    first = torch.cat([firsts, gold_first], 1)
    last = torch.cat([lasts, gold_last], 1)
    counted = torch.cat([probabilities > _LEAST_PROBABILITY, is_gold], 1)
    # Pairs × spans × spans: whether two spans are the same.
    same_first = first[..., None] == first[:, None]
    same_last = last[..., None] == last[:, None]
    same = same_first & same_last & counted[:, None]
    # Below the diagonal: an earlier span is the same.
    repeated = same.tril(-1).any(-1)
    return first, last, counted & ~repeated


def _gold_spans(batch: ListBatch) -> tuple[Tensor, Tensor, Tensor]:
    """First tokens, last tokens, and which of them are spans (pairs × spans)."""
    is_gold = batch.answer.flatten(0, 1) >= 0
    first = batch.first.flatten(0, 1)
    last = batch.last.flatten(0, 1)
    return first, last, is_gold


def _label_spans(
    first: Tensor, last: Tensor, batch: ListBatch, articles: Tensor
) -> tuple[Tensor, Tensor]:
    """Which spans are answers, and which only overlap one (pairs × spans)."""
    gold_first, gold_last, is_gold = _gold_spans(batch)
    # Pairs × 1 × gold spans
    gold_first = gold_first[:, None]
    gold_last = gold_last[:, None]
    is_gold = is_gold[:, None]
    first_pieces = batch.pairs.ids.gather(1, first)
    article = torch.isin(first_pieces, articles).long()  # 1 if the span begins so
    # Pairs × spans × gold spans
    starts = first[..., None] == gold_first
    starts_after_article = (first + article)[..., None] == gold_first
    ends = last[..., None] == gold_last
    right = ((starts | starts_after_article) & ends & is_gold).any(-1)
    begins_before = first[..., None] <= gold_last
    ends_after = last[..., None] >= gold_first
    overlaps = (begins_before & ends_after & is_gold).any(-1)
    return right, overlaps & ~right


def likely_spans(span: Tensor, region: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """First tokens, last tokens and probabilities of likely spans (pairs × spans).

    The best spans, then the best without the tokens of the best one, and so on, as the reader searches for answers.
    """
    free = region.clone()
    positions = torch.arange(span.shape[1], device=span.device)
    all_firsts = []
    all_lasts = []
    all_probabilities = []
    for _ in range(_ROUNDS):
        firsts, lasts, probabilities = _best_spans(span, free)
        all_firsts.append(firsts)
        all_lasts.append(lasts)
        all_probabilities.append(probabilities)
        # The first of the round is its best: its tokens are not free any more.
        best = (positions >= firsts[:, :1]) & (positions <= lasts[:, :1])
        free = free & ~best
    return (
        torch.cat(all_firsts, 1),
        torch.cat(all_lasts, 1),
        torch.cat(all_probabilities, 1),
    )


def _best_spans(span: Tensor, free: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The likeliest spans of consecutive free tokens."""
    begins, ends = losses.start_end(span, free)
    size = begins.shape[1]
    # Pairs × first tokens × lengths
    padded = F.pad(ends, (0, LONGEST_SPAN), value=losses.NONE)
    ends = padded.unfold(1, LONGEST_SPAN, 1)[:, :size]
    padded_free = F.pad(free, (0, LONGEST_SPAN))
    windows = padded_free.unfold(1, LONGEST_SPAN, 1)[:, :size]
    # A span is whole up to the first token that is not free.
    whole = windows.cumprod(-1).bool()
    scores = begins[..., None] + ends
    scores = scores.masked_fill(~whole, losses.NONE).flatten(1)
    top = scores.topk(min(_SPANS, scores.shape[1]), 1)
    first = top.indices // LONGEST_SPAN
    last = (first + top.indices % LONGEST_SPAN).clamp(max=size - 1)
    return first, last, top.values.exp()
