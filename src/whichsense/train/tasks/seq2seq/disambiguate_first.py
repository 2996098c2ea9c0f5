"""Train the rewriter of DISAMBIG-FIRST: from the question alone to all its readings (AmbigQA, section 6.1)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.metrics.ambignq import question_scores
from whichsense.models.seq2seq.codec import Codec, InputForm
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import composed
from whichsense.stages.disambiguate import FirstRewriter
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.seq2seq.generation import (
    EncodedExample,
    Generation,
    Seq2SeqModel,
    mean,
)


@dataclass(frozen=True, slots=True)
class _DisambiguateFirstOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: InputForm = field(
        default_factory=lambda: InputForm(fusion=False, passages=0, output_tokens=128)
    )
    data: TrainingData = field(default_factory=TrainingData)


def build_task(options: _DisambiguateFirstOptions) -> Generation[Question]:
    form = replace(options.form, passages=0)
    examples = _ambiguous(options.data.training())
    if not examples:
        raise BadInput(
            "No training question is ambiguous: there is no reading to learn."
        )
    dev = _ambiguous(options.data.development())

    def encode(codec: Codec, question: Question, rng: random.Random) -> EncodedExample:
        rewrites = []
        for pair in rng.choice(question.annotations).pairs:
            if pair.questions:
                rewrites.append(rng.choice(pair.questions))
        inputs = composed(codec, form, [question.text], ())
        return EncodedExample(inputs, codec.target(rewrites, form.output_tokens))

    def measure(generator: Generator) -> Mapping[str, float]:
        return _measure(generator, dev, options.model.beams)

    return Generation(
        task="disambiguate-first",
        model=options.model,
        form=form,
        metric="edit_f1",
        examples=examples,
        encode=encode,
        measure=measure,
        paths=options.data.paths(),
    )


def _ambiguous(questions: Sequence[Question]) -> list[Question]:
    return [question for question in questions if question.is_ambiguous]


def _measure(
    generator: Generator, questions: Sequence[Question], beams: int
) -> Mapping[str, float]:
    """EDIT-F1 of each gold rewrite against the nearest predicted one."""
    texts = [question.text for question in questions]
    predictions = FirstRewriter(generator, beams=beams).rewrite(texts)
    scores = []
    counts = []
    for question, rewrites in zip(questions, predictions, strict=True):
        counts.append(float(len(rewrites)))
        for pair in question.annotations[0].pairs:
            gold = "|".join(pair.questions)
            edit_f1 = []
            for rewrite in rewrites:
                edit_f1.append(question_scores(question.text, gold, rewrite)[4])
            scores.append(max(edit_f1))
    return {"edit_f1": mean(scores), "rewrites": mean(counts)}


SPEC = TaskSpec(_DisambiguateFirstOptions, build_task)
