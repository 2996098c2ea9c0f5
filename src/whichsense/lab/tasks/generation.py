"""Tasks that generate: answers, disambiguated questions, verification."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cache, cached_property, partial
from itertools import chain, compress, islice, product
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from whichsense.errors import BadInput, require
from whichsense.lab.datasets import Question
from whichsense.lab.evaluation.scoring import annotations_of
from whichsense.lab.fused.fused_layers import FusedNetwork
from whichsense.lab.metrics.ambignq import Prediction, best_f1, question_scores, score_question
from whichsense.lab.metrics.exact_match import exact_match
from whichsense.lab.tasks.training_data import EvidenceSearch, TrainingData
from whichsense.lab.train.task import Lazy, Task, TaskSpec, shuffle_batches
from whichsense.lab.train.tiny import located
from whichsense.models.seq2seq import generator
from whichsense.models.seq2seq.decoding import Search
from whichsense.models.seq2seq.formats import (
    Codec,
    InputForm,
    TokenSequences,
    composed,
    read_by,
    rewriter_parts,
)
from whichsense.models.seq2seq.generator import Generator
from whichsense.models.seq2seq.network import Network, network_of
from whichsense.models.seq2seq.ragged import IGNORED, Batch, RaggedRows
from whichsense.stages.disambiguate import FirstRewriter, SeqDisambiguator
from whichsense.stages.read import SeqReader
from whichsense.text.words import CLOSED_CLASS_WORDS, spans_of
from whichsense.types import Candidate, Case, Hit, Reading, frozen

# What all sequence-to-sequence tasks share: a base model, a form of input, batches without padding,
# evaluation.
#
# A task of this kind brings its examples, how each is encoded, and its own metrics.

Example = TypeVar("Example")


@frozen
class Seq2SeqModel:
    """A recipe's `[model]`."""

    base: str = "facebook/bart-large"
    """A name on the hub, a folder (of an earlier run: its `model`), or a tiny base."""
    batch: int = 8
    """Examples in a batch; `train.accumulate` of them make a step."""
    beams: int = 4
    """For evaluation."""
    label_smoothing: float = 0.0


@frozen
class Seq2SeqOptions:
    """The tables that every recipe of this kind has."""

    model: Seq2SeqModel = Seq2SeqModel()
    form: InputForm = InputForm()
    data: TrainingData = TrainingData()


class EncodedExample(NamedTuple):
    """An example as the model sees it, in token ids."""

    inputs: TokenSequences
    target: list[int]
    weights: list[float] | None = None
    """How much each token of the target counts; None: one."""


@dataclass
class Generation(Task[Network, Batch], Generic[Example]):
    """A task of the training loop that generates text."""

    task: str
    recipe: Seq2SeqOptions
    metric: str
    examples: Sequence[Example]
    encode: Callable[[Codec, Example, random.Random], EncodedExample]
    """May draw at random: its generator is decided by epoch, seed and the example's place."""
    measure: Callable[[Generator], Mapping[str, float]]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Written beside the model: what a stage must know to use it."""
    files: Sequence[Path] = ()
    """Learnt from as well as the recipe's data."""
    higher_is_better: bool = True

    @cached_property
    def codec(self) -> Codec:
        return generator.load_codec(located(self.recipe.model.base), self.recipe.form)

    def build(self) -> Network:
        settings = self.recipe.model
        model = generator.load_model(located(settings.base), self.codec)
        network = network_of(model, FusedNetwork)
        network.label_smoothing = settings.label_smoothing
        return network

    def batches(self, epoch: int, seed: int) -> Lazy[list[int], Batch]:
        def encode(place: int) -> EncodedExample:
            rng = random.Random(f"{seed}/{epoch}/{place}")
            return self.encode(self.codec, self.examples[place], rng)

        batches = shuffle_batches(len(self.examples), self.recipe.model.batch, epoch, seed)
        return Lazy(batches, lambda places: collate_examples(list(map(encode, places))))

    def loss(self, model: Network, batch: Batch) -> Tensor:
        loss: Tensor = model(batch)
        return loss

    def evaluate(self, model: Network) -> Mapping[str, float]:
        generator = Generator.of(model, self.codec, self.recipe.form)
        generator.options = dict(self.options)
        return self.measure(generator)

    def save(self, model: Network, folder: Path) -> None:
        generator.save(
            folder, model.model, self.codec, self.recipe.form, task=self.task, options=self.options
        )

    def data(self) -> Sequence[Path]:
        return [*self.recipe.data.paths(), *self.files]


