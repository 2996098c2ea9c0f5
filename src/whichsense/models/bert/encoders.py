"""Models over BERT-like encoders: dual encoder, reranker, extractive reader, ambiguity classifier."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from whichsense.models.bert import inputs as _inputs
from whichsense.models.bert.inputs import (
    InputRow,
    Inputs,
    best_device,
    compile_layers,
    in_full,
    inference,
    outputs,
    text_mask,
)
from whichsense.text.words import normalize
from whichsense.types import Candidate, Passage, Span

Network = TypeVar("Network", bound=nn.Module)

# A cross encoder over question and passage, with a relevance head and, for reading, a span head.


class CrossEncoderOutput(NamedTuple):
    """For each row: the [CLS] vector (rows × width), the relevance (rows), and with a span head each token's logits
    to begin and to end an answer (rows × tokens)."""

    vectors: Tensor
    relevance: Tensor
    starts: Tensor | None = None
    ends: Tensor | None = None


class CrossEncoder(nn.Module):
    """An encoder with a relevance head over its first token and, if `reads`, a span head over all tokens."""

    def __init__(self, encoder: nn.Module, *, reads: bool) -> None:
        super().__init__()
        self.encoder = encoder
        config: Any = encoder.config
        self.config = config
        width = int(config.hidden_size)
        self.relevance = nn.Linear(width, 1)
        self.span = nn.Linear(width, 2) if reads else None
        for head in (self.relevance, self.span):
            if head is not None:
                nn.init.normal_(head.weight, std=0.02)
                nn.init.zeros_(head.bias)

    def compile(self, *arguments: Any, **options: Any) -> None:
        compile_layers(self.encoder, *arguments, **options)

    def forward(self, batch: Mapping[str, Tensor]) -> CrossEncoderOutput:
        hidden = self.encoder(**fitting(self.config, batch)).last_hidden_state.float()
        first = hidden[:, 0]
        with in_full(hidden):
            relevance = self.relevance(first).squeeze(-1)
            if self.span is None:
                return CrossEncoderOutput(first, relevance)
            starts, ends = self.span(hidden).unbind(-1)
        return CrossEncoderOutput(first, relevance, starts, ends)


def fitting(config: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the batch without segments, if the architecture has none."""
    inputs = dict(batch)
    if getattr(config, "type_vocab_size", 0) <= 1:
        inputs.pop("token_type_ids", None)
    return inputs


def _load(
    folder: str | Path,
    task: str,
    build: Callable[[Callable[[], nn.Module], Mapping[str, Any]], Network],
    device: str,
) -> tuple[Network, Inputs, Mapping[str, Any]]:
    """Load a trained model, its inputs and its options; `build` is given what makes an encoder, and the options."""
    about = _inputs.described(folder, task)
    model = build(partial(_inputs.empty_encoder, about.folder), about.options)
    _inputs.fill(model, about.folder)
    model = model.to(device or best_device()).eval()
    return model, _inputs.tokenizer_of(about.folder), about.options


def load_cross_encoder(
    folder: str | Path, task: str, *, reads: bool, device: str = ""
) -> tuple[CrossEncoder, Inputs]:
    """Load a trained cross encoder from its folder."""
    return _load(folder, task, lambda encoder, _: CrossEncoder(encoder(), reads=reads), device)[:2]


def relevances(
    model: CrossEncoder, inputs: Inputs, question: str, passages: Sequence[Passage]
) -> list[float]:
    """Return the relevance of each passage to the question (logits), in the order of the passages."""
    rows = inputs.pairs(question, passages, places=False)
    relevance = torch.zeros(len(rows))
    with inference(model):
        for places, output in outputs(model, rows, inputs.tokenizer.pad_token_id):
            relevance[places] = output.relevance.cpu()
    scores: list[float] = relevance.tolist()
    return scores


# DPR's dual encoder: one tower for questions, one for passages; relevance is the inner product of
# their first tokens.
#
# An index compares unit vectors by cosine. For cosine to rank as the inner product does, a passage's
# vector gets one more number: (p, √(m² − |p|²)) / m, with m the norm of the longest one; a question's
# vector gets a zero.

TASK = "dual-encoder"
# The norm m relative to the longest vector measured. Longer vectors are shortened to m.
_ROOM = 1.1


