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
from whichsense.models.seq2seq.codec import Codec, Form
from whichsense.models.seq2seq.decoding import Search
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.inputs import composed, rewriter_parts
from whichsense.stages.disambiguate import SeqDisambiguator
from whichsense.train.loop.task import TaskSpec
from whichsense.train.tasks.data import TrainingData
from whichsense.train.tasks.evidence import EvidenceSearch
from whichsense.train.tasks.seq2seq.answer_prediction import held
from whichsense.train.tasks.seq2seq.generation import (
    Generation,
    Pair,
    Seq2SeqModel,
    mean,
)
from whichsense.train.tasks.seq2seq.token_deletion import partial, tagger
from whichsense.types import Candidate, Case, Hit

Pretraining = Literal["none", "token-deletion", "question-generation"]


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A recipe's `[rewriting]`."""

    prompt: bool = True
    others: bool = True
    insertion_weight: float = 3.5
    pretraining: Pretraining = "none"
    tagger: str = ""
    """For token deletion: a spaCy pipeline; empty: the built-in list of closed-class words."""


@dataclass(frozen=True, slots=True)
class QuestionDisambiguationOptions:
    model: Seq2SeqModel = field(default_factory=Seq2SeqModel)
    form: Form = field(
        default_factory=lambda: Form(question_tokens=64, output_tokens=40)
    )
    data: TrainingData = field(default_factory=TrainingData)
    rewriting: Rewriting = field(default_factory=Rewriting)


@dataclass(frozen=True, slots=True)
class RewriteExample:
    """One answer of a question and the rewrites that set it apart; in pre-training, no rewrite yet."""

    prompt: str
    answers: tuple[str, ...]
    others: tuple[str, ...]
    rewrites: tuple[str, ...]
    hits: Sequence[Hit]


def build_task(options: QuestionDisambiguationOptions) -> Generation[RewriteExample]:
    data, form, settings = options.data, options.form, options.rewriting
    evidence = data.evidence(form.passages)
    train, dev = data.training(), data.development()
    evidence.search([question.text for question in (*train, *dev)])
    built = single_examples if settings.pretraining != "none" else pair_examples
    examples = [example for question in train for example in built(question, evidence)]
    if not examples:
        raise BadInput(
            "No training question has several readings with a rewrite each: there is nothing to learn from."
        )
    if settings.pretraining != "none":
        held_out = [
            example
            for question in dev
            for example in single_examples(question, evidence)
        ]

        def measure(generator: Generator) -> Mapping[str, float]:
            return restored(generator, held_out, settings, options.model.beams)

    else:

        def measure(generator: Generator) -> Mapping[str, float]:
            return measured(generator, dev, evidence, options.model.beams)

    return Generation(
        task="question-disambiguation",
        model=options.model,
        form=form,
        metric="bleu4" if settings.pretraining == "question-generation" else "f1_edit",
        examples=examples,
        pair=lambda codec, example, dice: rewrite_pair(
            codec, form, settings, example, dice
        ),
        measure=measure,
        paths=data.paths(),
        options={
            "prompt": settings.prompt and settings.pretraining != "question-generation",
            "others": settings.others,
        },
    )


def pair_examples(
    question: Question, evidence: EvidenceSearch
) -> Iterator[RewriteExample]:
    """Every reading that annotators wrote a question for."""
    hits = evidence.hits(question.text)
    for annotation in question.annotations:
        if annotation.is_single:
            continue
        for pair in annotation.pairs:
            if pair.questions:
                others = tuple(
                    other.answers[0] for other in annotation.pairs if other is not pair
                )
                yield RewriteExample(
                    question.text,
                    held(pair.answers, hits) or pair.answers,
                    others,
                    pair.questions,
                    hits,
                )


def single_examples(
    question: Question, evidence: EvidenceSearch
) -> Iterator[RewriteExample]:
    """A question as its own rewrite: what the prompt lacks of it is decided when it is drawn."""
    hits = evidence.hits(question.text)
    aliases = tuple(alias for answer in question.answers for alias in answer)
    yield RewriteExample(
        question.text, held(aliases, hits) or aliases, (), (question.text,), hits
    )


