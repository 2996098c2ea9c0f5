"""Tasks over one encoder: the extractive reader and the ambiguity detector."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from whichsense.errors import BadInput
from whichsense.lab.datasets import Question, rewrites_as_questions
from whichsense.lab.metrics.ambignq import best_f1
from whichsense.lab.metrics.exact_match import normal_form
from whichsense.lab.metrics.statistics import detection
from whichsense.lab.tasks.rankers import EncoderModel, EncoderTask
from whichsense.lab.tasks.training_data import EvidenceSearch, TrainingData
from whichsense.lab.train.task import Lazy, TaskSpec, shuffle_batches
from whichsense.models.bert.encoders import (
    AmbiguityClassifier,
    CrossEncoder,
    detector_row,
    find_answers,
    log_likelihoods,
    over_threshold,
    probabilities,
)
from whichsense.models.bert.inputs import InputRow, padded, text_mask
from whichsense.text.words import words
from whichsense.types import Candidate, Passage, frozen

# What the extractive reader learns from: questions, the passages that hold each gold answer, and the
# token spans.


@frozen
class ReaderItem:
    """A question, for each gold answer the passages that hold it, and the other passages."""

    question: Question
    homes: tuple[tuple[Passage, ...], ...]
    others: tuple[Passage, ...]

    def draw_passages(self, count: int, rng: random.Random) -> list[Passage]:
        """Return one passage for each answer, then others up to `count`, in random order."""
        chosen: dict[str, Passage] = {}
        for home in self.homes:
            if home:
                passage = rng.choice(home)
                chosen[passage.id] = passage
        rest: dict[str, Passage] = {
            passage.id: passage
            for home in (*self.homes, self.others)
            for passage in home
            if passage.id not in chosen
        }
        missing = max(0, min(len(rest), count - len(chosen)))
        passages = [*chosen.values(), *rng.sample(list(rest.values()), missing)]
        rng.shuffle(passages)
        return passages

    def gold_spans(
        self, passage: Passage, row: InputRow, longest: int
    ) -> list[tuple[int, int, int]]:
        """Return the token spans of a row that are gold answers: first token, last token, number of the answer."""
        first_tokens: dict[int, int] = {}  # by the character at which a token begins
        last_tokens: dict[int, int] = {}  # by the character at which it ends
        for token, (start, end) in enumerate(row.places):
            first_tokens.setdefault(start, token)
            last_tokens[end] = token
        spans = []
        answers = zip(self.question.answers, self.homes, strict=True)
        for number, (aliases, home) in enumerate(answers):
            home_ids = {other.id for other in home}
            if passage.id not in home_ids:
                continue
            for start, end in _find_answer(aliases, passage.text):
                first = first_tokens.get(start)
                last = last_tokens.get(end)
                if first is not None and last is not None and last - first < longest:
                    offset = row.text_start
                    spans.append((offset + first, offset + last, number))
        return spans


def build_items(
    questions: Sequence[Question], evidence: EvidenceSearch, *, rewrites: bool = False
) -> list[ReaderItem]:
    """Build items of all questions of which a passage holds an answer; with `rewrites` also of their rewrites."""
    evidence.search([question.text for question in questions])
    items = []
    for question in questions:
        passages = {hit.passage.id: hit.passage for hit in evidence.hits(question.text)}
        variants = [question]
        if rewrites:
            variants += rewrites_as_questions(question)
        for variant in variants:
            # A question and its rewrites share their passages, annotated ones included.
            item = _build_item(variant, passages, evidence)
            if any(item.homes):
                items.append(item)
    if not items:
        raise BadInput(
            "No gold answer stands in a passage that the index finds: there is nothing to learn."
        )
    return items


def _build_item(
    question: Question, passages: dict[str, Passage], evidence: EvidenceSearch
) -> ReaderItem:
    """Return the item of one question; annotated passages that are missing in `passages` are added to it."""
    annotated = _annotated_passages(question)
    for keys in annotated:
        for key in sorted(keys):
            if key not in passages:
                passages[key] = evidence.passage(key)
    homes = []
    at_home: set[str] = set()
    for aliases, keys in zip(question.answers, annotated, strict=True):
        home = []
        for passage in _candidate_passages(aliases, passages, keys):
            if _find_answer(aliases, passage.text):
                home.append(passage)
                at_home.add(passage.id)
        homes.append(tuple(home))
    others = [passage for passage in passages.values() if passage.id not in at_home]
    return ReaderItem(question, tuple(homes), tuple(others))


def _candidate_passages(
    aliases: Sequence[str], passages: Mapping[str, Passage], annotated: Set[str]
) -> Iterator[Passage]:
    """Yield passages with all words of some alias, of those that annotators named, if they did: a cheap first test."""
    alias_words = list(map(words, aliases))
    for key, passage in passages.items():
        if annotated and key not in annotated:
            continue
        text = passage.text.lower()
        for own in alias_words:
            if all(word in text for word in own):
                yield passage
                break


def _annotated_passages(question: Question) -> list[set[str]]:
    """Return for each distinct answer the ids of the passages that annotators named for it."""
    annotated = []
    for aliases in question.answers:
        forms = set(map(normal_form, aliases))
        keys: set[str] = set()
        for annotation in question.annotations:
            for pair in annotation.pairs:
                pair_forms = set(map(normal_form, pair.answers))
                if forms & pair_forms:
                    keys |= set(pair.evidence)
        annotated.append(keys)
    return annotated


def _find_answer(aliases: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Return the character spans of a text that are an answer in whole words, under any of its aliases.

    >>> _find_answer(["Lon Chaney Sr.", "Lon Chaney"], "In it Lon  Chaney (Lon Chaney, Sr.) plays.")
    [(6, 17), (19, 33)]
    """
    patterns = []
    for alias in aliases:
        pattern = r"\W+".join(map(re.escape, re.findall(r"\w+", alias)))
        if pattern:
            patterns.append(pattern)
    if not patterns:
        return []
    # The longest alias first, so that it is matched whole.
    patterns.sort(key=len, reverse=True)
    regex = re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)
    return [match.span() for match in regex.finditer(text)]


