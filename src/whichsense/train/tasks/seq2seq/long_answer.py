"""Train a writer of long answers: T5 closed book, with K passages, or oracle (ASQA, section 5, appendix B).

Questions without a long answer of their own (AmbigNQ, the sample) get one from their evidence: the sentences of the
annotated passages that hold a gold answer, in order.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from whichsense.datasets import LongQuestion, Question
from whichsense.errors import BadInput
from whichsense.metrics.asqa import rouge_l_best, str_em
from whichsense.models.seq2seq import formats
from whichsense.models.seq2seq.codec import Codec, Form
from whichsense.models.seq2seq.formats import Source
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import plain
from whichsense.stages.summarize import SeqSummarizer
from whichsense.text.sentences import sentences
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
from whichsense.types import Hit

Mode = Literal["closed", "open", "oracle"]


@dataclass(frozen=True, slots=True)
class Writing:
    """A recipe's `[writing]`."""

    mode: Mode = "open"


@dataclass(frozen=True, slots=True)
class LongAnswerOptions:
    model: Seq2SeqModel = field(default_factory=lambda: Seq2SeqModel(base="t5-large"))
    form: Form = field(
        default_factory=lambda: Form(
            fusion=False, passages=5, input_tokens=2048, output_tokens=256
        )
    )
    data: TrainingData = field(
        default_factory=lambda: TrainingData(train="asqa/train", dev="asqa/dev")
    )
    writing: Writing = field(default_factory=Writing)


@dataclass(frozen=True, slots=True)
class WriteExample:
    """An input in its format, and the long answers that fit it."""

    question: Question
    text: str
    references: tuple[str, ...]
    scored: tuple[str, ...]
    """Against these it is evaluated: the oracle only against the annotator whose knowledge it was not given."""


def build_task(options: LongAnswerOptions) -> Generation[WriteExample]:
    data, form, mode = options.data, options.form, options.writing.mode
    evidence = data.evidence(max(1, form.passages))
    train, dev = data.training(), data.development()
    if mode == "open":
        evidence.search([question.text for question in (*train, *dev)])
    examples, held_out = (
        [one for q in some if (one := example_of(q, evidence, form, mode))]
        for some in (train, dev)
    )
    if not examples or not held_out:
        raise BadInput(
            "No question has a long answer, nor evidence that one could be made of."
        )
    return Generation(
        task="long-answer",
        model=options.model,
        form=form,
        metric="rouge_l",
        examples=examples,
        pair=lambda codec, example, dice: writing_pair(codec, form, example, dice),
        measure=lambda generator: measured(generator, held_out, options.model.beams),
        paths=data.paths(),
        options={"mode": mode},
    )


def writing_pair(
    codec: Codec, form: Form, example: WriteExample, dice: random.Random
) -> Pair:
    inputs = plain(codec, example.text, form.input_tokens)
    return Pair(
        inputs, codec.target([dice.choice(example.references)], form.output_tokens)
    )


def example_of(
    question: Question, evidence: EvidenceSearch, form: Form, mode: Mode
) -> WriteExample | None:
    if isinstance(question, LongQuestion):
        references = tuple(one.text for one in question.long_answers)
    else:
        references = _derived(question, evidence)
    if not references:
        return None
    if mode == "closed":
        return WriteExample(
            question, formats.closed_book(question.text), references, references
        )
    if mode == "open":
        found = [
            Source(hit.passage.text, hit.passage.title)
            for hit in evidence.hits(question.text)[: form.passages]
        ]
        return WriteExample(
            question, formats.open_book(question.text, found), references, references
        )
    text, unseen = _oracle(question, evidence)
    return WriteExample(question, text, references, unseen or references)


def _oracle(
    question: Question, evidence: EvidenceSearch
) -> tuple[str, tuple[str, ...]]:
    """Everything that the annotators saw, with the added knowledge of the one who wrote most."""
    pairs = question.annotations[0].pairs
    answers, rewrites = (
        [pair.answers[0] for pair in pairs],
        [pair.question for pair in pairs],
    )
    if not isinstance(question, LongQuestion):
        passages = [
            evidence.passage(key) for pair in pairs for key in pair.evidence[:1]
        ]
        contexts = [
            Source(passage.text, passage.title) for passage in dict.fromkeys(passages)
        ]
        return formats.oracle(question.text, answers, rewrites, contexts, []), ()
    contexts = [
        Source(*both)
        for both in zip(question.contexts, question.context_pages, strict=True)
        if both[0]
    ]
    longest = max(question.long_answers, key=lambda one: len(one.text))
    knowledge = [Source(piece.text, piece.title) for piece in longest.knowledge]
    others = tuple(one.text for one in question.long_answers if one is not longest)
    return formats.oracle(question.text, answers, rewrites, contexts, knowledge), others


def _derived(question: Question, evidence: EvidenceSearch) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for pair in question.annotations[0].pairs:
        for key in pair.evidence[:1]:
            passage = evidence.passage(key)
            for sentence in sentences(passage.text):
                piece = Hit(replace(passage, text=sentence), 0.0)
                if any(spans_of(alias, [piece]) for alias in pair.answers):
                    found[sentence] = None
                    break
    return (" ".join(found),) if found else ()


def measured(
    generator: Generator, examples: Sequence[WriteExample], beams: int
) -> Mapping[str, float]:
    """ROUGE-L against the better reference, and the share of short answers that the long one holds (STR-EM)."""
    found = SeqSummarizer(generator, beams=beams).write([one.text for one in examples])
    pairs = list(zip(examples, found, strict=True))
    return {
        "rouge_l": mean([rouge_l_best(one.scored, text) for one, text in pairs]),
        "str_em": mean([str_em(one.question.answers, text) for one, text in pairs]),
        "words": mean([float(len(text.split())) for text in found]),
    }


SPEC = TaskSpec(LongAnswerOptions, build_task)
