"""Train the clarified reader (CAmbigNQ, section 6.3): a question with one option in, the answer of that option out.

Passages are searched for with the clarified question, so that each option has its own order of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from whichsense.errors import BadInput
from whichsense.metrics.answers import exact_match
from whichsense.metrics.cambignq import answer_overlap, ratio
from whichsense.models.seq2seq.codec import Form
from whichsense.models.seq2seq.formats import clarified
from whichsense.models.seq2seq.generator import Generator
from whichsense.stages.read import SeqReader
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.train.tasks.seq2seq.answer_prediction import ReadExample, read_pair
from whichsense.train.tasks.seq2seq.clarifications import Clarified, clarified_questions
from whichsense.train.tasks.seq2seq.generation import Generation, Seq2SeqModel, mean
from whichsense.types import Case


@dataclass(frozen=True, slots=True)
class ClarifiedReaderOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: Form = field(default_factory=lambda: Form(fusion=False, question_tokens=64))
    data: TrainingData = field(
        default_factory=lambda: TrainingData(train="cambignq/train", dev="cambignq/dev")
    )


def build_task(options: ClarifiedReaderOptions) -> Generation[ReadExample]:
    data, form = options.data, options.form
    train, dev = (
        clarified_questions(data.training()),
        clarified_questions(data.development()),
    )
    if not train or not dev:
        raise BadInput(
            "There is no clarification question to learn from: take CAmbigNQ, or questions with rewrites."
        )
    evidence = data.evidence(form.passages)
    evidence.search([asked for one in (*train, *dev) for asked in questions_of(one)])
    return Generation(
        task="clarified-reader",
        model=options.model,
        form=form,
        metric="f1",
        examples=[
            example for one in train for example in option_examples(one, evidence)
        ],
        pair=lambda codec, example, dice: read_pair(codec, form, example, dice),
        measure=lambda generator: measured(
            generator, dev, evidence, options.model.beams
        ),
        paths=data.paths(),
    )


def questions_of(one: Clarified) -> list[str]:
    return [
        clarified(one.question.text, one.category, option) for option in one.options
    ]


def option_examples(one: Clarified, evidence: EvidenceSearch) -> Iterator[ReadExample]:
    for asked, aliases in zip(questions_of(one), one.answers, strict=True):
        yield ReadExample(asked, evidence.hits(asked), (aliases,))


def measured(
    generator: Generator,
    examples: Sequence[Clarified],
    evidence: EvidenceSearch,
    beams: int,
) -> Mapping[str, float]:
    """CAmbigNQ's precision, recall and F1 with the gold clarification questions; exact match beside them."""
    asked = [question for one in examples for question in questions_of(one)]
    cases = [Case(question, tuple(evidence.hits(question))) for question in asked]
    first = []
    for case in SeqReader(generator, beams=beams).read(cases):
        first.append(case.answers[0].answer if case.answers else "")
    answers = iter(first)
    by_question = [[next(answers) for _ in one.options] for one in examples]
    pairs = list(zip(examples, by_question, strict=True))
    numbers = ratio([answer_overlap(one.answers, own) for one, own in pairs])
    exact = [
        exact_match(own, gold)
        for one, several in pairs
        for gold, own in zip(one.answers, several, strict=True)
    ]
    return {
        "f1": numbers.f1,
        "precision": numbers.precision,
        "recall": numbers.recall,
        "em": mean(exact),
    }


SPEC = TaskSpec(ClarifiedReaderOptions, build_task)
