"""Losses over lists: which passages answer, where the answers are, and the soft labels of a teacher for both."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from whichsense.train.compact.data.batch import ListBatch, SoftLabels

NONE = -1e4  # a score that stands for minus infinity
_FLOOR = (
    -25.0
)  # the least log probability that counts: one hopeless token must not dominate a batch
_LEAST_MASS = -30.0  # the same of an answer in a passage
_INVALID_RELEVANCE = -20.0  # of the teacher, for a slot without a passage
_NULL_WEIGHT = 0.5  # of a list without an answer
_MOST_REFUTED = 0.999  # the probability of a refuted answer that still counts: the loss stays finite
_TEACHER_FLOOR = 0.01  # added to the teacher's share of every passage


def _masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean of the values in the mask; 0 if it is empty."""
    count = mask.sum().clamp(min=1)
    return (values * mask).sum() / count


def shares(scores: Tensor, valid: Tensor) -> Tensor:
    """Log probabilities over a list's passages and, last, a null passage of score 0 (lists × slots + 1)."""
    scores = scores.view_as(valid).masked_fill(~valid, NONE)
    with_null = F.pad(scores, (0, 1))
    return F.log_softmax(with_null, dim=1)


def _listwise(logs: Tensor, batch: ListBatch) -> Tensor:
    """Every answer's passages should be likely; the null passage where there is no answer.

    `logs`: lists × slots + 1. Lists whose answers are refuted may have other answers: they do not count.
    """
    held = batch.held
    # Lists × answers: the log probability of all passages that hold an answer.
    passages = logs[:, :-1, None].masked_fill(~held, NONE)
    mass = passages.logsumexp(1)
    has_answer = held.any(1)
    count = has_answer.sum(1).clamp(min=1)
    answered = -(mass * has_answer).sum(1) / count
    unanswered = -_NULL_WEIGHT * logs[:, -1]
    each = torch.where(has_answer.any(1), answered, unanswered)
    return _masked_mean(each, ~batch.refuted)


def start_end(span: Tensor, region: Tensor) -> tuple[Tensor, Tensor]:
    """Log probabilities of each token to be an answer's first, and its last (pairs × tokens)."""
    scores = span.masked_fill(~region[..., None], NONE)
    first, last = F.log_softmax(scores, dim=1).unbind(-1)
    return first, last


def span_loss(batch: ListBatch, logs: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Every answer in a passage should be likely, at any of its places; passages are weighted by their shares.

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
    """The probability of each list's gold answers together, over all of its passages (lists)."""
    starts = first.gather(1, batch.first.flatten(0, 1))
    ends = last.gather(1, batch.last.flatten(0, 1))
    is_gold = batch.answer.flatten(0, 1) >= 0
    spans = (starts + ends).exp() * is_gold  # pairs × spans
    of_passage = spans.sum(1).view_as(batch.valid)
    return (logs[:, :-1].exp() * of_passage).sum(1)


def refutation(batch: ListBatch, logs: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Refuted answers should be unlikely, whatever is likely in their place."""
    mass = answer_mass(batch, logs, first, last)
    each = -torch.log1p(-mass.clamp(max=_MOST_REFUTED))
    return _masked_mean(each, batch.refuted)


def read(output: Mapping[str, Tensor], batch: ListBatch) -> dict[str, Tensor]:
    """Each part of a reader's loss; with soft labels, if the batch has any, those of the teacher too."""
    logs = shares(output["relevance"], batch.valid)
    first, last = start_end(output["span"], batch.pairs.region)
    parts = {
        "relevance": _listwise(logs, batch),
        "span": span_loss(batch, logs, first, last),
        "refuted": refutation(batch, logs, first, last),
    }
    early = None
    if "exit" in output:
        early = shares(output["exit"], batch.valid)
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
    """The teacher's probabilities over passages and the null passage (lists × slots + 1)."""
    nothing = torch.full_like(taught.relevance, _INVALID_RELEVANCE)
    scores = torch.where(valid, taught.relevance, nothing)
    return F.pad(scores, (0, 1)).softmax(1)


def _distillation(targets: Tensor, logs: Tensor, lists: Tensor) -> Tensor:
    """The cross-entropy between the teacher's shares and ours, over these lists."""
    each = -(targets * logs.clamp(min=_FLOOR)).sum(1)
    return _masked_mean(each, lists)


def _span_distillation(
    taught: SoftLabels, targets: Tensor, valid: Tensor, first: Tensor, last: Tensor
) -> Tensor:
    weights = (targets[:, :-1] + _TEACHER_FLOOR) * valid
    total = weights.sum().clamp(min=1e-6)
    weights = (weights / total).flatten()
    # Pairs × 2 × pieces: our log probabilities of the teacher's likeliest tokens.
    logs = torch.stack([first, last], 1).gather(2, taught.places)
    logs = logs.clamp(min=_FLOOR)
    each = (taught.chances * logs).sum((1, 2))
    return -(weights * each).sum()


def _ambiguity(logits: Tensor, batch: ListBatch) -> dict[str, Tensor]:
    """The log loss over the mean of all passages, and of the question alone, where annotators gave a label."""
    each = logits.view_as(batch.valid)
    valid = batch.valid
    count = valid.sum(1).clamp(min=1)
    mean_logit = (each * valid).sum(1) / count
    predictions = {"ambiguity": mean_logit}
    if batch.alone:
        predictions["alone"] = each[:, -1]
    labelled = batch.ambiguous >= 0
    labels = batch.ambiguous.clamp(min=0)
    parts = {}
    for name, logit in predictions.items():
        loss = F.binary_cross_entropy_with_logits(logit, labels, reduction="none")
        parts[name] = _masked_mean(loss, labelled)
    return parts
