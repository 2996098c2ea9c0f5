"""What the encoder is measured and trained by: losses over lists, verdicts on spans, measures of rankings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from whichsense.lab.compact.batches_of_lists import ListBatch, SoftLabels, build_list_batch
from whichsense.lab.compact.lists import Pack
from whichsense.lab.train.loop import to_device
from whichsense.lab.train.task import group_batches
from whichsense.models.compact.candidates import LONGEST_SPAN
from whichsense.models.compact.encoder import Tokenizer, answer_ids
from whichsense.models.compact.nets import CompactNet

# Losses over lists: which passages answer, where the answers are, and the soft labels of a teacher
# for both.

NONE = -1e4  # a score that stands for minus infinity
_FLOOR = (
    -25.0
)  # the least log probability that counts: one hopeless token must not dominate a batch
_LEAST_MASS = -30.0  # the same of an answer in a passage
_INVALID_RELEVANCE = -20.0  # of the teacher, for a slot without a passage
_NULL_WEIGHT = 0.5  # of a list without an answer
_MOST_REFUTED = (
    0.999  # the probability of a refuted answer that still counts: the loss stays finite
)
_TEACHER_FLOOR = 0.01  # added to the teacher's share of every passage


def _masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the values in the mask; 0 if it is empty."""
    count = mask.sum().clamp(min=1)
    return (values * mask).sum() / count


def passage_shares(scores: Tensor, valid: Tensor) -> Tensor:
    """Return log probabilities over a list's passages and, last, a null passage of score 0 (lists × slots + 1)."""
    scores = scores.view_as(valid).masked_fill(~valid, NONE)
    return F.log_softmax(F.pad(scores, (0, 1)), dim=1)


def _listwise(logs: Tensor, batch: ListBatch) -> Tensor:
    """Make every answer's passages likely; the null passage where there is no answer.

    `logs`: lists × slots + 1. Lists whose answers are refuted may have other answers: they do not count.
    """
    held = batch.held
    # Lists × answers: the log probability of all passages that hold an answer.
    mass = logs[:, :-1, None].masked_fill(~held, NONE).logsumexp(1)
    has_answer = held.any(1)
    count = has_answer.sum(1).clamp(min=1)
    answered = -(mass * has_answer).sum(1) / count
    unanswered = -_NULL_WEIGHT * logs[:, -1]
    each = torch.where(has_answer.any(1), answered, unanswered)
    return _masked_mean(each, ~batch.refuted)


def start_end(span: Tensor, region: Tensor) -> tuple[Tensor, Tensor]:
    """Return log probabilities of each token to be an answer's first, and its last (pairs × tokens)."""
    scores = span.masked_fill(~region[..., None], NONE)
    first, last = F.log_softmax(scores, dim=1).unbind(-1)
    return first, last


