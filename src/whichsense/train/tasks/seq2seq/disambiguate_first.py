"""Train the rewriter of DISAMBIG-FIRST: from the question alone to all its readings (AmbigQA, section 6.1)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.metrics.ambignq import question_scores
from whichsense.models.seq2seq.codec import Codec, Form
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import composed
from whichsense.stages.disambiguate import FirstRewriter
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.seq2seq.generation import (
    Generation,
    Pair,
    Seq2SeqModel,
    mean,
)


@dataclass(frozen=True, slots=True)
class DisambiguateFirstOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: Form = field(
        default_factory=lambda: Form(fusion=False, passages=0, output_tokens=128)
    )
    data: TrainingData = field(default_factory=TrainingData)


def build_task(options: DisambiguateFirstOptions) -> Generation[Question]:
    form = replace(options.form, passages=0)
    examples = [
        question for question in options.data.training() if question.is_ambiguous
    ]
    if not examples:
        raise BadInput(
            "No training question is ambiguous: there is no reading to learn."
        )
    held_out = [
        question for question in options.data.development() if question.is_ambiguous
    ]
    return Generation(
        task="disambiguate-first",
        model=options.model,
        form=form,
        metric="edit_f1",
        examples=examples,
        pair=lambda codec, question, dice: readings_pair(codec, form, question, dice),
        measure=lambda generator: measured(generator, held_out, options.model.beams),
        paths=options.data.paths(),
    )


def readings_pair(
    codec: Codec, form: Form, question: Question, dice: random.Random
) -> Pair:
    pairs = dice.choice(question.annotations).pairs
    rewrites = [dice.choice(pair.questions) for pair in pairs if pair.questions]
    return Pair(
        composed(codec, form, [question.text], ()),
        codec.target(rewrites, form.output_tokens),
    )


def measured(
    generator: Generator, questions: Sequence[Question], beams: int
) -> Mapping[str, float]:
    """EDIT-F1 of each gold rewrite against the nearest one that was written."""
    found = FirstRewriter(generator, beams=beams).rewrite(
        [question.text for question in questions]
    )
    scores = [
        max(
            question_scores(question.text, "|".join(pair.questions), own)[4]
            for own in rewrites
        )
        for question, rewrites in zip(questions, found, strict=True)
        for pair in question.annotations[0].pairs
    ]
    return {
        "edit_f1": mean(scores),
        "rewrites": mean([float(len(own)) for own in found]),
    }


SPEC = TaskSpec(DisambiguateFirstOptions, build_task)
