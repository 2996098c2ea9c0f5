"""Train the reader of clarified questions (CAmbigNQ, section 6.3): a question with one option in, its answer out.

Passages are searched for with the clarified question, so that each option has its own order of them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from whichsense.errors import BadInput
from whichsense.metrics.answers import exact_match
from whichsense.metrics.cambignq import answer_overlap, ratio
from whichsense.models.seq2seq.codec import Codec, InputForm
from whichsense.models.seq2seq.formats import clarified
from whichsense.models.seq2seq.generator import Generator
from whichsense.stages.read import SeqReader
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.train.tasks.seq2seq.answer_prediction import ReadExample, encode_reading
from whichsense.train.tasks.seq2seq.clarification_data import (
    ClarificationExample,
    clarification_examples,
)
from whichsense.train.tasks.seq2seq.generation import (
    EncodedExample,
    Generation,
    Seq2SeqModel,
    mean,
    read_answers,
)


@dataclass(frozen=True, slots=True)
class _OptionReaderOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: InputForm = field(
        default_factory=lambda: InputForm(fusion=False, question_tokens=64)
    )
    data: TrainingData = field(
        default_factory=lambda: TrainingData(train="cambignq/train", dev="cambignq/dev")
    )


def build_task(options: _OptionReaderOptions) -> Generation[ReadExample]:
    data, form = options.data, options.form
    train = clarification_examples(data.training())
    dev = clarification_examples(data.development())
    if not train or not dev:
        raise BadInput(
            "There is no clarification question to learn from: take CAmbigNQ, or questions with rewrites."
        )
    evidence = data.evidence(form.passages)
    evidence.search(_clarified_questions([*train, *dev]))
    examples = []
    for one in train:
        questions = _clarified_questions([one])
        for question, aliases in zip(questions, one.answers, strict=True):
            hits = evidence.hits(question)
            examples.append(ReadExample(question, hits, (aliases,)))

    def encode(
        codec: Codec, example: ReadExample, rng: random.Random
    ) -> EncodedExample:
        return encode_reading(codec, form, example, rng)

    def measure(generator: Generator) -> Mapping[str, float]:
        return _measure(generator, dev, evidence, options.model.beams)

    return Generation(
        task="clarified-reader",
        model=options.model,
        form=form,
        metric="f1",
        examples=examples,
        encode=encode,
        measure=measure,
        paths=data.paths(),
    )


def _clarified_questions(examples: Sequence[ClarificationExample]) -> list[str]:
    """Each question with each of its options."""
    questions = []
    for example in examples:
        for option in example.options:
            text = clarified(example.question.text, example.category, option)
            questions.append(text)
    return questions


def _measure(
    generator: Generator,
    examples: Sequence[ClarificationExample],
    evidence: EvidenceSearch,
    beams: int,
) -> Mapping[str, float]:
    """CAmbigNQ's precision, recall and F1 with the gold clarification questions; exact match beside them."""
    questions = _clarified_questions(examples)
    reader = SeqReader(generator, beams=beams)
    # The predictions of all options, one after another.
    predictions = iter(read_answers(reader, questions, evidence))
    overlaps = []
    exact = []
    for example in examples:
        answers = []
        for aliases in example.answers:
            prediction = next(predictions)
            answer = prediction[0] if prediction else ""
            answers.append(answer)
            exact.append(exact_match(answer, aliases))
        overlaps.append(answer_overlap(example.answers, answers))
    scores = ratio(overlaps)
    return {
        "f1": scores.f1,
        "precision": scores.precision,
        "recall": scores.recall,
        "em": mean(exact),
    }


SPEC = TaskSpec(_OptionReaderOptions, build_task)
