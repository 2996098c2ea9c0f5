"""Train the model of LM verification: one answer for each unambiguous question (REFUEL, section 2.3, appendix A).

Each rewrite of AmbigNQ is paired with its own answer; questions with a single answer are paired with that.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.metrics.answers import exact_match
from whichsense.models.seq2seq.codec import Codec, InputForm
from whichsense.models.seq2seq.generator import Generator
from whichsense.stages.read import SeqReader
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.train.tasks.seq2seq.answer_prediction import (
    ReadExample,
    encode_reading,
    held_aliases,
)
from whichsense.train.tasks.seq2seq.generation import (
    EncodedExample,
    Generation,
    Seq2SeqModel,
    mean,
)
from whichsense.types import Case


@dataclass(frozen=True, slots=True)
class _VerificationOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: InputForm = field(default_factory=InputForm)
    data: TrainingData = field(default_factory=TrainingData)


def build_task(options: _VerificationOptions) -> Generation[ReadExample]:
    data, form = options.data, options.form
    evidence = data.evidence(form.passages)
    train = data.training()
    dev = data.development()
    evidence.search([question.text for question in (*train, *dev)])
    examples: list[ReadExample] = []
    for question in train:
        examples += _unambiguous_examples(question, evidence, only_held=True)
    if not examples:
        raise BadInput(
            "No training question has an answer in the passages that were found for it."
        )
    dev_examples: list[ReadExample] = []
    for question in dev:
        dev_examples += _unambiguous_examples(question, evidence, only_held=False)

    def encode(
        codec: Codec, example: ReadExample, rng: random.Random
    ) -> EncodedExample:
        return encode_reading(codec, form, example, rng)

    def measure(generator: Generator) -> Mapping[str, float]:
        return _measure(generator, dev_examples, options.model.beams)

    return Generation(
        task="verification",
        model=options.model,
        form=form,
        metric="em",
        examples=examples,
        encode=encode,
        measure=measure,
        paths=data.paths(),
    )


def _unambiguous_examples(
    question: Question, evidence: EvidenceSearch, *, only_held: bool
) -> Iterator[ReadExample]:
    """Rewrites with their answers, over the passages of the prompt: those that a rewrite is verified with."""
    hits = evidence.hits(question.text)
    for annotation in question.annotations:
        for pair in annotation.pairs:
            text = question.text if annotation.is_single else pair.question
            aliases = pair.answers
            if only_held:
                aliases = held_aliases(aliases, hits)
            if text and aliases:
                yield ReadExample(text, hits, (aliases,))


def _measure(
    generator: Generator, examples: Sequence[ReadExample], beams: int
) -> Mapping[str, float]:
    """Exact match of the first answer."""
    reader = SeqReader(generator, beams=beams)
    cases = [Case(example.question, tuple(example.hits)) for example in examples]
    exact = []
    for example, case in zip(examples, reader.read(cases), strict=True):
        answer = case.answers[0].answer if case.answers else ""
        exact.append(exact_match(answer, example.answers[0]))
    return {"em": mean(exact)}


SPEC = TaskSpec(_VerificationOptions, build_task)