# DPR's extractive reader: spans of passages, trained on the likelihood of gold ones; γ decides how
# many answers.
#
# AmbigQA's baseline "Thresholding" raises the likelihood of any gold span (`any`). Its answers
# compete: one may take all. With `each`, the likelihood of every gold answer is raised, so that γ
# finds all of them.

_GAMMAS = tuple(step / 100 for step in (0.1, 0.2, 0.5, 1, 1.5, *range(2, 100)))
_ANSWERS = 1000  # answers of a question at most: numbers an answer within a batch
_CANDIDATES = 20  # answers of a question that γ chooses from


@frozen
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


@frozen
class _ExtractiveReaderOptions:
    model: EncoderModel = EncoderModel()
    data: TrainingData = TrainingData()
    reading: _ReadingSettings = _ReadingSettings()


class _ExtractiveReaderTask(EncoderTask[CrossEncoder]):
    """Marginal likelihood over all spans that are a gold answer."""

    task, metric = "extractive-reader", "f1_ans"

    def __init__(self, options: _ExtractiveReaderOptions) -> None:
        super().__init__(options)
        data, reading = options.data, options.reading
        self.size = reading.batch
        evidence = data.evidence(reading.depth)
        self.items = build_items(data.training(), evidence, rewrites=reading.rewrites)
        self.dev = data.development()
        self.dev_evidence = data.searched(self.dev, reading.read)
        self._gamma = 0.5

    def network(self, encoder: nn.Module) -> CrossEncoder:
        return CrossEncoder(encoder, reads=True)

    def collate(self, items: Sequence[ReaderItem], seed: str) -> dict[str, Any]:
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
            "rows": padded(rows, self.pad),
            "mask": text_mask(rows),
            "sizes": sizes,
            "spans": torch.tensor(spans, dtype=torch.int64).reshape(-1, 4),
        }

    def loss(self, model: CrossEncoder, batch: dict[str, Any]) -> Tensor:
        outputs = model(batch["rows"])
        _, starts, ends = log_likelihoods(outputs, batch["mask"])
        # Log likelihoods: of a passage among those of its question, then of start and end in it.
        relevance = torch.split(outputs.relevance, batch["sizes"])
        passages = torch.cat([scores.log_softmax(-1) for scores in relevance])
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
        sums = spans.new_zeros(len(groups)).index_add(0, group, (spans - top[group]).exp())
        return -(sums.log() + top).mean()

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

    @property
    def saved(self) -> dict[str, Any]:
        """With the γ that was best on dev."""
        longest = self.options.reading.longest_answer
        return {"gamma": self._gamma, "longest_answer": longest}


