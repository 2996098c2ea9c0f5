"""DPR's extractive reader: spans of passages, trained on the likelihood of gold ones; γ decides how many answers.

AmbigQA's baseline "Thresholding" raises the likelihood of any gold span (`any`). Its answers compete: one may take all.
With `each`, the likelihood of every gold answer is raised, so that γ finds all of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from whichsense.datasets import Question
from whichsense.metrics import ambignq
from whichsense.models.bert import saved
from whichsense.models.bert.cross_encoder import CrossEncoder
from whichsense.models.bert.inputs import InputRow, padded, text_mask
from whichsense.models.bert.span_reader import (
    find_answers,
    log_likelihoods,
    over_threshold,
)
from whichsense.train.loop.batches import Lazy, shuffle_batches
from whichsense.train.loop.task import Task, TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.encoders.bert import EncoderModel
from whichsense.train.tasks.encoders.reader_items import ReaderItem, build_items
from whichsense.types import Candidate

_TASK = "extractive-reader"
_GAMMAS = tuple(step / 100 for step in (0.1, 0.2, 0.5, 1, 1.5, *range(2, 100)))
_ANSWERS = 1000  # answers of a question at most: numbers an answer within a batch
_CANDIDATES = 20  # answers of a question that γ chooses from


@dataclass(frozen=True, slots=True)
class _ReadingSettings:
    """A recipe's `[reading]`: what is read, and what counts."""

    batch: int = 16
    passages: int = 24
    """Passages of a question in training: one for each gold answer at least, and others that were found."""
    depth: int = 100
    read: int = 100
    """Passages that are read in evaluation."""
    longest_answer: int = 10
    """Tokens."""
    objective: Literal["any", "each"] = "any"
    rewrites: bool = False
    """Also learn from annotators' rewrites: with one answer each, over the passages of their question, as round-trip
    prediction asks them."""


@dataclass(frozen=True, slots=True)
class _ExtractiveReaderOptions:
    model: EncoderModel = field(default_factory=EncoderModel)
    data: TrainingData = field(default_factory=TrainingData)
    reading: _ReadingSettings = field(default_factory=_ReadingSettings)


