"""Train a rewriter: prompt, answer, other answers and passages in, the question that has only this answer out.

`pretraining` makes the same examples from questions with one answer (NQ-open): "token-deletion" asks to restore a span
that was taken out (REFUEL), "question-generation" to write the question from its answer (AmbigQA). Without `prompt` or
`others` the model is an ablation of AmbigQA's table 4. `insertion_weight` is REFUEL's λ: tokens of the rewrite that
the prompt does not have count 1 + λ times. Answers are drawn from the aliases that the passages hold, or from all if
they hold none, as in AmbigQA's released code (codes/QGData.py); no example is left out (REFUEL, appendix A).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.metrics.ambignq import (
    Annotation,
    Prediction,
    question_scores,
    score_question,
)
from whichsense.models.seq2seq.codec import Codec, InputForm
from whichsense.models.seq2seq.decoding import Search
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import composed, rewriter_parts
from whichsense.stages.disambiguate import SeqDisambiguator
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.train.tasks.seq2seq.answer_prediction import all_aliases, held_aliases
from whichsense.train.tasks.seq2seq.generation import (
    EncodedExample,
    Generation,
    Seq2SeqModel,
    mean,
)
from whichsense.train.tasks.seq2seq.token_deletion import delete_span, load_tagger
from whichsense.types import Candidate, Case, Hit, Reading

_Pretraining = Literal["none", "token-deletion", "question-generation"]


@dataclass(frozen=True, slots=True)
class _RewritingSettings:
    """A recipe's `[rewriting]`."""

    prompt: bool = True
    others: bool = True
    insertion_weight: float = 3.5
    pretraining: _Pretraining = "none"
    tagger: str = ""
    """For token deletion: a spaCy pipeline; empty: the built-in list of closed-class words."""


@dataclass(frozen=True, slots=True)
class _QuestionDisambiguationOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: InputForm = field(
        default_factory=lambda: InputForm(question_tokens=64, output_tokens=40)
    )
    data: TrainingData = field(default_factory=TrainingData)
    rewriting: _RewritingSettings = field(default_factory=_RewritingSettings)


@dataclass(frozen=True, slots=True)
class _RewriteExample:
    """One answer of a question and the rewrites that set it apart; in pre-training, no rewrite yet."""

    prompt: str
    answers: tuple[str, ...]
    others: tuple[str, ...]
    rewrites: tuple[str, ...]
    hits: Sequence[Hit]


def build_task(options: _QuestionDisambiguationOptions) -> Generation[_RewriteExample]:
    data, form, settings = options.data, options.form, options.rewriting
    evidence = data.evidence(form.passages)
    train = data.training()
    dev = data.development()
    evidence.search([question.text for question in (*train, *dev)])
    is_pretraining = settings.pretraining != "none"
    build_examples = _single_examples if is_pretraining else _pair_examples
    examples: list[_RewriteExample] = []
    for question in train:
        examples += build_examples(question, evidence)
    if not examples:
        raise BadInput(
            "No training question has several readings with a rewrite each: there is nothing to learn from."
        )
    dev_examples: list[_RewriteExample] = []
    if is_pretraining:
        for question in dev:
            dev_examples += _single_examples(question, evidence)

    def encode(
        codec: Codec, example: _RewriteExample, rng: random.Random
    ) -> EncodedExample:
        return _encode_rewrite(codec, form, settings, example, rng)

    def measure(generator: Generator) -> Mapping[str, float]:
        beams = options.model.beams
        if is_pretraining:
            return _measure_restored(generator, dev_examples, settings, beams)
        return _measure_rewrites(generator, dev, evidence, beams)

    generates_question = settings.pretraining == "question-generation"
    return Generation(
        task="question-disambiguation",
        model=options.model,
        form=form,
        metric="bleu4" if generates_question else "f1_edit",
        examples=examples,
        encode=encode,
        measure=measure,
        paths=data.paths(),
        options={
            "prompt": settings.prompt and not generates_question,
            "others": settings.others,
        },
    )


def _pair_examples(
    question: Question, evidence: EvidenceSearch
) -> Iterator[_RewriteExample]:
    """Every reading that annotators wrote a question for."""
    hits = evidence.hits(question.text)
    for annotation in question.annotations:
        if annotation.is_single:
            continue
        for pair in annotation.pairs:
            if not pair.questions:
                continue
            others = []
            for other in annotation.pairs:
                if other is not pair:
                    others.append(other.answers[0])
            # No example is left out: where no alias is held, all count.
            answers = held_aliases(pair.answers, hits) or pair.answers
            yield _RewriteExample(
                question.text, answers, tuple(others), pair.questions, hits
            )


def _single_examples(
    question: Question, evidence: EvidenceSearch
) -> Iterator[_RewriteExample]:
    """A question as its own rewrite: what the prompt lacks of it is decided when it is drawn."""
    hits = evidence.hits(question.text)
    aliases = all_aliases(question)
    answers = held_aliases(aliases, hits) or aliases
    yield _RewriteExample(question.text, answers, (), (question.text,), hits)


