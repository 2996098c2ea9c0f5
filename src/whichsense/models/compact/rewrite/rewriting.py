"""Rewrites for each answer: samples of the writer and phrases of the evidence, filtered by support and scored."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from whichsense.models.compact.encoder.inputs import LONGEST_QUESTION, question_words
from whichsense.models.compact.encoder.tokens import Pieces
from whichsense.models.compact.rewrite.phrases import phrase_rewrites
from whichsense.models.compact.rewrite.support import Support, Target
from whichsense.models.compact.rewrite.windows import order_passages, windows
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer.choosing import Option, Rewrite, key, of_rewrites
from whichsense.models.compact.writer import search
from whichsense.models.compact.writer.edits import Edit, Surfaces, applied, changes
from whichsense.models.compact.writer.prompts import Prompt, rewriting
from whichsense.models.compact.writer.runtime import Writer
from whichsense.text.function_words import PHRASE_OPENERS
from whichsense.text.words import words

_SPELLING_PASSAGES = 3  # passages that words take their spelling from
# Samples for each answer, and for all answers together; _FEWEST even for very many answers.
_SAMPLES = 40
_MOST_SAMPLES = 120
_FEWEST_SAMPLES = 4
_LONGER = 10  # word pieces: 97% of annotators' rewrites are not longer than the question by more
_MOST_REWRITES = 8  # for each answer, best first
_APART_BONUS = 0.02  # if a rewrite has a word that the evidence of no other answer has
_TextEdit = tuple[Edit, str]
"""An edit and the text that it inserts."""


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """For one answer: the rewrites that may be given, and all samples of the writer."""

    options: tuple[Option, ...]
    drawn: tuple[str, ...]


def rewrites(
    scene: Scene, targets: Sequence[Target], told: Sequence[Support]
) -> list[list[Rewrite]]:
    """Several rewrites for each answer, best first; none if nothing fits. `told` is the support of each answer."""
    ranked = []
    options = written(scene, targets, told)
    for own, some in zip(told, options, strict=True):
        others = [other for other in told if other is not own]
        scored = _score(scene, own, others, some)
        scored.sort(key=lambda rewrite: -rewrite.score)
        ranked.append(scored[:_MOST_REWRITES])
    return ranked


def _score(
    scene: Scene, own: Support, others: Sequence[Support], some: RewriteOptions
) -> list[Rewrite]:
    question = scene.evidence.question
    features = of_rewrites(question, some.options, some.drawn)
    scores = scene.compact.scorer.rewrite.values(features)
    scored = []
    for option, score in zip(some.options, scores, strict=True):
        apart = _APART_BONUS * own.tells_apart(option.question, others)
        scored.append(Rewrite(option.question, score + apart))
    return scored


def written(
    scene: Scene, targets: Sequence[Target], told: Sequence[Support]
) -> list[RewriteOptions]:
    """Everything that may be given for each answer."""
    phrases = phrase_rewrites(scene, targets, told)
    count = max(_FEWEST_SAMPLES, min(_SAMPLES, _MOST_SAMPLES // len(targets)))
    options = []
    samples = draw_rewrites(scene.compact.writer, scene, targets, told, count)
    for some, drawn in zip(phrases, samples, strict=True):
        options.append(_join_options(some, drawn))
    return options


def draw_rewrites(
    writer: Writer,
    scene: Scene,
    targets: Sequence[Target],
    told: Sequence[Support],
    count: int,
) -> list[RewriteOptions]:
    """`count` samples of a writer for each answer, and those of them that the evidence supports."""
    question: list[int] = []
    for word in question_words(scene.evidence.question):
        question += scene.compact.model.tokenizer.ids(word)
    if not question or len(question) > LONGEST_QUESTION:
        return [RewriteOptions((), ()) for _ in targets]
    prompts = []
    pieces = []  # what may be written for each answer
    for target, supported in zip(targets, told, strict=True):
        prompts.append(_prompt(scene, target, targets, question))
        pieces.append(np.append(supported.pieces, question))
    longest = len(question) + _LONGER
    samples = search.drawn(writer, prompts, pieces, count, longest=longest)
    options = []
    for each in zip(targets, told, samples, strict=True):
        options.append(_collect_options(scene, *each))
    return options


def _join_options(phrases: Sequence[Option], drawn: RewriteOptions) -> RewriteOptions:
    """Phrases of the evidence beside the writer's rewrites. One that both give counts as the writer's."""
    options = {key(option.question): option for option in phrases}
    for option in drawn.options:
        phrase = options.get(key(option.question), option)
        both = replace(phrase, likely=option.likely, phrase=False)
        options[key(option.question)] = both
    return RewriteOptions(tuple(options.values()), drawn.drawn)


def _prompt(
    scene: Scene, target: Target, targets: Sequence[Target], question: Sequence[int]
) -> Prompt:
    others = []
    for other in targets:
        if other is not target:
            others.append(scene.tokens(other.answer))
    answer = scene.tokens(target.answer)
    return rewriting(question, answer, others, windows(scene, target))


def _collect_options(
    scene: Scene, target: Target, supported: Support, samples: Sequence[search.Sample]
) -> RewriteOptions:
    """The samples for an answer as text, and the options among them."""
    question = scene.evidence.question
    model = scene.compact.model
    vocabulary = model.words.vocabulary
    asked = [model.tokenizer.ids(word) for word in question_words(question)]
    surfaces = Surfaces(_spelling_texts(scene, target), vocabulary)
    options: dict[str, Option] = {}
    texts: list[str] = []
    for sample in samples:
        edits: list[_TextEdit] = []
        for edit in changes(asked, sample.tokens, vocabulary):
            edits.append((edit, surfaces.written(edit.inserted)))
        texts.append(applied(question_words(question), edits))
        for text in _supported_rewrites(question, edits, supported):
            known = options.get(key(text))
            if known is None or known.likely < sample.each:
                # Of texts with the same words the first one stays.
                option = known or Option(text)
                options[key(text)] = replace(option, likely=sample.each)
    options.pop(key(question), None)
    return RewriteOptions(tuple(options.values()), tuple(texts))


def _supported_rewrites(
    question: str, edits: Sequence[_TextEdit], supported: Support
) -> Iterator[str]:
    """The question with all edits, and with each alone, which often suffices: those that are fluent and supported."""
    choices = [edits]
    if len(edits) > 1:
        for edit in edits:
            choices.append([edit])
    for some in choices:
        text = applied(question_words(question), some)
        if not _is_fluent(text, question):
            continue
        is_supported = all(supported.holds(inserted) for _, inserted in some)
        if is_supported:
            yield text


def _is_fluent(text: str, question: str) -> bool:
    """Whether no word is doubled, no trigram comes again, no quotes or brackets are new, and the text does not end
    within a phrase. What the question itself has is allowed.

    >>> good, bad = ("Who sang it?", "In which film?"), ("Who sang sang it?", 'Who sang "it?', "Who sang it in the?")
    >>> [_is_fluent(text, "Who sang it?") for text in (*good, *bad)]
    [True, True, False, False, False]
    """
    after = words(text)
    before = words(question)
    for first, second in itertools.pairwise(after):
        if first == second:
            return False
    trigrams = list(zip(after, after[1:], after[2:], strict=False))
    if len(set(trigrams)) < len(trigrams):
        return False
    for sign in '"(':
        if text.count(sign) > question.count(sign):
            return False
    new_end = after[-1:] != before[-1:]
    return not (new_end and after and after[-1] in PHRASE_OPENERS)


def _spelling_texts(scene: Scene, target: Target) -> list[tuple[str, Pieces]]:
    """Titles and texts with their word pieces: of the answer's own passages first, then of the best of the others."""
    texts = []
    for place in order_passages(scene, target)[:_SPELLING_PASSAGES]:
        pair = scene.evidence.pairs[place]
        passage = scene.evidence.passages[place]
        for (first, last), text in (
            (pair.title, passage.title),
            (pair.text, passage.text),
        ):
            part = slice(first, last)
            pieces = Pieces(pair.ids[part], pair.starts[part], pair.ends[part])
            texts.append((text, pieces))
    return texts
