"""What is learnt from lists: which passages answer, where the answers stand, and what a teacher says of both."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from whichsense.train.compact.data.batch import ListBatch, Taught

NONE = -1e4
_FLOOR = -25.0  # the least log probability that still counts: one hopeless token must not rule a batch


def mean(values: Tensor, counted: Tensor) -> Tensor:
    """Of those that are counted; 0 where none is."""
    return (values * counted).sum() / counted.sum().clamp(min=1)


def shares(scores: Tensor, valid: Tensor) -> Tensor:
    """Log probabilities over a list's passages and, last, a null passage of score 0 (lists × slots + 1)."""
    scores = scores.view_as(valid).masked_fill(~valid, NONE)
    return F.log_softmax(F.pad(scores, (0, 1)), dim=1)


def listwise(logs: Tensor, held: Tensor, told: Tensor) -> Tensor:
    """Every answer's passages should be likely; where there is none, the null passage (at half weight).

    Only of lists whose answers are `told`.
    """
    mass = logs[:, :-1, None].masked_fill(~held, NONE).logsumexp(1)
    there = held.any(1)
    found = -(mass * there).sum(1) / there.sum(1).clamp(min=1)
    each = torch.where(there.any(1), found, -0.5 * logs[:, -1])
    return mean(each, told)


def start_end(span: Tensor, region: Tensor) -> tuple[Tensor, Tensor]:
    """Log probabilities of each token to be an answer's first, and its last."""
    first, last = F.log_softmax(
        span.masked_fill(~region[..., None], NONE), dim=1
    ).unbind(-1)
    return first, last


def spans(batch: ListBatch, logs: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """Every answer that stands in a passage should be likely, anywhere; passages count as they are believed to answer.

    Were one answer enough, the likelier of two would soon be the only one.
    """
    flat = batch.first.flatten(0, 1), batch.last.flatten(0, 1)
    each = first.gather(1, flat[0]) + last.gather(1, flat[1])
    own = batch.answer.flatten(0, 1)[..., None] == torch.arange(
        batch.held.shape[-1], device=each.device
    )
    there = own.any(1)
    mass = each[..., None].masked_fill(~own, NONE).logsumexp(1).clamp(min=-30)
    scores = (mass * there).sum(1) / there.sum(1).clamp(min=1)
    good = there.any(1).view_as(batch.valid) & batch.told[:, None]
    weights = logs[:, :-1].detach().masked_fill(~good, NONE).softmax(1) * good
    return -(weights * scores.view_as(weights)).sum() / good.any(1).sum().clamp(min=1)


def read(output: Mapping[str, Tensor], batch: ListBatch) -> dict[str, Tensor]:
    """Each part of a reader's loss, without and, where there is a teacher, with what it says: not where answers are
    complete, of which it knows less."""
    pairs = batch.pairs
    logs = shares(output["relevance"], batch.valid)
    first, last = start_end(output["span"], pairs.region)
    found = {
        "relevance": listwise(logs, batch.held, batch.told),
        "span": spans(batch, logs, first, last),
    }
    early = shares(output["exit"], batch.valid) if "exit" in output else None
    if early is not None:
        found["exit"] = listwise(early, batch.held, batch.told)
    if "ambiguity" in output:
        found |= _ambiguity(output["ambiguity"], batch)
    if batch.taught is not None:
        believed, open_lists = _believed(batch.taught, batch.valid), ~batch.complete
        found["taught"] = mean(-(believed * logs.clamp(min=_FLOOR)).sum(1), open_lists)
        if early is not None:
            found["taught_exit"] = mean(
                -(believed * early.clamp(min=_FLOOR)).sum(1), open_lists
            )
        taught = batch.valid & open_lists[:, None]
        found["taught_span"] = _taught_spans(
            batch.taught, believed, taught, first, last
        )
    return found


def _believed(taught: Taught, valid: Tensor) -> Tensor:
    scores = torch.where(
        valid, taught.relevance, torch.full_like(taught.relevance, -20.0)
    )
    return F.pad(scores, (0, 1)).softmax(1)


def _taught_spans(
    taught: Taught, believed: Tensor, valid: Tensor, first: Tensor, last: Tensor
) -> Tensor:
    weights = (believed[:, :-1] + 0.01) * valid
    weights = (weights / weights.sum().clamp(min=1e-6)).flatten()
    found = torch.stack([first, last], 1).gather(2, taught.places).clamp(min=_FLOOR)
    return -(weights * (taught.chances * found).sum((1, 2))).sum()


def _ambiguity(logits: Tensor, batch: ListBatch) -> dict[str, Tensor]:
    """Over the mean of all passages, and by the question alone; only where somebody said something."""
    each = logits.view_as(batch.valid)
    asked = {"ambiguity": (each * batch.valid).sum(1) / batch.valid.sum(1).clamp(min=1)}
    if batch.alone:
        asked["alone"] = each[:, -1]
    known = batch.ambiguous >= 0
    found = {}
    for name, logit in asked.items():
        loss = F.binary_cross_entropy_with_logits(
            logit, batch.ambiguous.clamp(min=0), reduction="none"
        )
        found[name] = mean(loss, known)
    return found