def rewrite_pair(
    codec: Codec,
    form: Form,
    settings: Rewriting,
    example: RewriteExample,
    dice: random.Random,
) -> Pair:
    prompt, rewrite = drawn(example, settings, dice)
    answer = dice.choice(example.answers)
    parts = rewriter_parts(
        prompt, answer, example.others,
        prompt=settings.prompt and bool(prompt), with_others=settings.others,
    )  # fmt: skip
    target = codec.target([rewrite], form.output_tokens)
    weights = (
        inserted(codec.ids(prompt), target, settings.insertion_weight)
        if settings.insertion_weight
        else None
    )
    return Pair(composed(codec, form, parts, example.hits, answer), target, weights)


def drawn(
    example: RewriteExample, settings: Rewriting, dice: random.Random
) -> tuple[str, str]:
    """Prompt and rewrite. In pre-training the rewrite is the question, and the prompt what is left of it."""
    if settings.pretraining == "none":
        return example.prompt, dice.choice(example.rewrites)
    if settings.pretraining == "question-generation":
        return "", example.prompt
    return partial(
        example.prompt, dice, tagger(settings.tagger)
    ) or example.prompt, example.prompt


def inserted(
    prompt: Sequence[int], target: Sequence[int], weight: float
) -> list[float]:
    """1 for tokens that the prompt has too, in its order; 1 + weight for the others.

    >>> inserted([5, 6, 7], [0, 5, 9, 6, 7, 2], 3.5)
    [1.0, 1.0, 4.5, 1.0, 1.0, 1.0]
    """
    weights = [1.0] * len(target)
    if not prompt:
        return weights
    body = list(target[:-1])  # the end is no insertion, nor is a start token
    for kind, _, _, start, end in SequenceMatcher(
        None, list(prompt), body, autojunk=False
    ).get_opcodes():
        if kind in ("insert", "replace"):
            weights[start:end] = [1.0 + weight] * (end - start)
    if target[0] not in prompt and weights[0] > 1.0:
        weights[0] = 1.0
    return weights


def measured(
    generator: Generator,
    questions: Sequence[Question],
    evidence: EvidenceSearch,
    beams: int,
) -> Mapping[str, float]:
    """F1EDIT-F1 and F1BLEU over ambiguous questions with their gold answers given (AmbigQA, table 4)."""
    asked = [question for question in questions if question.is_ambiguous]
    cases = []
    for question in asked:
        gold = question.annotations[0].pairs
        answers = tuple(Candidate(pair.answers[0], 1.0) for pair in gold)
        hits = tuple(evidence.hits(question.text))
        cases.append(Case(question.text, hits, answers))
    rewritten = SeqDisambiguator(generator, beams=beams).disambiguate(cases)
    scores = []
    for question, case in zip(asked, rewritten, strict=True):
        readings = case.readings
        prediction = Prediction(
            tuple(r.answer for r in readings), tuple(r.question for r in readings)
        )
        golds = [
            Annotation(a.answers, tuple("|".join(p.questions) for p in a.pairs))
            for a in question.annotations
        ]
        scores.append(score_question(question.text, golds, prediction))
    return {
        name: mean([score[name] for score in scores])
        for name in ("f1_edit", "f1_bleu4")
    }


def restored(
    generator: Generator,
    examples: Sequence[RewriteExample],
    settings: Rewriting,
    beams: int,
) -> Mapping[str, float]:
    """How well questions are restored: against the prompt that each was cut down to."""
    codec, form = generator.codec, generator.form
    prompts = [
        drawn(example, settings, random.Random(example.prompt))[0]
        for example in examples
    ]
    inputs = [
        composed(
            codec,
            form,
            rewriter_parts(prompt, example.answers[0], (), prompt=bool(prompt)),
            example.hits,
            example.answers[0],
        )
        for prompt, example in zip(prompts, examples, strict=True)
    ]
    outputs = generator.generate(inputs, Search(beams, form.output_tokens))
    scores = [
        question_scores(
            prompt, example.prompt, codec.text(found[0].tokens) if found else ""
        )
        for prompt, example, found in zip(prompts, examples, outputs, strict=True)
    ]
    return {
        "f1_edit": mean([score[4] for score in scores]),
        "bleu4": mean([score[3] for score in scores]),
    }


SPEC = TaskSpec(QuestionDisambiguationOptions, build_task)