class _ExtractiveReaderTask(Task[CrossEncoder, dict[str, Any]]):
    """Marginal likelihood over all spans that are a gold answer."""

    metric, higher_is_better = "f1_ans", True

    def __init__(self, options: _ExtractiveReaderOptions) -> None:
        data, reading = options.data, options.reading
        self.options = options
        self.inputs = options.model.inputs()
        evidence = data.evidence(reading.depth)
        self.items = build_items(data.training(), evidence, rewrites=reading.rewrites)
        self.dev = data.development()
        self.dev_evidence = data.searched(self.dev, reading.read)
        self._gamma = 0.5

    def build(self) -> CrossEncoder:
        model = CrossEncoder(self.options.model.encoder(), reads=True)
        return self.options.model.load_start(model, _TASK)

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        def collate(places: list[int]) -> dict[str, Any]:
            items = [self.items[place] for place in places]
            return self._collate(items, f"{seed}/{epoch}")

        size = self.options.reading.batch
        return Lazy(shuffle_batches(len(self.items), size, epoch, seed), collate)

    def _collate(self, items: Sequence[ReaderItem], seed: str) -> dict[str, Any]:
        """`rows`: one for each passage; `sizes`: passages of each question; `spans`: [spans, 4], as row, first token,
        last token, number of the answer."""
        reading = self.options.reading
        rows: list[InputRow] = []
        spans: list[tuple[int, int, int, int]] = []
        sizes = []
        for number, item in enumerate(items):
            rng = random.Random(f"{seed}/{item.question.id}")
            passages = item.draw_passages(reading.passages, rng)
            own_rows = self.inputs.pairs(item.question.text, passages)
            for passage, row in zip(passages, own_rows, strict=True):
                gold = item.gold_spans(passage, row, reading.longest_answer)
                for start, end, answer in gold:
                    # Unique in the batch, so that `each` can tell answers apart.
                    answer_number = number * _ANSWERS + answer
                    spans.append((len(rows), start, end, answer_number))
                rows.append(row)
            sizes.append(len(passages))
        return {
            "rows": padded(rows, self.inputs.tokenizer.pad_token_id),
            "mask": text_mask(rows),
            "sizes": sizes,
            "spans": torch.tensor(spans, dtype=torch.int64).reshape(-1, 4),
        }

    def loss(self, model: CrossEncoder, batch: dict[str, Any]) -> Tensor:
        outputs = model(batch["rows"])
        _, starts, ends = log_likelihoods(outputs, batch["mask"])
        # Log likelihoods: of a passage among those of its question, then of start and end in it.
        relevance = torch.split(outputs.relevance, batch["sizes"])
        by_question = [scores.log_softmax(-1) for scores in relevance]
        passages = torch.cat(by_question)
        row, start, end, answer = batch["spans"].unbind(-1)
        spans = passages[row] + starts[row, start] + ends[row, end]
        if self.options.reading.objective == "any":
            answer = answer // _ANSWERS  # one group for each question
        groups, group = answer.unique(return_inverse=True)
        if not len(groups):  # every gold span of the batch was cut off
            zero: Tensor = outputs.relevance.sum() * 0.0
            return zero
        # logsumexp of each group: the maximum is taken out first, as exp would vanish.
        lowest = spans.new_full((len(groups),), -torch.inf)
        top = lowest.scatter_reduce(0, group, spans.detach(), "amax")
        sums = spans.new_zeros(len(groups)).index_add(
            0, group, (spans - top[group]).exp()
        )
        total = sums.log() + top
        return -total.mean()

    def evaluate(self, model: CrossEncoder) -> dict[str, float]:
        """Select γ, and compute F1ans with it, with the first answer alone, and over ambiguous questions."""
        longest = self.options.reading.longest_answer
        predictions = []
        for question in self.dev:
            hits = self.dev_evidence.hits(question.text)
            passages = [hit.passage for hit in hits]
            answers = find_answers(model, self.inputs, question.text, passages, longest)
            predictions.append(answers[:_CANDIDATES])
        first_answers = [answers[:1] for answers in predictions]
        scores = {}
        for gamma in _GAMMAS:
            answers_over = [over_threshold(one, gamma) for one in predictions]
            scores[gamma] = mean_f1(self.dev, answers_over)
        # Of equally good ones the highest γ.
        self._gamma = max(scores, key=lambda gamma: (scores[gamma], gamma))
        metrics = {
            "f1_ans": scores[self._gamma],
            "gamma": self._gamma,
            "f1_ans_one": mean_f1(self.dev, first_answers),
        }
        ambiguous = []
        their_answers = []
        for question, one in zip(self.dev, predictions, strict=True):
            if question.is_ambiguous:
                ambiguous.append(question)
                their_answers.append(over_threshold(one, self._gamma))
        if ambiguous:
            metrics["f1_ans_multi"] = mean_f1(ambiguous, their_answers)
        return metrics

    def save(self, model: CrossEncoder, folder: Path) -> None:
        """Save with the γ that was best on dev."""
        longest = self.options.reading.longest_answer
        options = {"gamma": self._gamma, "longest_answer": longest}
        saved.save(
            folder, model, self.inputs, task=_TASK, config=model.config, options=options
        )

    def data(self) -> list[Path]:
        return self.options.data.paths()


def mean_f1(
    questions: Sequence[Question], predictions: Sequence[Sequence[Candidate]]
) -> float:
    """F1ans as the official script computes it; a question without an answer scores zero."""
    total = 0.0
    for question, candidates in zip(questions, predictions, strict=True):
        if candidates:
            answers = [candidate.answer for candidate in candidates]
            # Of several annotations the one that fits best counts.
            scores = []
            for gold in question.answer_sets:
                scores.append(ambignq.f1_answers(gold, answers))
            total += max(scores)
    return total / len(questions)


SPEC = TaskSpec(_ExtractiveReaderOptions, _ExtractiveReaderTask)
