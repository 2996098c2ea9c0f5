"""Train a writer of long answers: T5 closed book, with K passages, or oracle (ASQA, section 5, appendix B).

Questions without a long answer of their own (AmbigNQ, the sample) get one from their evidence: the sentences of the
annotated passages that hold a gold answer, in order.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from whichsense.datasets import LongQuestion, QAPair, Question
from whichsense.errors import BadInput
from whichsense.metrics.asqa import rouge_l_best, str_em
from whichsense.models.seq2seq import formats
from whichsense.models.seq2seq.codec import Codec, InputForm
from whichsense.models.seq2seq.formats import SourceText
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import plain
from whichsense.stages.summarize import SeqSummarizer
from whichsense.text.sentences import sentences
from whichsense.text.spans import spans_of
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.train.tasks.seq2seq.generation import (
    EncodedExample,
    Generation,
    Seq2SeqModel,
    mean,
)
from whichsense.types import Hit, Passage

Mode = Literal["closed", "open", "oracle"]


@dataclass(frozen=True, slots=True)
class _LongAnswerSettings:
    """A recipe's `[writing]`."""

    mode: Mode = "open"


@dataclass(frozen=True, slots=True)
class _LongAnswerOptions:
    model: Seq2SeqModel = field(default_factory=lambda: Seq2SeqModel(base="t5-large"))
    form: InputForm = field(
        default_factory=lambda: InputForm(
            fusion=False, passages=5, input_tokens=2048, output_tokens=256
        )
    )
    data: TrainingData = field(
        default_factory=lambda: TrainingData(train="asqa/train", dev="asqa/dev")
    )
    writing: _LongAnswerSettings = field(default_factory=_LongAnswerSettings)


@dataclass(frozen=True, slots=True)
class _WriteExample:
    """An input in its format, and the long answers that fit it."""

    question: Question
    text: str
    references: tuple[str, ...]
    scored: tuple[str, ...]
    """The references of its evaluation: for the oracle those of annotators whose knowledge it was not given."""


def build_task(options: _LongAnswerOptions) -> Generation[_WriteExample]:
    data, form, mode = options.data, options.form, options.writing.mode
    evidence = data.evidence(max(1, form.passages))
    train = data.training()
    dev = data.development()
    if mode == "open":
        evidence.search([question.text for question in (*train, *dev)])
    examples = _build_examples(train, evidence, form, mode)
    dev_examples = _build_examples(dev, evidence, form, mode)
    if not examples or not dev_examples:
        raise BadInput(
            "No question has a long answer, nor evidence that one could be made of."
        )

    def encode(
        codec: Codec, example: _WriteExample, rng: random.Random
    ) -> EncodedExample:
        inputs = plain(codec, example.text, form.input_tokens)
        reference = rng.choice(example.references)
        return EncodedExample(inputs, codec.target([reference], form.output_tokens))

    def measure(generator: Generator) -> Mapping[str, float]:
        return _measure(generator, dev_examples, options.model.beams)

    return Generation(
        task="long-answer",
        model=options.model,
        form=form,
        metric="rouge_l",
        examples=examples,
        encode=encode,
        measure=measure,
        paths=data.paths(),
        options={"mode": mode},
    )


def _build_examples(
    questions: Sequence[Question], evidence: EvidenceSearch, form: InputForm, mode: Mode
) -> list[_WriteExample]:
    examples = []
    for question in questions:
        example = write_example(question, evidence, form, mode)
        if example is not None:
            examples.append(example)
    return examples


def write_example(
    question: Question, evidence: EvidenceSearch, form: InputForm, mode: Mode
) -> _WriteExample | None:
    """The input of one question in its mode; None if there is no long answer to learn."""
    if isinstance(question, LongQuestion):
        references = tuple(answer.text for answer in question.long_answers)
    else:
        references = _derive_reference(question, evidence)
    if not references:
        return None
    if mode == "oracle":
        text, unseen = _oracle(question, evidence)
        return _WriteExample(question, text, references, unseen or references)
    if mode == "closed":
        text = formats.closed_book(question.text)
    else:
        hits = evidence.hits(question.text)[: form.passages]
        sources = []
        for hit in hits:
            sources.append(SourceText(hit.passage.text, hit.passage.title))
        text = formats.open_book(question.text, sources)
    return _WriteExample(question, text, references, references)


def _oracle(
    question: Question, evidence: EvidenceSearch
) -> tuple[str, tuple[str, ...]]:
    """Everything that the annotators saw, with the added knowledge of the one who wrote most; and the long answers of
    the other annotators."""
    pairs = question.annotations[0].pairs
    answers = []
    rewrites = []
    for pair in pairs:
        answers.append(pair.answers[0])
        rewrites.append(pair.question)
    if not isinstance(question, LongQuestion):
        contexts = _annotated_contexts(pairs, evidence)
        return formats.oracle(question.text, answers, rewrites, contexts, []), ()
    contexts = []
    pages = zip(question.contexts, question.context_pages, strict=True)
    for context, page in pages:
        if context:
            contexts.append(SourceText(context, page))
    longest = max(question.long_answers, key=lambda answer: len(answer.text))
    knowledge = []
    for piece in longest.knowledge:
        knowledge.append(SourceText(piece.text, piece.title))
    others = []
    for answer in question.long_answers:
        if answer is not longest:
            others.append(answer.text)
    text = formats.oracle(question.text, answers, rewrites, contexts, knowledge)
    return text, tuple(others)


def _annotated_contexts(
    pairs: Sequence[QAPair], evidence: EvidenceSearch
) -> list[SourceText]:
    """The first annotated passage of each pair, each passage once."""
    passages: dict[Passage, None] = {}
    for pair in pairs:
        for key in pair.evidence[:1]:
            passages[evidence.passage(key)] = None
    contexts = []
    for passage in passages:
        contexts.append(SourceText(passage.text, passage.title))
    return contexts


def _derive_reference(question: Question, evidence: EvidenceSearch) -> tuple[str, ...]:
    """The first sentence of each annotated passage that holds its answer, as one long answer."""
    chosen: dict[str, None] = {}
    for pair in question.annotations[0].pairs:
        for key in pair.evidence[:1]:
            passage = evidence.passage(key)
            for sentence in sentences(passage.text):
                hit = Hit(replace(passage, text=sentence), 0.0)
                if any(spans_of(alias, [hit]) for alias in pair.answers):
                    chosen[sentence] = None
                    break
    return (" ".join(chosen),) if chosen else ()


def _measure(
    generator: Generator, examples: Sequence[_WriteExample], beams: int
) -> Mapping[str, float]:
    """ROUGE-L against the better reference, and the share of short answers that the long one holds (STR-EM)."""
    inputs = [example.text for example in examples]
    predictions = SeqSummarizer(generator, beams=beams).write(inputs)
    rouge_l = []
    em = []
    lengths = []
    for example, prediction in zip(examples, predictions, strict=True):
        rouge_l.append(rouge_l_best(example.scored, prediction))
        em.append(str_em(example.question.answers, prediction))
        lengths.append(float(len(prediction.split())))
    return {"rouge_l": mean(rouge_l), "str_em": mean(em), "words": mean(lengths)}


SPEC = TaskSpec(_LongAnswerOptions, build_task)
