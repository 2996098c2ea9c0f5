"""Train the generator of clarification questions (CAmbigNQ, section 6.2): without answers, with predicted or with gold.

In training, "predicted" and "gold" see the gold answers, as in the paper; they differ in what evaluation gives them:
a reader's predictions (`reader`: the folder of a trained one), or the gold answers.
"""

from __future__ import annotations

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
from whichsense.models.seq2seq.codec import Codec, Form
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import clarifier_parts, composed
from whichsense.stages.clarify import SeqClarifier
from whichsense.stages.read import SeqReader
from whichsense.text.bleu import corpus_bleu
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.train.tasks.seq2seq.clarifications import Clarified, clarified_questions
from whichsense.train.tasks.seq2seq.generation import (
    Generation,
    Pair,
    Seq2SeqModel,
    mean,
)
from whichsense.types import Case


@dataclass(frozen=True, slots=True)
class Clarifying:
    """A recipe's `[clarifying]`."""

    answers: Literal["none", "predicted", "gold"] = "none"
    reader: str = ""
    """For predicted answers: the folder of a reader."""


@dataclass(frozen=True, slots=True)
class ClarificationQuestionOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: Form = field(default_factory=lambda: Form(fusion=False, output_tokens=64))
    data: TrainingData = field(
        default_factory=lambda: TrainingData(train="cambignq/train", dev="cambignq/dev")
    )
    clarifying: Clarifying = field(default_factory=Clarifying)


def build_task(options: ClarificationQuestionOptions) -> Generation[Clarified]:
    data, form, settings = options.data, options.form, options.clarifying
    if settings.answers == "predicted" and not settings.reader:
        raise BadConfig(
            'clarifying.answers = "predicted" needs clarifying.reader: the folder of a trained reader.'
        )
    examples, held_out = (
        clarified_questions(data.training()),
        clarified_questions(data.development()),
    )
    if not examples or not held_out:
        raise BadInput(
            "There is no clarification question to learn from: take CAmbigNQ, or questions with rewrites."
        )
    evidence = data.evidence(form.passages)
    evidence.search([one.question.text for one in (*examples, *held_out)])
    return Generation(
        task="clarification",
        model=options.model,
        form=form,
        metric="bleu4",
        examples=examples,
        pair=lambda codec, example, dice: asking_pair(
            codec, form, example, evidence, settings.answers != "none"
        ),
        measure=lambda generator: measured(
            generator, held_out, evidence, settings, options.model.beams
        ),
        paths=data.paths(),
        options={"answers": settings.answers},
    )


def asking_pair(
    codec: Codec,
    form: Form,
    example: Clarified,
    evidence: EvidenceSearch,
    with_answers: bool,
) -> Pair:
    answers = [aliases[0] for aliases in example.answers] if with_answers else []
    parts = clarifier_parts(example.question.text, answers)
    inputs = composed(codec, form, parts, evidence.hits(example.question.text))
    return Pair(inputs, codec.target([example.asks], form.output_tokens))


def measured(
    generator: Generator,
    examples: Sequence[Clarified],
    evidence: EvidenceSearch,
    settings: Clarifying,
    beams: int,
) -> Mapping[str, float]:
    """BLEU-4 of the whole question, by which the paper selects; its category; its options."""
    questions = [one.question.text for one in examples]
    hits = [evidence.hits(question) for question in questions]
    if settings.answers == "predicted":
        cases = [Case(*pair) for pair in zip(questions, map(tuple, hits), strict=True)]
        read = SeqReader(settings.reader, beams=beams).read(cases)
        answers = [[one.answer for one in case.answers] for case in read]
    else:
        answers = [[aliases[0] for aliases in one.answers] for one in examples]
    asked = SeqClarifier(generator, beams=beams).write(questions, answers, hits)
    overlaps = [
        option_overlap(parse_released(one.asks)[1], parse_released(own)[1])
        for one, own in zip(examples, asked, strict=True)
    ]
    return {
        "bleu4": corpus_bleu([one.asks for one in examples], asked),
        "category_em": mean(
            [
                category_exact_match(one.asks, own)
                for one, own in zip(examples, asked, strict=True)
            ]
        ),
        "option_f1": ratio(overlaps).f1,
    }


SPEC = TaskSpec(ClarificationQuestionOptions, build_task)