class DualEncoder(nn.Module):
    """Two encoders of one shape."""

    def __init__(self, question: nn.Module, passage: nn.Module) -> None:
        super().__init__()
        self.question = question
        self.passage = passage
        config: Any = question.config
        self.config = config

    def forward(self, batch: Mapping[str, Mapping[str, Tensor]]) -> tuple[Tensor, Tensor]:
        """Return vectors of the questions and of the passages of a batch."""
        questions = self.vectors("question", batch["questions"])
        return questions, self.vectors("passage", batch["passages"])

    def vectors(self, tower: str, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the state of the first token of each row (rows × width)."""
        encoder = getattr(self, tower)
        hidden: Tensor = encoder(**fitting(self.config, batch)).last_hidden_state
        return hidden[:, 0].float()


class _Tower(nn.Module):
    """One tower as a module of its own."""

    def __init__(self, model: DualEncoder, name: str) -> None:
        super().__init__()
        self.model = model
        self.name = name

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        return self.model.vectors(self.name, batch)


def encode(
    model: DualEncoder, tower: str, rows: Sequence[InputRow], pad: int
) -> NDArray[np.float32]:
    """Return the vectors of rows (rows × width), not normalized."""
    vectors = np.zeros((len(rows), int(model.config.hidden_size)), dtype=np.float32)
    half = _Tower(model, tower)
    with inference(half):
        for places, batch in outputs(half, rows, pad):
            vectors[places] = batch.cpu().numpy()
    return vectors


def _pad_passages(vectors: NDArray[np.float32], longest: float) -> NDArray[np.float32]:
    """Passages' vectors as unit vectors with the number that makes cosines rank as inner products."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = vectors * np.minimum(1.0, longest / np.maximum(norms, 1e-9)) / longest
    rest = np.sqrt(np.maximum(0.0, 1.0 - np.square(scaled).sum(axis=1, keepdims=True)))
    return np.concatenate([scaled, rest], axis=1).astype(np.float32)


def _pad_questions(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Questions' vectors as unit vectors with a zero in that place."""
    norms = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    padded = np.concatenate([vectors / norms, np.zeros_like(norms)], axis=1)
    return padded.astype(np.float32)


@dataclass(frozen=True)
class DPR:
    """An `Encoder` for an index, from a folder that training wrote. Loads on first use."""

    folder: str
    device: str = ""

    @property
    def name(self) -> str:
        return self.folder

    @property
    def dimensions(self) -> int:
        return int(self._parts[0].config.hidden_size) + 1

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts whose first line is a title."""
        model, inputs, longest = self._parts
        passages = []
        for text in texts:
            title, newline, body = text.partition("\n")
            passages.append((title, body) if newline else ("", title))
        rows = inputs.passages(passages)
        vectors = encode(model, "passage", rows, inputs.tokenizer.pad_token_id)
        return _pad_passages(vectors, longest)

    def encode_questions(self, questions: Sequence[str]) -> NDArray[np.float32]:
        model, inputs, _ = self._parts
        rows = inputs.single(questions)
        vectors = encode(model, "question", rows, inputs.tokenizer.pad_token_id)
        return _pad_questions(vectors)

    @cached_property
    def _parts(self) -> tuple[DualEncoder, Inputs, float]:
        return load_dual_encoder(self.folder, self.device)


def load_dual_encoder(folder: str | Path, device: str = "") -> tuple[DualEncoder, Inputs, float]:
    """Load a dual encoder, its inputs, and the norm of its longest passage vector."""
    model, inputs, options = _load(
        folder, TASK, lambda encoder, _: DualEncoder(encoder(), encoder()), device
    )
    return model, inputs, float(options["longest_vector"])


def save(
    folder: Path, model: DualEncoder, inputs: Inputs, passages: Sequence[tuple[str, str]]
) -> None:
    """Write a folder. The norm m is estimated from the vectors of `passages` (title and text)."""
    rows = inputs.passages(passages)
    vectors = encode(model, "passage", rows, inputs.tokenizer.pad_token_id)
    longest = _ROOM * float(np.linalg.norm(vectors, axis=1).max())
    _inputs.save(
        folder, model, inputs, task=TASK, config=model.config, options={"longest_vector": longest}
    )


def similarity(questions: Tensor, passages: Tensor) -> Tensor:
    """Return inner products (questions × passages)."""
    with in_full(questions):
        return questions.float() @ passages.float().T


# DPR's reader: answers as spans, each with the likelihood P(passage) · P(start | passage) · P(end |
# passage).
#
# The likelihoods of spans with equal answers are added up.

LONGEST_ANSWER = 10  # tokens, as in DPR
_BEST = 20  # spans of a passage
_ScoredSpan = tuple[float, int, int]
"""(log likelihood, first token, last token)."""


def log_likelihoods(output: CrossEncoderOutput, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
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
    """Return the answers among the best spans of all passages, with their likelihoods, best first."""
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
    return _merge_spans(passages, rows, relevance.log_softmax(-1).tolist(), spans)


def _best_spans(
    starts: Tensor, ends: Tensor, rows: Sequence[InputRow], longest: int
) -> Iterator[list[_ScoredSpan]]:
    """Yield the likeliest spans of each row of at most `longest` tokens."""
    # rows × first token × last token, of which only the next `longest` are looked at.
    padded = functional.pad(ends, (0, longest - 1), value=-torch.inf)
    scores = (starts[:, :, None] + padded.unfold(1, longest, 1)).flatten(1)
    values, flat = scores.topk(min(_BEST, scores.shape[1]))
    firsts = flat // longest
    lasts = firsts + flat % longest
    columns = zip(values.tolist(), firsts.tolist(), lasts.tolist(), strict=True)
    for row, (row_values, row_firsts, row_lasts) in zip(rows, columns, strict=True):
        inside = range(row.text_start, row.text_start + len(row.places))
        spans = [
            span
            for span in zip(row_values, row_firsts, row_lasts, strict=True)
            if span[1] in inside and span[2] in inside
        ]
        yield spans


def _merge_spans(
    passages: Sequence[Passage],
    rows: Sequence[InputRow],
    log_passages: Sequence[float],
    spans: Sequence[Sequence[_ScoredSpan]],
) -> list[Candidate]:
    """Merge spans with equal normalized text: likelihoods are added, the likeliest span gives the wording."""
    by_form: dict[str, list[Span]] = {}
    for passage, row, log_passage, best in zip(passages, rows, log_passages, spans, strict=True):
        for score, first, last in best:
            start = row.places[first - row.text_start][0]
            end = row.places[last - row.text_start][1]
            form = normalize(passage.text[start:end])
            if form:
                span = Span(passage, start, end, math.exp(score + log_passage))
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
    """Return the answers likelier than γ; the best one in any case."""
    likely = [answer for answer in answers[1:] if answer.score > gamma]
    return [*answers[:1], *likely]


# A classifier of ambiguous questions: one logit for a question, alone or with the passages retrieved
# for it.


class AmbiguityClassifier(nn.Module):
    """A cross encoder whose relevance head is trained to detect ambiguity."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.reader = CrossEncoder(encoder, reads=False)
        self.config = self.reader.config

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        logits: Tensor = self.reader(batch).relevance
        return logits


def detector_row(inputs: Inputs, question: str, passages: Sequence[Passage]) -> InputRow:
    """`[CLS] question [SEP]`, or `[CLS] question [SEP] passage passage … [SEP]`, truncated."""
    if not passages:
        return inputs.single([question])[0]
    texts = [(f"{passage.title}. " if passage.title else "") + passage.text for passage in passages]
    return inputs.pairs(question, [Passage("", "", " ".join(texts))], places=False)[0]


def load_classifier(
    folder: str | Path, device: str = ""
) -> tuple[AmbiguityClassifier, Inputs, int]:
    """Load a trained classifier, its inputs, and the number of passages that it reads with a question."""
    model, inputs, options = _load(
        folder, "ambiguity-detector", lambda encoder, _: AmbiguityClassifier(encoder()), device
    )
    return model, inputs, int(options["passages"])


def probabilities(
    model: AmbiguityClassifier, inputs: Inputs, rows: Sequence[InputRow]
) -> list[float]:
    """Return the probability of each question to be ambiguous."""
    ambiguous = torch.zeros(len(rows))
    with inference(model):
        for places, logits in outputs(model, rows, inputs.tokenizer.pad_token_id):
            ambiguous[places] = logits.sigmoid().float().cpu()
    values: list[float] = ambiguous.tolist()
    return values