def span_loss(batch: ListBatch, logs: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Make every answer in a passage likely, at any of its places; passages are weighted by their shares.

    If one answer were enough, the likelier of two would soon be the only one.
    """
    starts = first.gather(1, batch.first.flatten(0, 1))
    ends = last.gather(1, batch.last.flatten(0, 1))
    each = starts + ends  # pairs × spans
    numbers = torch.arange(batch.held.shape[-1], device=each.device)
    # Pairs × spans × answers: which answer a span is.
    own = batch.answer.flatten(0, 1)[..., None] == numbers
    has_answer = own.any(1)
    # Pairs × answers: the log probability of all places of an answer.
    mass = each[..., None].masked_fill(~own, NONE).logsumexp(1)
    mass = mass.clamp(min=_LEAST_MASS)
    count = has_answer.sum(1).clamp(min=1)
    scores = (mass * has_answer).sum(1) / count
    answers = has_answer.any(1).view_as(batch.valid)  # lists × slots
    answers = answers & ~batch.refuted[:, None]
    # Shares among the passages that hold an answer; without one, all are 0.
    weights = logs[:, :-1].detach().masked_fill(~answers, NONE)
    weights = weights.softmax(1) * answers
    total = -(weights * scores.view_as(weights)).sum()
    return total / answers.any(1).sum().clamp(min=1)


def answer_mass(batch: ListBatch, logs: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Return the probability of each list's gold answers together, over all of its passages (lists)."""
    starts = first.gather(1, batch.first.flatten(0, 1))
    ends = last.gather(1, batch.last.flatten(0, 1))
    is_gold = batch.answer.flatten(0, 1) >= 0
    spans = (starts + ends).exp() * is_gold  # pairs × spans
    of_passage = spans.sum(1).view_as(batch.valid)
    return (logs[:, :-1].exp() * of_passage).sum(1)


def refutation(batch: ListBatch, logs: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Refuted answers should be unlikely, whatever is likely in their place."""
    each = -torch.log1p(-answer_mass(batch, logs, first, last).clamp(max=_MOST_REFUTED))
    return _masked_mean(each, batch.refuted)


def read(output: Mapping[str, Tensor], batch: ListBatch) -> dict[str, Tensor]:
    """Return each part of a reader's loss; with soft labels, if the batch has any, those of the teacher too."""
    logs = passage_shares(output["relevance"], batch.valid)
    first, last = start_end(output["span"], batch.pairs.region)
    parts = {
        "relevance": _listwise(logs, batch),
        "span": span_loss(batch, logs, first, last),
        "refuted": refutation(batch, logs, first, last),
    }
    early = None
    if "exit" in output:
        early = passage_shares(output["exit"], batch.valid)
        parts["exit"] = _listwise(early, batch)
    if "ambiguity" in output:
        parts |= _ambiguity(output["ambiguity"], batch)
    if batch.taught is None:
        return parts
    # Where gold answers are complete, the teacher knows less than they do.
    open_lists = ~batch.complete
    targets = _teacher_shares(batch.taught, batch.valid)
    parts["taught"] = _distillation(targets, logs, open_lists)
    if early is not None:
        parts["taught_exit"] = _distillation(targets, early, open_lists)
    valid = batch.valid & open_lists[:, None]
    parts["taught_span"] = _span_distillation(batch.taught, targets, valid, first, last)
    return parts


def _teacher_shares(taught: SoftLabels, valid: Tensor) -> Tensor:
    """Return the teacher's probabilities over passages and the null passage (lists × slots + 1)."""
    nothing = torch.full_like(taught.relevance, _INVALID_RELEVANCE)
    return F.pad(torch.where(valid, taught.relevance, nothing), (0, 1)).softmax(1)


def _distillation(targets: Tensor, logs: Tensor, lists: Tensor) -> Tensor:
    """Return the cross-entropy between the teacher's shares and ours, over these lists."""
    return _masked_mean(-(targets * logs.clamp(min=_FLOOR)).sum(1), lists)


def _span_distillation(
    taught: SoftLabels, targets: Tensor, valid: Tensor, first: Tensor, last: Tensor
) -> Tensor:
    weights = (targets[:, :-1] + _TEACHER_FLOOR) * valid
    weights = (weights / weights.sum().clamp(min=1e-6)).flatten()
    each = taught.first * first.clamp(min=_FLOOR) + taught.last * last.clamp(min=_FLOOR)
    return -(weights * each.sum(1)).sum()


def _ambiguity(logits: Tensor, batch: ListBatch) -> dict[str, Tensor]:
    """Return the log loss over the mean of all passages, and of the question alone, where annotators gave a label."""
    each = logits.view_as(batch.valid)
    valid = batch.valid
    count = valid.sum(1).clamp(min=1)
    predictions = {"ambiguity": (each * valid).sum(1) / count}
    if batch.alone:
        predictions["alone"] = each[:, -1]
    labelled = batch.ambiguous >= 0
    labels = batch.ambiguous.clamp(min=0)
    parts = {}
    for name, logit in predictions.items():
        loss = F.binary_cross_entropy_with_logits(logit, labels, reduction="none")
        parts[name] = _masked_mean(loss, labelled)
    return parts


# How well lists are read: whether the best passages answer, and whether the best string is an answer.

_LONGEST_SPAN = 12  # tokens
_LEAST_SHARE = 0.003  # a passage that is less likely changes nothing
_BATCH = 16  # lists
_ARTICLES = ("the", "a", "an")
_Pieces = tuple[int, ...]
_TOKENS = 6  # likeliest first and last tokens of a passage that strings are made of


def evaluate_lists(
    model: Any, pack: Pack, tokenizer: Tokenizer, longest: int, device: torch.device
) -> dict[str, float]:
    """`exact`: the share of lists whose best string is a gold answer; `top1`, `top5`: whose best passages hold one."""
    totals = {"exact": 0, "top1": 0, "top5": 0}
    if not len(pack):
        return dict.fromkeys(totals, 0.0)
    articles = {tuple(tokenizer.ids(article)) for article in _ARTICLES}
    for numbers, batch in all_batches(pack, longest):
        output = model.read(*to_device(batch, device).pairs[:3])
        # Strings are put together one by one, which would stall a GPU.
        relevance = output["relevance"].cpu()
        span = output["span"].cpu()
        logs = passage_shares(relevance, batch.valid)[:, :-1]
        order = logs.argsort(1, descending=True)
        answers = batch.held.any(2).gather(1, order)  # lists × slots, best first
        for name, depth in (("top1", 1), ("top5", 5)):
            hits = answers[:, :depth].any(1)
            totals[name] += int(hits.sum())
        for row, number in enumerate(numbers):
            best = _best_string(span, batch, logs, row, articles)
            totals["exact"] += best in _gold_strings(pack, number, tokenizer)
    return {name: total / len(pack) for name, total in totals.items()}


def all_batches(pack: Pack, longest: int) -> Iterator[tuple[list[int], ListBatch]]:
    """Yield all lists with all their slots, in their order."""
    for numbers in group_batches(range(len(pack)), _BATCH):
        slots = [pack.slot_range(number) for number in numbers]
        yield (numbers, build_list_batch(pack, numbers, slots, longest))


def _gold_strings(pack: Pack, number: int, tokenizer: Tokenizer) -> set[_Pieces]:
    gold = {
        tuple(answer_ids(tokenizer, alias))
        for aliases in pack.asked[number].answers
        for alias in aliases
    }
    return gold


def _best_string(
    span: Tensor, batch: ListBatch, logs: Tensor, row: int, articles: set[_Pieces]
) -> _Pieces:
    """Return the word pieces with most mass over all passages of a list; a leading article does not count."""
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
    """Return the likeliest first and the likeliest last tokens of a pair, each with its log probability."""
    best_tokens = []
    for logs in start_end(span[None].float(), region[None]):
        # A pair may be shorter than the number of tokens that are wanted.
        best = logs[0].topk(min(_TOKENS, logs.shape[1]))
        tokens = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        best_tokens.append(list(tokens))
    return best_tokens


# The loss of verdicts on spans: those that the reader finds likely, and the gold ones.
#
# The first and the last token of an answer are a choice among all tokens, in which one answer wins. A
# verdict judges one span by itself, so that two answers of a passage can both be right.

_ROUNDS = 3  # of searching for the best spans, each without the tokens of the best before
_SPANS = 4  # of each round
_LEAST_PROBABILITY = 1e-3  # of a span that is judged
_VERDICTS_LEAST_SHARE = 0.02  # the weight of a passage that hardly answers

# The weight of a span by what it is, where the gold answers are complete and where one may be missing. A span that
# overlaps an answer without being one may be an alias of it, unless every answer is known.
_COMPLETE_WEIGHTS = {"right or wrong": 1.0, "overlapping": 0.5}
_INCOMPLETE_WEIGHTS = {"right or wrong": 0.5, "overlapping": 0.0}


def loss(
    model: CompactNet, output: Mapping[str, Tensor], batch: ListBatch, articles: Tensor
) -> Tensor:
    """Return the weighted mean of the verdicts' log loss. `articles`: word pieces that an answer may begin with or
    not."""
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
    """Return how likely each passage is to answer (pairs × 1); 0 for a slot without a passage."""
    logs = passage_shares(relevance, batch.valid)[:, :-1]
    shares = logs.exp().flatten().clamp(min=_VERDICTS_LEAST_SHARE)
    return shares[:, None] * batch.valid.flatten()[:, None]


def _span_weights(overlapping: Tensor, batch: ListBatch) -> Tensor:
    """Return the weight of each span (pairs × spans)."""
    complete = batch.complete.repeat_interleave(batch.valid.shape[1])[:, None]
    return torch.where(
        complete, _weigh(overlapping, _COMPLETE_WEIGHTS), _weigh(overlapping, _INCOMPLETE_WEIGHTS)
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
    return first, last, counted & ~same.tril(-1).any(-1)


def _gold_spans(batch: ListBatch) -> tuple[Tensor, Tensor, Tensor]:
    """First tokens, last tokens, and which of them are spans (pairs × spans)."""
    is_gold = batch.answer.flatten(0, 1) >= 0
    return batch.first.flatten(0, 1), batch.last.flatten(0, 1), is_gold


def _label_spans(
    first: Tensor, last: Tensor, batch: ListBatch, articles: Tensor
) -> tuple[Tensor, Tensor]:
    """Return which spans are answers, and which only overlap one (pairs × spans)."""
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
    return right, (begins_before & ends_after & is_gold).any(-1) & ~right


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
        free = free & ~((positions >= firsts[:, :1]) & (positions <= lasts[:, :1]))
    return (torch.cat(all_firsts, 1), torch.cat(all_lasts, 1), torch.cat(all_probabilities, 1))


def _best_spans(span: Tensor, free: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the likeliest spans of consecutive free tokens."""
    begins, ends = start_end(span, free)
    size = begins.shape[1]
    # Pairs × first tokens × lengths
    padded = F.pad(ends, (0, LONGEST_SPAN), value=NONE)
    ends = padded.unfold(1, LONGEST_SPAN, 1)[:, :size]
    windows = F.pad(free, (0, LONGEST_SPAN)).unfold(1, LONGEST_SPAN, 1)[:, :size]
    # A span is whole up to the first token that is not free.
    whole = windows.cumprod(-1).bool()
    scores = begins[..., None] + ends
    scores = scores.masked_fill(~whole, NONE).flatten(1)
    top = scores.topk(min(_SPANS, scores.shape[1]), 1)
    first = top.indices // LONGEST_SPAN
    last = (first + top.indices % LONGEST_SPAN).clamp(max=size - 1)
    return first, last, top.values.exp()
