"""Tasks that write to people: clarifications, clarified answers, long answers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from whichsense.errors import BadConfig, BadInput
from whichsense.lab.datasets import ClarifiedQuestion, LongQuestion, QAPair, Question
from whichsense.lab.metrics.asqa import rouge_l_best, str_em
from whichsense.lab.metrics.cambignq import (
    answer_overlap,
    category_exact_match,
    option_overlap,
    parse_released,
    ratio,
)
from whichsense.lab.metrics.exact_match import exact_match
from whichsense.lab.tasks.generation import (
    EncodedExample,
    Generation,
    ReadExample,
    Seq2SeqModel,
    Seq2SeqOptions,
    encode_reading,
    mean,
    read_answers,
)
from whichsense.lab.tasks.training_data import EvidenceSearch, TrainingData
from whichsense.lab.train.task import TaskSpec
from whichsense.models.compact.clarifier import clarify_as_annotators
from whichsense.models.seq2seq import formats
from whichsense.models.seq2seq.formats import (
    Codec,
    InputForm,
    SourceText,
    clarified,
    clarifier_parts,
    composed,
    plain,
)
from whichsense.models.seq2seq.generator import Generator
from whichsense.stages.clarify import SeqClarifier
from whichsense.stages.read import SeqReader
from whichsense.stages.summarize import SeqSummarizer
from whichsense.text.clarification import parse_clarification
from whichsense.text.overlap import corpus_bleu
from whichsense.text.words import sentences, spans_of
from whichsense.types import Hit, Passage, Reading, frozen

# Clarification questions to learn from: CAmbigNQ's, or, for other ambiguous questions, made from
# their rewrites.


@frozen
class ClarificationExample:
    """An ambiguous question, its clarification question with category and options, and the answers (aliases) of the
    options."""

    question: Question
    clarification: str
    category: str
    options: tuple[str, ...]
    answers: tuple[tuple[str, ...], ...]


def clarification_examples(questions: Sequence[Question]) -> list[ClarificationExample]:
    """Return examples of all ambiguous questions whose readings can be told apart."""
    examples = []
    for question in questions:
        if isinstance(question, ClarifiedQuestion):
            example = _annotated_example(question)
        else:
            example = _derived_example(question)
        if example is not None:
            examples.append(example)
    return examples


def _annotated_example(question: ClarifiedQuestion) -> ClarificationExample | None:
    answers = question.clarified_answers
    parsed = parse_clarification(question.clarification, expected=len(answers) or None)
    if parsed is None:
        return None
    category = question.category or parsed.category
    options = question.options or parsed.options
    # Options without answers of their own cannot be learnt.
    if len(options) != len(answers):
        return None
    clarification = question.clarification
    return ClarificationExample(question, clarification, category, options, answers)


def _derived_example(question: Question) -> ClarificationExample | None:
    """Take what the compact clarifier asks, for datasets with rewrites but no clarification questions."""
    if not question.is_ambiguous:
        return None
    pairs = question.annotations[0].pairs
    if len(pairs) < 2 or not all(pair.question for pair in pairs):
        return None
    readings = [Reading(pair.question, "") for pair in pairs]
    clarification = clarify_as_annotators(question.text, readings)
    options = tuple(option.label for option in clarification.options)
    if len(set(options)) < len(options):
        return None
    answers = tuple(pair.answers for pair in pairs)
    return ClarificationExample(
        question, clarification.question, clarification.category, options, answers
    )


# Train the generator of clarification questions (CAmbigNQ, section 6.2): without answers, with
# predicted or with gold.
#
# In training, "predicted" and "gold" see the gold answers, as in the paper; they differ in what
# evaluation gives them: a reader's predictions (`reader`: the folder of a trained one), or the gold
# answers.


@frozen
class ClarifierTraining:
    """A recipe's `[clarifying]`."""

    answers: Literal["none", "predicted", "gold"] = "none"
    reader: str = ""
    """For predicted answers: the folder of a reader."""


@frozen
class _ClarifierOptions(Seq2SeqOptions):
    form: InputForm = InputForm(fusion=False, output_tokens=64)
    data: TrainingData = TrainingData(train="cambignq/train", dev="cambignq/dev")
    clarifying: ClarifierTraining = ClarifierTraining()


def build_clarifier(options: _ClarifierOptions) -> Generation[ClarificationExample]:
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

    def encode(codec: Codec, example: ClarificationExample, rng: random.Random) -> EncodedExample:
        question = example.question.text
        answers = [] if settings.answers == "none" else _first_aliases(example)
        parts = clarifier_parts(question, answers)
        inputs = composed(codec, form, parts, evidence.hits(question))
        target = codec.target([example.clarification], form.output_tokens)
        return EncodedExample(inputs, target)

    return Generation(
        "clarification",
        options,
        "bleu4",
        examples,
        encode,
        partial(_measure_clarifier, dev, evidence, options),
        {"answers": settings.answers},
    )


def _first_aliases(example: ClarificationExample) -> list[str]:
    return [aliases[0] for aliases in example.answers]


def _measure_clarifier(
    examples: Sequence[ClarificationExample],
    evidence: EvidenceSearch,
    options: _ClarifierOptions,
    generator: Generator,
) -> Mapping[str, float]:
    """Return BLEU-4 of the whole question, by which the paper selects; its category; its options."""
    questions = []
    references = []
    hits = []
    for example in examples:
        questions.append(example.question.text)
        references.append(example.clarification)
        hits.append(evidence.hits(example.question.text))
    beams = options.model.beams
    if options.clarifying.answers == "predicted":
        reader = SeqReader(options.clarifying.reader, beams=beams)
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


