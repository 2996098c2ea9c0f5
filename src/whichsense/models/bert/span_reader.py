"""Answers as spans of passages, each with its likelihood: P(passage) × P(start | passage) × P(end | passage).

DPR's reader. A span's likelihood competes with every span of every passage; those of equal answers are added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from whichsense.models.bert.cross_encoder import CrossEncoder, Read
from whichsense.models.bert.inputs import Inputs, Row, text_mask
from whichsense.models.bert.running import inference, outputs
from whichsense.text.words import normalize
from whichsense.types import Candidate, Passage, Span

LONGEST_ANSWER = 10  # tokens, as in DPR
_BEST = 20  # spans of a passage that are looked at


def log_likelihoods(read: Read, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log P of each passage among its rivals, and of each token to begin and to end an answer in its passage."""
    assert read.starts is not None and read.ends is not None
    nowhere = torch.finfo(read.starts.dtype).min
    starts = read.starts.masked_fill(~mask, nowhere).log_softmax(-1)
    ends = read.ends.masked_fill(~mask, nowhere).log_softmax(-1)
    return read.relevance.log_softmax(-1), starts, ends


def find_answers(
    model: CrossEncoder,
    inputs: Inputs,
    question: str,
    passages: Sequence[Passage],
    longest: int = LONGEST_ANSWER,
) -> list[Candidate]:
    """Every answer among the best spans, with its likelihood, best first."""
    rows = inputs.pairs(question, passages)
    if not rows:
        return []
    relevance = torch.zeros(len(rows))
    spans: list[list[tuple[float, int, int]]] = [[] for _ in rows]
    with inference(model):
        for places, read in outputs(model, rows, inputs.tokenizer.pad_token_id):
            own = [rows[place] for place in places]
            relevance[places] = read.relevance.cpu()
            alone = read._replace(relevance=read.relevance.new_zeros(1))
            _, starts, ends = log_likelihoods(
                alone, text_mask(own).to(read.relevance.device)
            )
            for place, best in zip(
                places, _best_spans(starts, ends, own, longest), strict=True
            ):
                spans[place] = best
    likely = relevance.log_softmax(-1).tolist()
    return _merged(passages, rows, likely, spans)


def _best_spans(
    starts: Tensor, ends: Tensor, rows: Sequence[Row], longest: int
) -> Iterator[list[tuple[float, int, int]]]:
    """The likeliest spans of each row within the length, as (log likelihood, first token, last token)."""
    # For each first token the next `longest` as last ones: no more is looked at than may be an answer.
    reach = functional.pad(ends, (0, longest - 1), value=-torch.inf).unfold(
        1, longest, 1
    )
    scores = (starts[:, :, None] + reach).flatten(1)
    values, where = scores.topk(min(_BEST, scores.shape[1]))
    firsts, lasts = where // longest, where // longest + where % longest
    for row, *found in zip(
        rows, values.tolist(), firsts.tolist(), lasts.tolist(), strict=True
    ):
        inside = range(row.text_start, row.text_start + len(row.places))
        yield [
            span
            for span in zip(*found, strict=True)
            if span[1] in inside and span[2] in inside
        ]


def _merged(
    passages: Sequence[Passage],
    rows: Sequence[Row],
    likely: Sequence[float],
    spans: Sequence[Sequence[tuple[float, int, int]]],
) -> list[Candidate]:
    """Spans that say the same are one answer: likelihoods are added, the likeliest span gives the wording."""
    import math

    found: dict[str, list[tuple[float, Span]]] = {}
    for passage, row, log_passage, best in zip(
        passages, rows, likely, spans, strict=True
    ):
        for score, first, last in best:
            start, end = (
                row.places[first - row.text_start][0],
                row.places[last - row.text_start][1],
            )
            if form := normalize(passage.text[start:end]):
                likelihood = math.exp(score + log_passage)
                found.setdefault(form, []).append(
                    (likelihood, Span(passage, start, end, likelihood))
                )
    answers = []
    for alike in found.values():
        ordered = [span for _, span in sorted(alike, key=lambda item: -item[0])]
        top = ordered[0]
        total = sum(likelihood for likelihood, _ in alike)
        answers.append(
            Candidate(top.passage.text[top.start : top.end], total, tuple(ordered))
        )
    return sorted(answers, key=lambda answer: -answer.score)


def over_threshold(answers: Sequence[Candidate], gamma: float) -> list[Candidate]:
    """The answers likelier than γ; the best one in any case."""
    return [
        answer
        for place, answer in enumerate(answers)
        if place == 0 or answer.score > gamma
    ]
