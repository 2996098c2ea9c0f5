"""DPR's reader: answers as spans, each with the likelihood P(passage) · P(start | passage) · P(end | passage).

The likelihoods of spans with equal answers are added up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from whichsense.models.bert.cross_encoder import CrossEncoder, CrossEncoderOutput
from whichsense.models.bert.inputs import InputRow, Inputs, text_mask
from whichsense.models.bert.running import inference, outputs
from whichsense.text.words import normalize
from whichsense.types import Candidate, Passage, Span

LONGEST_ANSWER = 10  # tokens, as in DPR
_BEST = 20  # spans of a passage
_ScoredSpan = tuple[float, int, int]
"""(log likelihood, first token, last token)."""


def log_likelihoods(
    output: CrossEncoderOutput, mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Log P of each passage (passages), and of each token to begin and to end an answer in its passage (passages ×
    tokens). `mask` is True at the tokens of the texts."""
    assert output.starts is not None and output.ends is not None
    lowest = torch.finfo(output.starts.dtype).min
    starts = output.starts.masked_fill(~mask, lowest).log_softmax(-1)
    ends = output.ends.masked_fill(~mask, lowest).log_softmax(-1)
    return output.relevance.log_softmax(-1), starts, ends


def find_answers(
    model: CrossEncoder,
    inputs: Inputs,
    question: str,
    passages: Sequence[Passage],
    longest: int = LONGEST_ANSWER,
) -> list[Candidate]:
    """The answers among the best spans of all passages, with their likelihoods, best first."""
    rows = inputs.pairs(question, passages)
    if not rows:
        return []
    relevance = torch.zeros(len(rows))
    spans: list[list[_ScoredSpan]] = [[] for _ in rows]
    with inference(model):
        for places, output in outputs(model, rows, inputs.tokenizer.pad_token_id):
            own = [rows[place] for place in places]
            relevance[places] = output.relevance.cpu()
            mask = text_mask(own).to(output.relevance.device)
            # Passages compete over all batches, so their log P is taken below.
            alone = output._replace(relevance=output.relevance.new_zeros(1))
            _, starts, ends = log_likelihoods(alone, mask)
            best_spans = _best_spans(starts, ends, own, longest)
            for place, best in zip(places, best_spans, strict=True):
                spans[place] = best
    log_passages = relevance.log_softmax(-1).tolist()
    return _merge_spans(passages, rows, log_passages, spans)


def _best_spans(
    starts: Tensor, ends: Tensor, rows: Sequence[InputRow], longest: int
) -> Iterator[list[_ScoredSpan]]:
    """The likeliest spans of each row of at most `longest` tokens."""
    # rows × first token × last token, of which only the next `longest` are looked at.
    padded = functional.pad(ends, (0, longest - 1), value=-torch.inf)
    reach = padded.unfold(1, longest, 1)
    scores = (starts[:, :, None] + reach).flatten(1)
    values, flat = scores.topk(min(_BEST, scores.shape[1]))
    firsts = flat // longest
    lasts = firsts + flat % longest
    columns = zip(values.tolist(), firsts.tolist(), lasts.tolist(), strict=True)
    for row, (row_values, row_firsts, row_lasts) in zip(rows, columns, strict=True):
        inside = range(row.text_start, row.text_start + len(row.places))
        spans = []
        for span in zip(row_values, row_firsts, row_lasts, strict=True):
            if span[1] in inside and span[2] in inside:
                spans.append(span)
        yield spans


def _merge_spans(
    passages: Sequence[Passage],
    rows: Sequence[InputRow],
    log_passages: Sequence[float],
    spans: Sequence[Sequence[_ScoredSpan]],
) -> list[Candidate]:
    """Merge spans with equal normalized text: likelihoods are added, the likeliest span gives the wording."""
    by_form: dict[str, list[Span]] = {}
    for passage, row, log_passage, best in zip(
        passages, rows, log_passages, spans, strict=True
    ):
        for score, first, last in best:
            start = row.places[first - row.text_start][0]
            end = row.places[last - row.text_start][1]
            form = normalize(passage.text[start:end])
            if form:
                likelihood = math.exp(score + log_passage)
                span = Span(passage, start, end, likelihood)
                by_form.setdefault(form, []).append(span)
    answers = []
    for alike in by_form.values():
        total = sum(span.score for span in alike)
        ordered = sorted(alike, key=lambda span: -span.score)
        best_span = ordered[0]
        text = best_span.passage.text[best_span.start : best_span.end]
        answers.append(Candidate(text, total, tuple(ordered)))
    return sorted(answers, key=lambda answer: -answer.score)


def over_threshold(answers: Sequence[Candidate], gamma: float) -> list[Candidate]:
    """The answers likelier than γ; the best one in any case."""
    likely = [answer for answer in answers[1:] if answer.score > gamma]
    return [*answers[:1], *likely]