CLARIFIER = TaskSpec(_ClarifierOptions, build_clarifier)


# Train the reader of clarified questions (CAmbigNQ, section 6.3): a question with one option in, its
# answer out.
#
# Passages are searched for with the clarified question, so that each option has its own order of
# them.


@frozen
class _OptionReaderOptions(Seq2SeqOptions):
    form: InputForm = InputForm(fusion=False, question_tokens=64)
    data: TrainingData = TrainingData(train="cambignq/train", dev="cambignq/dev")


def build_option_reader(options: _OptionReaderOptions) -> Generation[ReadExample]:
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
            examples.append(ReadExample(question, evidence.hits(question), (aliases,)))

    return Generation(
        "clarified-reader",
        options,
        "f1",
        examples,
        partial(encode_reading, form, "annotated"),
        partial(_measure_option_reader, dev, evidence, options.model.beams),
    )


def _clarified_questions(examples: Sequence[ClarificationExample]) -> list[str]:
    """Return each question with each of its options."""
    return [
        clarified(example.question.text, example.category, option)
        for example in examples
        for option in example.options
    ]


def _measure_option_reader(
    examples: Sequence[ClarificationExample],
    evidence: EvidenceSearch,
    beams: int,
    generator: Generator,
) -> Mapping[str, float]:
    """Return CAmbigNQ's precision, recall and F1 with the gold clarification questions; exact match beside them."""
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


OPTION_READER = TaskSpec(_OptionReaderOptions, build_option_reader)


# Train a writer of long answers: T5 closed book, with K passages, or oracle (ASQA, section 5,
# appendix B).
#
# Questions without a long answer of their own (AmbigNQ, the sample) get one from their evidence: the
# sentences of the annotated passages that hold a gold answer, in order.

Mode = Literal["closed", "open", "oracle"]


@frozen
class _LongAnswerSettings:
    """A recipe's `[writing]`."""

    mode: Mode = "open"


@frozen
class _LongAnswerOptions(Seq2SeqOptions):
    model: Seq2SeqModel = Seq2SeqModel(base="t5-large")
    form: InputForm = InputForm(fusion=False, passages=5, input_tokens=2048, output_tokens=256)
    data: TrainingData = TrainingData(train="asqa/train", dev="asqa/dev")
    writing: _LongAnswerSettings = _LongAnswerSettings()


@frozen
class _WriteExample:
    """An input in its format, and the long answers that fit it."""

    question: Question
    text: str
    references: tuple[str, ...]
    scored: tuple[str, ...]
    """The references of its evaluation: for the oracle those of annotators whose knowledge it was not given."""


def build_long_answer(options: _LongAnswerOptions) -> Generation[_WriteExample]:
    data, form, mode = options.data, options.form, options.writing.mode
    evidence = data.evidence(max(1, form.passages))
    train = data.training()
    dev = data.development()
    if mode == "open":
        evidence.search([question.text for question in (*train, *dev)])
    examples = _build_examples(train, evidence, form, mode)
    dev_examples = _build_examples(dev, evidence, form, mode)
    if not examples or not dev_examples:
        raise BadInput("No question has a long answer, nor evidence that one could be made of.")

    def encode(codec: Codec, example: _WriteExample, rng: random.Random) -> EncodedExample:
        inputs = plain(codec, example.text, form.input_tokens)
        reference = rng.choice(example.references)
        return EncodedExample(inputs, codec.target([reference], form.output_tokens))

    return Generation(
        "long-answer",
        options,
        "rouge_l",
        examples,
        encode,
        partial(_measure_long_answer, dev_examples, options.model.beams),
        {"mode": mode},
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
    """Return the input of one question in its mode; None if there is no long answer to learn."""
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
        sources = [SourceText(hit.passage.text, hit.passage.title) for hit in hits]
        text = formats.open_book(question.text, sources)
    return _WriteExample(question, text, references, references)


def _oracle(question: Question, evidence: EvidenceSearch) -> tuple[str, tuple[str, ...]]:
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
    knowledge = [SourceText(piece.text, piece.title) for piece in longest.knowledge]
    others = [answer.text for answer in question.long_answers if answer is not longest]
    text = formats.oracle(question.text, answers, rewrites, contexts, knowledge)
    return text, tuple(others)


def _annotated_contexts(pairs: Sequence[QAPair], evidence: EvidenceSearch) -> list[SourceText]:
    """Return the first annotated passage of each pair, each passage once."""
    passages: dict[Passage, None] = {
        evidence.passage(key): None for pair in pairs for key in pair.evidence[:1]
    }
    return [SourceText(passage.text, passage.title) for passage in passages]


def _derive_reference(question: Question, evidence: EvidenceSearch) -> tuple[str, ...]:
    """Return the first sentence of each annotated passage that holds its answer, as one long answer."""
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


def _measure_long_answer(
    examples: Sequence[_WriteExample], beams: int, generator: Generator
) -> Mapping[str, float]:
    """Return ROUGE-L against the better reference, and the share of short answers that the long one holds (STR-EM)."""
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


LONG_ANSWER = TaskSpec(_LongAnswerOptions, build_long_answer)