def collate_examples(examples: Sequence[EncodedExample]) -> Batch:
    """Return inputs end to end, without padding; targets and their weights as [examples, longest target]."""
    sequences = [sequence for example in examples for sequence in example.inputs]
    shape = (len(examples), max(len(example.target) for example in examples))
    labels = torch.full(shape, IGNORED)
    has_weights = any(example.weights for example in examples)
    weights = torch.ones(shape) if has_weights else None
    for row, example in enumerate(examples):
        length = len(example.target)
        labels[row, :length] = torch.tensor(example.target)
        if weights is not None and example.weights:
            weights[row, :length] = torch.tensor(example.weights)
    return Batch(
        torch.tensor(list(chain.from_iterable(sequences))),
        RaggedRows.of(list(map(len, sequences))),
        RaggedRows.of([sum(map(len, example.inputs)) for example in examples]),
        labels,
        weights,
    )


def read_answers(
    reader: SeqReader, questions: Sequence[str], evidence: EvidenceSearch
) -> list[list[str]]:
    """Return a reader's answers to questions, over the hits of each."""
    cases = [Case(text, tuple(evidence.hits(text))) for text in questions]
    return [[candidate.answer for candidate in case.answers] for case in reader.read(cases)]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


# Train a reader: SpanSeqGen (all passages in one input) or Fusion-in-Decoder, adaptive in the number
# of answers.
#
# Aliases, order and missing answers are handled as in AmbigQA's released code (codes/QAData.py,
# AmbigQAData): of each answer only the aliases that the input holds count; the target is one
# combination of aliases, drawn anew each time it is seen, from the first 100; answers are in the
# annotators' order, or, with `order = "found"`, only combinations whose answers occur in the input in
# that order are used (its --consider_order_for_multiple_answers); a question none of whose answers is
# in the input is left out (REFUEL, appendix A, and the code's --discard_not_found_answers).

_COMBINATIONS = 100
Aliases = tuple[str, ...]


@frozen
class AnswerSettings:
    """A recipe's `[answers]`."""

    single: bool = False
    """One answer only, as in NQ-open: the first stage of both papers, and the zero-shot reader."""
    order: Literal["annotated", "found"] = "annotated"
    discard_missing: bool = True


@frozen
class AnswerPredictionOptions(Seq2SeqOptions):
    answers: AnswerSettings = AnswerSettings()


@frozen
class ReadExample:
    """A question over its passages, and for each answer the aliases that may be its target."""

    question: str
    hits: Sequence[Hit]
    answers: tuple[Aliases, ...]


def build_answer_prediction(
    options: AnswerPredictionOptions, more: Sequence[Question] = (), files: Sequence[Path] = ()
) -> Generation[ReadExample]:
    """Build the task; co-training adds `more` training questions, which `files` hold."""
    data, form = options.data, options.form
    train, dev, evidence = data.all_searched(form.passages, more)
    codec = generator.load_codec(located(options.model.base), form)
    examples: list[ReadExample] = []
    for question in train:
        # Only passages that fit into the input can hold an answer.
        hits = read_by(codec, form, [question.text], evidence.hits(question.text))
        examples += read_examples(question, hits, options.answers)
    if not examples:
        raise BadInput("No training question has an answer in the passages that were found for it.")

    return Generation(
        "answer-prediction",
        options,
        "em" if options.answers.single else "f1_ans",
        examples,
        partial(encode_reading, form, options.answers.order),
        partial(_measure_answer_prediction, dev, evidence, options.model.beams),
        {"single": options.answers.single},
        files,
    )


