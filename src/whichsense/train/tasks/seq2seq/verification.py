"""Train the model of LM verification: one answer for each unambiguous question (REFUEL, section 2.3, appendix A).

Each rewrite of AmbigNQ is paired with its own answer; questions with a single answer are paired with that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.metrics.answers import exact_match
from whichsense.models.seq2seq.codec import Form
from whichsense.models.seq2seq.generator import Generator
from whichsense.stages.read import SeqReader
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.train.tasks.seq2seq.answer_prediction import (
    ReadExample,
    held,
    read_pair,
)
from whichsense.train.tasks.seq2seq.generation import Generation, Seq2SeqModel, mean
from whichsense.types import Case


@dataclass(frozen=True, slots=True)
class VerificationOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: Form = field(default_factory=Form)
    data: TrainingData = field(default_factory=TrainingData)


def build_task(options: VerificationOptions) -> Generation[ReadExample]:
    data, form = options.data, options.form
    evidence = data.evidence(form.passages)
    train, dev = data.training(), data.development()
    evidence.search([question.text for question in (*train, *dev)])
    examples = [
        example
        for question in train
        for example in unambiguous(question, evidence, only_held=True)
    ]
    if not examples:
        raise BadInput(
            "No training question has an answer in the passages that were found for it."
        )
    held_out = [
        example
        for question in dev
        for example in unambiguous(question, evidence, only_held=False)
    ]
    return Generation(
        task="verification",
        model=options.model,
        form=form,
        metric="em",
        examples=examples,
        pair=lambda codec, example, dice: read_pair(codec, form, example, dice),
        measure=lambda generator: measured(generator, held_out, options.model.beams),
        paths=data.paths(),
    )


def unambiguous(
    question: Question, evidence: EvidenceSearch, only_held: bool
) -> Iterator[ReadExample]:
    """Rewrites with their answers, over the passages of the prompt: those that a rewrite is verified with."""
    hits = evidence.hits(question.text)
    for annotation in question.annotations:
        for pair in annotation.pairs:
            asked = question.text if annotation.is_single else pair.question
            names = held(pair.answers, hits) if only_held else pair.answers
            if asked and names:
                yield ReadExample(asked, hits, (names,))


def measured(
    generator: Generator, examples: Sequence[ReadExample], beams: int
) -> Mapping[str, float]:
    reader = SeqReader(generator, beams=beams)
    cases = [Case(example.question, tuple(example.hits)) for example in examples]
    first = []
    for case in reader.read(cases):
        first.append(case.answers[0].answer if case.answers else "")
    return {
        "em": mean(
            [
                exact_match(own, one.answers[0])
                for own, one in zip(first, examples, strict=True)
            ]
        )
    }


SPEC = TaskSpec(VerificationOptions, build_task)
