"""Train a reader: SpanSeqGen (all passages in one input) or Fusion-in-Decoder, adaptive in the number of answers.

Aliases, order and missing answers are handled as in AmbigQA's released code (codes/QAData.py, AmbigQAData): of each
answer only the aliases that the input holds count; the target is one combination of aliases, drawn anew each time it
is seen, from the first 100; answers stand in the annotators' order, or, with `order = "found"`, only combinations
whose answers occur in the input in that order are used (its --consider_order_for_multiple_answers); a question none
of whose answers is in the input is left out (REFUEL, appendix A, and the code's --discard_not_found_answers).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path
from typing import Literal

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.metrics.ambignq import f1_answers
from whichsense.metrics.answers import exact_match
from whichsense.models.seq2seq import checkpoint
from whichsense.models.seq2seq.codec import Codec, Form
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import composed, read_by
from whichsense.stages.read import SeqReader
from whichsense.text.spans import spans_of
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.train.tasks.seq2seq.generation import (
    Generation,
    Pair,
    Seq2SeqModel,
    mean,
)
from whichsense.train.tiny.encoders import located
from whichsense.types import Case, Hit

_COMBINATIONS = 100
Aliases = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """A recipe's `[answers]`."""

    single: bool = False
    """One answer only, as in NQ-open: the first stage of both papers, and the zero-shot reader."""
    order: Literal["annotated", "found"] = "annotated"
    discard_missing: bool = True


@dataclass(frozen=True, slots=True)
class AnswerPredictionOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: Form = field(default_factory=Form)
    data: TrainingData = field(default_factory=TrainingData)
    answers: Answers = field(default_factory=Answers)


@dataclass(frozen=True, slots=True)
class ReadExample:
    """A question over its passages, and for each answer the aliases that may stand for it."""

    question: str
    hits: Sequence[Hit]
    answers: tuple[Aliases, ...]


def build_task(options: AnswerPredictionOptions) -> Generation[ReadExample]:
    return make_with(options, ())


def make_with(
    options: AnswerPredictionOptions,
    more: Sequence[Question],
    files: Sequence[Path] = (),
) -> Generation[ReadExample]:
    """The task with `more` training questions, which `files` hold: co-training adds what its models agreed on."""
    data, form = options.data, options.form
    evidence = data.evidence(form.passages)
    train, dev = [*data.training(), *more], data.development()
    evidence.search([question.text for question in (*train, *dev)])
    codec = checkpoint.load_codec(located(options.model.base), form)
    examples = [
        example
        for question in train
        for example in examples_of(
            question,
            read_by(codec, form, [question.text], evidence.hits(question.text)),
            options.answers,
        )
    ]
    if not examples:
        raise BadInput(
            "No training question has an answer in the passages that were found for it."
        )
    return Generation(
        task="answer-prediction",
        model=options.model,
        form=form,
        metric="em" if options.answers.single else "f1_ans",
        examples=examples,
        pair=lambda codec, example, dice: read_pair(
            codec, form, example, dice, options.answers.order
        ),
        measure=lambda generator: measured(
            generator, dev, evidence, options.model.beams
        ),
        paths=[*data.paths(), *files],
        options={"single": options.answers.single},
    )


def examples_of(
    question: Question, hits: Sequence[Hit], settings: Answers
) -> Iterator[ReadExample]:
    """One example for each annotation, over the hits that the model will see; for single answers, one whose aliases are
    those of all its answers."""
    sets: Sequence[Sequence[Aliases]] = question.answer_sets
    if settings.single:
        sets = [[tuple(alias for aliases in question.answers for alias in aliases)]]
    for answers in sets:
        found = tuple(kept for aliases in answers if (kept := held(aliases, hits)))
        if found or not settings.discard_missing:
            yield ReadExample(question.text, hits, found or tuple(answers))


def held(aliases: Aliases, hits: Sequence[Hit]) -> Aliases:
    """The aliases that stand in some passage."""
    return tuple(
        alias for alias in dict.fromkeys(aliases) if spans_of(alias, hits, most=1)
    )


def read_pair(
    codec: Codec,
    form: Form,
    example: ReadExample,
    dice: random.Random,
    order: str = "annotated",
) -> Pair:
    """A drawn combination of aliases as the target."""
    inputs = composed(codec, form, [example.question], example.hits)
    combinations = list(islice(product(*example.answers), _COMBINATIONS))
    if order == "found":
        text = " ".join(
            hit.passage.text for hit in example.hits[: form.passages]
        ).lower()
        combinations = [
            one for one in combinations if _in_order(one, text)
        ] or combinations
    return Pair(inputs, codec.target(dice.choice(combinations), form.output_tokens))


def _in_order(answers: Sequence[str], text: str) -> bool:
    place = 0
    for answer in answers:
        place = text.find(answer.lower(), place)
        if place < 0:
            return False
        place += 1
    return True


def measured(
    generator: Generator,
    questions: Sequence[Question],
    evidence: EvidenceSearch,
    beams: int,
) -> Mapping[str, float]:
    """F1ans over all questions and over the ambiguous ones; exact match of the first answer."""
    reader = SeqReader(generator, beams=beams)
    cases = []
    for question in questions:
        cases.append(Case(question.text, tuple(evidence.hits(question.text))))
    read = reader.read(cases)
    answers = [[one.answer for one in case.answers] or [""] for case in read]
    scores = [
        max(f1_answers(gold, own) for gold in q.answer_sets)
        for q, own in zip(questions, answers, strict=True)
    ]
    multi = [
        score
        for question, score in zip(questions, scores, strict=True)
        if question.is_ambiguous
    ]
    names = [
        [alias for aliases in question.answers for alias in aliases]
        for question in questions
    ]
    return {
        "f1_ans": mean(scores),
        "f1_ans_multi": mean(multi),
        "em": mean(
            [
                exact_match(own[0], gold)
                for gold, own in zip(names, answers, strict=True)
            ]
        ),
        "answers": mean([float(len(own)) for own in answers]),
    }


SPEC = TaskSpec(AnswerPredictionOptions, build_task)