def read_examples(
    question: Question, hits: Sequence[Hit], settings: AnswerSettings
) -> Iterator[ReadExample]:
    """One example for each annotation, over the hits that the model will see; for single answers, one whose aliases are
    those of all its answers."""
    answer_sets: Sequence[Sequence[Aliases]] = question.answer_sets
    if settings.single:
        answer_sets = [[all_aliases(question)]]
    for answers in answer_sets:
        held = [own for aliases in answers if (own := held_aliases(aliases, hits))]
        if held or not settings.discard_missing:
            yield ReadExample(question.text, hits, tuple(held or answers))


def all_aliases(question: Question) -> Aliases:
    """Return the aliases of all answers of a question, in order."""
    return tuple(chain.from_iterable(question.answers))


def held_aliases(aliases: Aliases, hits: Sequence[Hit]) -> Aliases:
    """Return the aliases that some passage holds."""
    return tuple(alias for alias in dict.fromkeys(aliases) if spans_of(alias, hits, most=1))


def encode_reading(
    form: InputForm, order: str, codec: Codec, example: ReadExample, rng: random.Random
) -> EncodedExample:
    """Encode a question with one combination of aliases, drawn at random, as its target."""
    inputs = composed(codec, form, [example.question], example.hits)
    # One alias for each answer.
    combinations = list(islice(product(*example.answers), _COMBINATIONS))
    if order == "found":
        texts = [hit.passage.text for hit in example.hits[: form.passages]]
        text = " ".join(texts).lower()
        in_order = [combination for combination in combinations if _is_in_order(combination, text)]
        combinations = in_order or combinations
    target = codec.target(rng.choice(combinations), form.output_tokens)
    return EncodedExample(inputs, target)


def _is_in_order(answers: Sequence[str], text: str) -> bool:
    place = -1
    for answer in answers:
        place = text.find(answer.lower(), place + 1)
        if place < 0:
            return False
    return True


def _measure_answer_prediction(
    questions: Sequence[Question], evidence: EvidenceSearch, beams: int, generator: Generator
) -> Mapping[str, float]:
    """Return F1ans over all questions and over the ambiguous ones; exact match of the first answer."""
    reader = SeqReader(generator, beams=beams)
    found = read_answers(reader, [question.text for question in questions], evidence)
    predictions = [answers or [""] for answers in found]
    # Of several annotations the one that fits best counts.
    scores = [
        best_f1(one.answer_sets, own) for one, own in zip(questions, predictions, strict=True)
    ]
    firsts = [own[0] for own in predictions]
    return {
        "f1_ans": mean(scores),
        "f1_ans_multi": mean(list(compress(scores, (one.is_ambiguous for one in questions)))),
        "em": mean(list(map(exact_match, firsts, map(all_aliases, questions)))),
        "answers": mean(list(map(len, predictions))),
    }


ANSWER_PREDICTION = TaskSpec(AnswerPredictionOptions, build_answer_prediction)


# Token-deletion pre-training (REFUEL, section 3.2): questions made ambiguous by taking an informative
# span out.
#
# A span is informative if one of its words is an adjective, noun, number, name, symbol or verb.
# English needs no tagger for that: the other classes are closed, and their words are listed here.
# spaCy may decide instead.

_Tagger = Callable[[Sequence[str]], list[bool]]
"""Says of each word of a question whether it is informative."""
_LONGEST = 5  # words of a deleted span
_INFORMATIVE = frozenset({"ADJ", "NOUN", "NUM", "PROPN", "SYM", "VERB"})
_EDGES = ".,?!;:\"'"
_WORD = re.compile(r"[^\W_]", re.UNICODE)


def tag_by_list(words: Sequence[str]) -> list[bool]:
    """Tell which words are not of a closed class, and so informative.

    >>> tag_by_list("Who wrote the play the Crucible ?".split())
    [False, True, False, True, False, True, False]
    """
    return [
        word.lower().strip(_EDGES) not in CLOSED_CLASS_WORDS and bool(_WORD.search(word))
        for word in words
    ]


def load_tagger(name: str) -> _Tagger:
    """The tagger that a recipe names: empty for the list of closed classes, else an installed spaCy pipeline, as in the
    paper's code."""
    if not name:
        return tag_by_list
    pipeline = _load_pipeline(name)

    def tag(words: Sequence[str]) -> list[bool]:
        tokens: Any = require("spacy.tokens", "tagging")
        document = tokens.Doc(pipeline.vocab, words=list(words))
        return [token.pos_ in _INFORMATIVE for token in pipeline(document)]

    return tag


