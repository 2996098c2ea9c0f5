"""Train a reader: SpanSeqGen (all passages in one input) or Fusion-in-Decoder, adaptive in the number of answers.

Aliases, order and missing answers are handled as in AmbigQA's released code (codes/QAData.py, AmbigQAData): of each
answer only the aliases that the input holds count; the target is one combination of aliases, drawn anew each time it
is seen, from the first 100; answers are in the annotators' order, or, with `order = "found"`, only combinations
whose answers occur in the input in that order are used (its --consider_order_for_multiple_answers); a question none
of whose answers is in the input is left out (REFUEL, appendix A, and the code's --discard_not_found_answers).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product
from pathlib import Path
from typing import Literal

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.metrics.ambignq import f1_answers
from whichsense.metrics.answers import exact_match
from whichsense.models.seq2seq import checkpoint
from whichsense.models.seq2seq.codec import Codec, InputForm
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import composed, read_by
from whichsense.stages.read import SeqReader
from whichsense.text.spans import spans_of
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.train.tasks.seq2seq.generation import (
    EncodedExample,
    Generation,
    Seq2SeqModel,
    mean,
    read_answers,
)
from whichsense.train.tiny.encoders import located
from whichsense.types import Hit

_COMBINATIONS = 100
Aliases = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """A recipe's `[answers]`."""

    single: bool = False
    """One answer only, as in NQ-open: the first stage of both papers, and the zero-shot reader."""
    order: Literal["annotated", "found"] = "annotated"
    discard_missing: bool = True


@dataclass(frozen=True, slots=True)
class AnswerPredictionOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: InputForm = field(default_factory=InputForm)
    data: TrainingData = field(default_factory=TrainingData)
    answers: AnswerSettings = field(default_factory=AnswerSettings)


@dataclass(frozen=True, slots=True)
class ReadExample:
    """A question over its passages, and for each answer the aliases that may be its target."""

    question: str
    hits: Sequence[Hit]
    answers: tuple[Aliases, ...]


def build_task(
    options: AnswerPredictionOptions,
    more: Sequence[Question] = (),
    files: Sequence[Path] = (),
) -> Generation[ReadExample]:
    """The task; co-training adds `more` training questions, which `files` hold."""
    data, form = options.data, options.form
    evidence = data.evidence(form.passages)
    train = [*data.training(), *more]
    dev = data.development()
    evidence.search([question.text for question in (*train, *dev)])
    codec = checkpoint.load_codec(located(options.model.base), form)
    examples: list[ReadExample] = []
    for question in train:
        # Only passages that fit into the input can hold an answer.
        hits = read_by(codec, form, [question.text], evidence.hits(question.text))
        examples += read_examples(question, hits, options.answers)
    if not examples:
        raise BadInput(
            "No training question has an answer in the passages that were found for it."
        )

    def encode(
        codec: Codec, example: ReadExample, rng: random.Random
    ) -> EncodedExample:
        return encode_reading(codec, form, example, rng, options.answers.order)

    def measure(generator: Generator) -> Mapping[str, float]:
        return _measure(generator, dev, evidence, options.model.beams)

    return Generation(
        task="answer-prediction",
        model=options.model,
        form=form,
        metric="em" if options.answers.single else "f1_ans",
        examples=examples,
        encode=encode,
        measure=measure,
        paths=[*data.paths(), *files],
        options={"single": options.answers.single},
    )


def read_examples(
    question: Question, hits: Sequence[Hit], settings: AnswerSettings
) -> Iterator[ReadExample]:
    """One example for each annotation, over the hits that the model will see; for single answers, one whose aliases are
    those of all its answers."""
    answer_sets: Sequence[Sequence[Aliases]] = question.answer_sets
    if settings.single:
        answer_sets = [[all_aliases(question)]]
    for answers in answer_sets:
        held = []
        for aliases in answers:
            if own := held_aliases(aliases, hits):
                held.append(own)
        if held or not settings.discard_missing:
            yield ReadExample(question.text, hits, tuple(held or answers))


def all_aliases(question: Question) -> Aliases:
    """The aliases of all answers of a question, in order."""
    return tuple(chain.from_iterable(question.answers))


def held_aliases(aliases: Aliases, hits: Sequence[Hit]) -> Aliases:
    """The aliases that some passage holds."""
    held = []
    for alias in dict.fromkeys(aliases):
        if spans_of(alias, hits, most=1):
            held.append(alias)
    return tuple(held)


def encode_reading(
    codec: Codec,
    form: InputForm,
    example: ReadExample,
    rng: random.Random,
    order: str = "annotated",
) -> EncodedExample:
    """The target is one combination of aliases, drawn at random."""
    inputs = composed(codec, form, [example.question], example.hits)
    # One alias for each answer.
    combinations = list(islice(product(*example.answers), _COMBINATIONS))
    if order == "found":
        texts = [hit.passage.text for hit in example.hits[: form.passages]]
        text = " ".join(texts).lower()
        in_order = []
        for combination in combinations:
            if _is_in_order(combination, text):
                in_order.append(combination)
        combinations = in_order or combinations
    target = codec.target(rng.choice(combinations), form.output_tokens)
    return EncodedExample(inputs, target)


def _is_in_order(answers: Sequence[str], text: str) -> bool:
    place = 0
    for answer in answers:
        place = text.find(answer.lower(), place)
        if place < 0:
            return False
        place += 1
    return True


def _measure(
    generator: Generator,
    questions: Sequence[Question],
    evidence: EvidenceSearch,
    beams: int,
) -> Mapping[str, float]:
    """F1ans over all questions and over the ambiguous ones; exact match of the first answer."""
    reader = SeqReader(generator, beams=beams)
    texts = [question.text for question in questions]
    scores = []
    ambiguous_scores = []
    exact = []
    counts = []
    predictions = read_answers(reader, texts, evidence)
    for question, prediction in zip(questions, predictions, strict=True):
        answers = prediction or [""]
        # Of several annotations the one that fits best counts.
        score = max(f1_answers(gold, answers) for gold in question.answer_sets)
        scores.append(score)
        if question.is_ambiguous:
            ambiguous_scores.append(score)
        exact.append(exact_match(answers[0], all_aliases(question)))
        counts.append(float(len(answers)))
    return {
        "f1_ans": mean(scores),
        "f1_ans_multi": mean(ambiguous_scores),
        "em": mean(exact),
        "answers": mean(counts),
    }


SPEC = TaskSpec(AnswerPredictionOptions, build_task)