def _encode_rewrite(
    codec: Codec,
    form: InputForm,
    settings: _RewritingSettings,
    example: _RewriteExample,
    rng: random.Random,
) -> EncodedExample:
    prompt, rewrite = _draw_prompt_and_rewrite(example, settings, rng)
    answer = rng.choice(example.answers)
    with_prompt = settings.prompt and bool(prompt)
    parts = rewriter_parts(
        prompt, answer, example.others, prompt=with_prompt, with_others=settings.others
    )
    target = codec.target([rewrite], form.output_tokens)
    weights = None
    if settings.insertion_weight:
        weights = _insertion_weights(
            codec.ids(prompt), target, settings.insertion_weight
        )
    inputs = composed(codec, form, parts, example.hits, answer)
    return EncodedExample(inputs, target, weights)


def _draw_prompt_and_rewrite(
    example: _RewriteExample, settings: _RewritingSettings, rng: random.Random
) -> tuple[str, str]:
    """Prompt and rewrite. In pre-training the rewrite is the question, and the prompt what is left of it."""
    question = example.prompt
    if settings.pretraining == "none":
        return question, rng.choice(example.rewrites)
    if settings.pretraining == "question-generation":
        return "", question
    prompt = delete_span(question, rng, load_tagger(settings.tagger))
    return prompt or question, question


def _insertion_weights(
    prompt: Sequence[int], target: Sequence[int], weight: float
) -> list[float]:
    """1 for tokens that the prompt has too, in its order; 1 + weight for the others.

    >>> _insertion_weights([5, 6, 7], [0, 5, 9, 6, 7, 2], 3.5)
    [1.0, 1.0, 4.5, 1.0, 1.0, 1.0]
    """
    weights = [1.0] * len(target)
    if not prompt:
        return weights
    # The end token is not an insertion, nor is a start token.
    body = list(target[:-1])
    matcher = SequenceMatcher(None, list(prompt), body, autojunk=False)
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind in ("insert", "replace"):
            weights[start:end] = [1.0 + weight] * (end - start)
    if target[0] not in prompt and weights[0] > 1.0:
        weights[0] = 1.0
    return weights


def _measure_rewrites(
    generator: Generator,
    questions: Sequence[Question],
    evidence: EvidenceSearch,
    beams: int,
) -> Mapping[str, float]:
    """F1EDIT-F1 and F1BLEU over ambiguous questions with their gold answers given (AmbigQA, table 4)."""
    ambiguous = [question for question in questions if question.is_ambiguous]
    cases = []
    for question in ambiguous:
        gold = question.annotations[0].pairs
        answers = tuple(Candidate(pair.answers[0], 1.0) for pair in gold)
        hits = tuple(evidence.hits(question.text))
        cases.append(Case(question.text, hits, answers))
    rewritten = SeqDisambiguator(generator, beams=beams).disambiguate(cases)
    f1_edit = []
    f1_bleu4 = []
    for question, case in zip(ambiguous, rewritten, strict=True):
        score = _score_readings(question, case.readings)
        f1_edit.append(score["f1_edit"])
        f1_bleu4.append(score["f1_bleu4"])
    return {"f1_edit": mean(f1_edit), "f1_bleu4": mean(f1_bleu4)}


def _score_readings(
    question: Question, readings: Sequence[Reading]
) -> Mapping[str, float]:
    answers = []
    rewrites = []
    for reading in readings:
        answers.append(reading.answer)
        rewrites.append(reading.question)
    prediction = Prediction(tuple(answers), tuple(rewrites))
    golds = []
    for annotation in question.annotations:
        # The metric takes alternative rewrites of one reading as one string.
        gold_rewrites = tuple("|".join(pair.questions) for pair in annotation.pairs)
        golds.append(Annotation(annotation.answers, gold_rewrites))
    return score_question(question.text, golds, prediction)


def _measure_restored(
    generator: Generator,
    examples: Sequence[_RewriteExample],
    settings: _RewritingSettings,
    beams: int,
) -> Mapping[str, float]:
    """How well questions are restored: against the prompt that each was cut down to."""
    codec, form = generator.codec, generator.form
    prompts = []
    inputs = []
    for example in examples:
        # Seeded by the question: every evaluation sees the same prompts.
        rng = random.Random(example.prompt)
        prompt, _ = _draw_prompt_and_rewrite(example, settings, rng)
        answer = example.answers[0]
        parts = rewriter_parts(prompt, answer, (), prompt=bool(prompt))
        prompts.append(prompt)
        inputs.append(composed(codec, form, parts, example.hits, answer))
    outputs = generator.generate(inputs, Search(beams, form.output_tokens))
    edit_f1 = []
    bleu4 = []
    for prompt, example, beam in zip(prompts, examples, outputs, strict=True):
        rewrite = codec.text(beam[0].tokens) if beam else ""
        scores = question_scores(prompt, example.prompt, rewrite)
        edit_f1.append(scores[4])
        bleu4.append(scores[3])
    return {"f1_edit": mean(edit_f1), "bleu4": mean(bleu4)}


SPEC = TaskSpec(_QuestionDisambiguationOptions, build_task)