@cache
def _load_pipeline(name: str) -> Any:
    spacy = require("spacy", "tagging")
    try:
        return spacy.load(name)
    except OSError:
        raise BadInput(
            f"spaCy has no pipeline '{name}'. Install it, or leave the tagger out."
        ) from None


def delete_span(question: str, rng: random.Random, tag: _Tagger = tag_by_list) -> str | None:
    """Return the question without an informative span of 1 to 5 words, its length drawn evenly; None if nothing may go.

    >>> delete_span("Who wrote the play the Crucible?", random.Random(3))
    'Who wrote the play?'
    """
    body = question.rstrip()
    mark = body[-1:] if body[-1:] in "?.!" else ""
    words = body.removesuffix(mark).split()
    informative = tag(words)
    # The drawn length first, then shorter ones for a short question. One word stays.
    longest = min(rng.randint(1, _LONGEST), len(words) - 1)
    for length in range(longest, 0, -1):
        possible = range(len(words) - length + 1)
        starts = [start for start in possible if any(informative[start : start + length])]
        if starts:
            start = rng.choice(starts)
            return " ".join([*words[:start], *words[start + length :]]) + mark
    return None


# Train a rewriter: prompt, answer, other answers and passages in, the question that has only this
# answer out.
#
# `pretraining` makes the same examples from questions with one answer (NQ-open): "token-deletion"
# asks to restore a span that was taken out (REFUEL), "question-generation" to write the question from
# its answer (AmbigQA). Without `prompt` or `others` the model is an ablation of AmbigQA's table 4.
# `insertion_weight` is REFUEL's λ: tokens of the rewrite that the prompt does not have count 1 + λ
# times. Answers are drawn from the aliases that the passages hold, or from all if they hold none, as
# in AmbigQA's released code (codes/QGData.py); no example is left out (REFUEL, appendix A).

_Pretraining = Literal["none", "token-deletion", "question-generation"]


@frozen
class _RewritingSettings:
    """A recipe's `[rewriting]`."""

    prompt: bool = True
    others: bool = True
    insertion_weight: float = 3.5
    pretraining: _Pretraining = "none"
    tagger: str = ""
    """For token deletion: a spaCy pipeline; empty: the built-in list of closed-class words."""


@frozen
class _QuestionDisambiguationOptions(Seq2SeqOptions):
    form: InputForm = InputForm(question_tokens=64, output_tokens=40)
    rewriting: _RewritingSettings = _RewritingSettings()


@frozen
class _RewriteExample:
    """One answer of a question and the rewrites that set it apart; in pre-training, no rewrite yet."""

    prompt: str
    answers: tuple[str, ...]
    others: tuple[str, ...]
    rewrites: tuple[str, ...]
    hits: Sequence[Hit]


def build_question_disambiguation(
    options: _QuestionDisambiguationOptions,
) -> Generation[_RewriteExample]:
    form, settings = options.form, options.rewriting
    train, dev, evidence = options.data.all_searched(form.passages)
    is_pretraining = settings.pretraining != "none"
    build_examples = _single_examples if is_pretraining else _pair_examples
    examples = [one for question in train for one in build_examples(question, evidence)]
    if not examples:
        raise BadInput(
            "No training question has several readings with a rewrite each: there is nothing to learn from."
        )
    beams = options.model.beams
    measure = partial(_measure_rewrites, dev, evidence, beams)
    if is_pretraining:
        restored = [one for each in dev for one in _single_examples(each, evidence)]
        measure = partial(_measure_restored, restored, settings, beams)

    generates_question = settings.pretraining == "question-generation"
    return Generation(
        "question-disambiguation",
        options,
        "bleu4" if generates_question else "f1_edit",
        examples,
        partial(_encode_rewrite, form, settings),
        measure,
        {"prompt": settings.prompt and not generates_question, "others": settings.others},
    )


