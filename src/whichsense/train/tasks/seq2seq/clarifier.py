"""Train the generator of clarification questions (CAmbigNQ, section 6.2): without answers, with predicted or with gold.

In training, "predicted" and "gold" see the gold answers, as in the paper; they differ in what evaluation gives them:
a reader's predictions (`reader`: the folder of a trained one), or the gold answers.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from whichsense.errors import BadConfig, BadInput
from whichsense.metrics.cambignq import (
    category_exact_match,
    option_overlap,
    parse_released,
    ratio,
)
from whichsense.models.seq2seq.codec import Codec, InputForm
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import clarifier_parts, composed
from whichsense.stages.clarify import SeqClarifier
from whichsense.stages.read import SeqReader
from whichsense.text.bleu import corpus_bleu
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.evidence import EvidenceSearch
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
class ClarifierTraining:
    """A recipe's `[clarifying]`."""

    answers: Literal["none", "predicted", "gold"] = "none"
    reader: str = ""
    """For predicted answers: the folder of a reader."""


@dataclass(frozen=True, slots=True)
class _ClarifierOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: InputForm = field(
        default_factory=lambda: InputForm(fusion=False, output_tokens=64)
    )
    data: TrainingData = field(
        default_factory=lambda: TrainingData(train="cambignq/train", dev="cambignq/dev")
    )
    clarifying: ClarifierTraining = field(default_factory=ClarifierTraining)


def build_task(options: _ClarifierOptions) -> Generation[ClarificationExample]:
    data, form, settings = options.data, options.form, options.clarifying
    if settings.answers == "predicted" and not settings.reader:
        raise BadConfig(
            'clarifying.answers = "predicted" needs clarifying.reader: the folder of a trained reader.'
        )
    examples = clarification_examples(data.training())
    dev = clarification_examples(data.development())
    if not examples or not dev:
        raise BadInput(
            "There is no clarification question to learn from: take CAmbigNQ, or questions with rewrites."
        )
    evidence = data.evidence(form.passages)
    evidence.search([example.question.text for example in (*examples, *dev)])

    def encode(
        codec: Codec, example: ClarificationExample, rng: random.Random
    ) -> EncodedExample:
        question = example.question.text
        answers = [] if settings.answers == "none" else _first_aliases(example)
        parts = clarifier_parts(question, answers)
        inputs = composed(codec, form, parts, evidence.hits(question))
        target = codec.target([example.clarification], form.output_tokens)
        return EncodedExample(inputs, target)

    def measure(generator: Generator) -> Mapping[str, float]:
        return _measure(generator, dev, evidence, settings, options.model.beams)

    return Generation(
        task="clarification",
        model=options.model,
        form=form,
        metric="bleu4",
        examples=examples,
        encode=encode,
        measure=measure,
        paths=data.paths(),
        options={"answers": settings.answers},
    )


def _first_aliases(example: ClarificationExample) -> list[str]:
    return [aliases[0] for aliases in example.answers]


def _measure(
    generator: Generator,
    examples: Sequence[ClarificationExample],
    evidence: EvidenceSearch,
    settings: ClarifierTraining,
    beams: int,
) -> Mapping[str, float]:
    """BLEU-4 of the whole question, by which the paper selects; its category; its options."""
    questions = []
    references = []
    hits = []
    for example in examples:
        questions.append(example.question.text)
        references.append(example.clarification)
        hits.append(evidence.hits(example.question.text))
    if settings.answers == "predicted":
        reader = SeqReader(settings.reader, beams=beams)
        answers = read_answers(reader, questions, evidence)
    else:
        answers = list(map(_first_aliases, examples))
    predictions = SeqClarifier(generator, beams=beams).write(questions, answers, hits)
    overlaps = []
    categories = []
    for reference, prediction in zip(references, predictions, strict=True):
        gold_options = parse_released(reference)[1]
        overlaps.append(option_overlap(gold_options, parse_released(prediction)[1]))
        categories.append(category_exact_match(reference, prediction))
    return {
        "bleu4": corpus_bleu(references, predictions),
        "category_em": mean(categories),
        "option_f1": ratio(overlaps).f1,
    }


SPEC = TaskSpec(_ClarifierOptions, build_task)