def mean_f1(questions: Sequence[Question], predictions: Sequence[Sequence[Candidate]]) -> float:
    """Return F1ans as the official script computes it; a question without an answer scores zero."""
    total = sum(
        best_f1(question.answer_sets, [one.answer for one in own])
        for question, own in zip(questions, predictions, strict=True)
    )
    return total / len(questions)


EXTRACTIVE_READER = TaskSpec(_ExtractiveReaderOptions, _ExtractiveReaderTask)


# The ambiguity detector: BERT says whether a question has more than one reading (AmbigQA 6.1,
# CAmbigNQ 6.1).


@frozen
class DetectorTraining:
    """A recipe's `[detecting]`."""

    batch: int = 16
    passages: int = 0
    """Passages that are read with the question; 0: the question alone."""


@frozen
class _AmbiguityDetectorOptions:
    model: EncoderModel = EncoderModel()
    data: TrainingData = TrainingData()
    detecting: DetectorTraining = DetectorTraining()


class _AmbiguityDetectorTask(EncoderTask[AmbiguityClassifier]):
    """A binary decision, selected by accuracy."""

    task, metric = "ambiguity-detector", "accuracy"

    def __init__(self, options: _AmbiguityDetectorOptions) -> None:
        super().__init__(options)
        self.rows, self.labels = self._encode(options.data.training())
        self.dev_rows, self.dev_labels = self._encode(options.data.development())

    def network(self, encoder: nn.Module) -> AmbiguityClassifier:
        return AmbiguityClassifier(encoder)

    def _encode(self, questions: Sequence[Question]) -> tuple[list[InputRow], list[bool]]:
        count = self.options.detecting.passages
        evidence = self.options.data.evidence(max(1, count))
        if count:
            evidence.search([question.text for question in questions])
        rows = []
        labels = []
        for question in questions:
            # Without passages there is no search at all.
            hits = evidence.hits(question.text)[:count] if count else []
            passages = [hit.passage for hit in hits]
            rows.append(detector_row(self.inputs, question.text, passages))
            labels.append(question.is_ambiguous)
        return rows, labels

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], dict[str, Any]]:
        lengths = [len(row) for row in self.rows]
        size = self.options.detecting.batch
        batches = shuffle_batches(len(lengths), size, epoch, seed, lengths)
        return Lazy(batches, self._collate)

    def _collate(self, places: Sequence[int]) -> dict[str, Any]:
        labels = torch.tensor([float(self.labels[place]) for place in places])
        rows = [self.rows[place] for place in places]
        return {"rows": padded(rows, self.pad), "labels": labels}

    def loss(self, model: AmbiguityClassifier, batch: dict[str, Any]) -> Tensor:
        logits = model(batch["rows"])
        return functional.binary_cross_entropy_with_logits(logits, batch["labels"])

    def evaluate(self, model: AmbiguityClassifier) -> dict[str, float]:
        ambiguous = probabilities(model, self.inputs, self.dev_rows)
        decisions = [probability > 0.5 for probability in ambiguous]
        return asdict(detection(self.dev_labels, decisions))

    @property
    def saved(self) -> dict[str, Any]:
        return {"passages": self.options.detecting.passages}


AMBIGUITY_DETECTOR = TaskSpec(_AmbiguityDetectorOptions, _AmbiguityDetectorTask)