def _pair_examples(question: Question, evidence: EvidenceSearch) -> Iterator[_RewriteExample]:
    """Yield every reading that annotators wrote a question for."""
    hits = evidence.hits(question.text)
    for annotation in question.annotations:
        if annotation.is_single:
            continue
        for pair in annotation.pairs:
            if not pair.questions:
                continue
            others = [other.answers[0] for other in annotation.pairs if other is not pair]
            # No example is left out: where no alias is held, all count.
            answers = held_aliases(pair.answers, hits) or pair.answers
            yield _RewriteExample(question.text, answers, tuple(others), pair.questions, hits)


def _single_examples(question: Question, evidence: EvidenceSearch) -> Iterator[_RewriteExample]:
    """Yield a question as its own rewrite: what the prompt lacks of it is decided when it is drawn."""
    hits = evidence.hits(question.text)
    aliases = all_aliases(question)
    answers = held_aliases(aliases, hits) or aliases
    yield _RewriteExample(question.text, answers, (), (question.text,), hits)


def _encode_rewrite(
    form: InputForm,
    settings: _RewritingSettings,
    codec: Codec,
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
        weights = _insertion_weights(codec.ids(prompt), target, settings.insertion_weight)
    inputs = composed(codec, form, parts, example.hits, answer)
    return EncodedExample(inputs, target, weights)


def _draw_prompt_and_rewrite(
    example: _RewriteExample, settings: _RewritingSettings, rng: random.Random
) -> tuple[str, str]:
    """Return prompt and rewrite. In pre-training the rewrite is the question, and the prompt what is left of it."""
    question = example.prompt
    if settings.pretraining == "none":
        return question, rng.choice(example.rewrites)
    if settings.pretraining == "question-generation":
        return "", question
    prompt = delete_span(question, rng, load_tagger(settings.tagger))
    return prompt or question, question


def _insertion_weights(prompt: Sequence[int], target: Sequence[int], weight: float) -> list[float]:
    """Return 1 for tokens that the prompt has too, in its order; 1 + weight for the others.

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
    questions: Sequence[Question], evidence: EvidenceSearch, beams: int, generator: Generator
) -> Mapping[str, float]:
    """Return F1EDIT-F1 and F1BLEU over ambiguous questions with their gold answers given (AmbigQA, table 4)."""
    ambiguous = [question for question in questions if question.is_ambiguous]
    cases = []
    for question in ambiguous:
        gold = question.annotations[0].pairs
        answers = tuple(Candidate(pair.answers[0], 1.0) for pair in gold)
        cases.append(Case(question.text, tuple(evidence.hits(question.text)), answers))
    rewritten = SeqDisambiguator(generator, beams=beams).disambiguate(cases)
    scores = [
        _score_readings(question, case.readings)
        for question, case in zip(ambiguous, rewritten, strict=True)
    ]
    return {name: mean([score[name] for score in scores]) for name in ("f1_edit", "f1_bleu4")}


def _score_readings(question: Question, readings: Sequence[Reading]) -> Mapping[str, float]:
    prediction = Prediction(
        tuple(one.answer for one in readings), tuple(one.question for one in readings)
    )
    return score_question(question.text, annotations_of(question), prediction)


def _measure_restored(
    examples: Sequence[_RewriteExample],
    settings: _RewritingSettings,
    beams: int,
    generator: Generator,
) -> Mapping[str, float]:
    """Return how well questions are restored: against the prompt that each was cut down to."""
    codec, form = generator.codec, generator.form
    # Seeded by the question: every evaluation sees the same prompts.
    prompts = [
        _draw_prompt_and_rewrite(one, settings, random.Random(one.prompt))[0] for one in examples
    ]
    inputs = []
    for prompt, example in zip(prompts, examples, strict=True):
        answer = example.answers[0]
        parts = rewriter_parts(prompt, answer, (), prompt=bool(prompt))
        inputs.append(composed(codec, form, parts, example.hits, answer))
    scores = []
    outputs = generator.generate(inputs, Search(beams, form.output_tokens))
    for prompt, example, beam in zip(prompts, examples, outputs, strict=True):
        rewrite = codec.text(beam[0].tokens) if beam else ""
        scores.append(question_scores(prompt, example.prompt, rewrite))
    return {"f1_edit": mean([one[4] for one in scores]), "bleu4": mean([one[3] for one in scores])}


QUESTION_DISAMBIGUATION = TaskSpec(_QuestionDisambiguationOptions, build_question_disambiguation)


# Train the model of LM verification: one answer for each unambiguous question (REFUEL, section 2.3,
# appendix A).
#
# Each rewrite of AmbigNQ is paired with its own answer; questions with a single answer are paired
# with that.


def build_verification(options: Seq2SeqOptions) -> Generation[ReadExample]:
    train, dev, evidence = options.data.all_searched(options.form.passages)
    examples, dev_examples = (
        [one for question in some for one in _unambiguous_examples(question, evidence, held)]
        for some, held in ((train, True), (dev, False))
    )
    if not examples:
        raise BadInput("No training question has an answer in the passages that were found for it.")

    return Generation(
        "verification",
        options,
        "em",
        examples,
        partial(encode_reading, options.form, "annotated"),
        partial(_measure_verification, dev_examples, options.model.beams),
    )


def _unambiguous_examples(
    question: Question, evidence: EvidenceSearch, only_held: bool
) -> Iterator[ReadExample]:
    """Yield rewrites with their answers, over the passages of the prompt: those that a rewrite is verified with."""
    hits = evidence.hits(question.text)
    for annotation in question.annotations:
        for pair in annotation.pairs:
            text = question.text if annotation.is_single else pair.question
            aliases = pair.answers
            if only_held:
                aliases = held_aliases(aliases, hits)
            if text and aliases:
                yield ReadExample(text, hits, (aliases,))


def _measure_verification(
    examples: Sequence[ReadExample], beams: int, generator: Generator
) -> Mapping[str, float]:
    """Return exact match of the first answer."""
    reader = SeqReader(generator, beams=beams)
    cases = [Case(example.question, tuple(example.hits)) for example in examples]
    exact = [
        exact_match(case.answers[0].answer if case.answers else "", example.answers[0])
        for example, case in zip(examples, reader.read(cases), strict=True)
    ]
    return {"em": mean(exact)}


VERIFICATION = TaskSpec(Seq2SeqOptions, build_verification)


# Train the rewriter of DISAMBIG-FIRST: from the question alone to all its readings (AmbigQA, section
# 6.1).


@frozen
class _DisambiguateFirstOptions(Seq2SeqOptions):
    form: InputForm = InputForm(fusion=False, passages=0, output_tokens=128)


def build_disambiguate_first(options: _DisambiguateFirstOptions) -> Generation[Question]:
    form = replace(options.form, passages=0)
    options = replace(options, form=form)
    examples = _ambiguous(options.data.training())
    if not examples:
        raise BadInput("No training question is ambiguous: there is no reading to learn.")
    dev = _ambiguous(options.data.development())

    def encode(codec: Codec, question: Question, rng: random.Random) -> EncodedExample:
        rewrites = [
            rng.choice(pair.questions)
            for pair in rng.choice(question.annotations).pairs
            if pair.questions
        ]
        inputs = composed(codec, form, [question.text], ())
        return EncodedExample(inputs, codec.target(rewrites, form.output_tokens))

    return Generation(
        "disambiguate-first",
        options,
        "edit_f1",
        examples,
        encode,
        partial(_measure_disambiguate_first, dev, options.model.beams),
    )


def _ambiguous(questions: Sequence[Question]) -> list[Question]:
    return [question for question in questions if question.is_ambiguous]


def _measure_disambiguate_first(
    questions: Sequence[Question], beams: int, generator: Generator
) -> Mapping[str, float]:
    """Return EDIT-F1 of each gold rewrite against the nearest predicted one."""
    texts = [question.text for question in questions]
    predictions = FirstRewriter(generator, beams=beams).rewrite(texts)
    scores = []
    counts = []
    for question, rewrites in zip(questions, predictions, strict=True):
        counts.append(float(len(rewrites)))
        for pair in question.annotations[0].pairs:
            gold = "|".join(pair.questions)
            edit_f1 = [question_scores(question.text, gold, rewrite)[4] for rewrite in rewrites]
            scores.append(max(edit_f1))
    return {"edit_f1": mean(scores), "rewrites": mean(counts)}


DISAMBIGUATE_FIRST = TaskSpec(_DisambiguateFirstOptions, build_disambiguate_first)
