"""Rewrites for each answer: samples of the writer and phrases of the evidence, filtered by support and scored."""

from __future__ import annotations

import itertools
import re
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
from whichsense.text.function_words import PHRASE_OPENERS
from whichsense.text.words import words
from whichsense.types import Policy

_SPELLING_PASSAGES = 3  # passages that words take their spelling from
# Samples for each answer, and for all answers together (fewer if somebody waits); _FEWEST even for very many answers.
_SAMPLES = 40
_MOST_SAMPLES = 120
_MOST_FOR_READERS = 48
_FEWEST_SAMPLES = 4
_LONGER = 10  # word pieces: 97% of annotators' rewrites are not longer than the question by more
_MOST_REWRITES = 8  # for each answer, best first
_APART_BONUS = 0.02  # if a rewrite has a word that the evidence of no other answer has
_STUMBLING = (
    re.compile(r"\b(\w+ \w+) \1\b"),
    re.compile(r"\bfrom (\w+) to \1\b"),
    re.compile(r"\b(?:as|at|by|for|from|in|of|on|to|with) \d\d?$"),
)
_TextEdit = tuple[Edit, str]
"""An edit and the text that it inserts."""


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """For one answer: the rewrites that may be given, and all samples of the writer."""

    options: tuple[Option, ...]
    drawn: tuple[str, ...]


def rewrites(
    scene: Scene, targets: Sequence[Target], told: Sequence[Support], *, policy: Policy
) -> list[list[Rewrite]]:
    """Several rewrites for each answer, best first; none if nothing fits. `told` is the support of each answer. Under a
    careful policy phrases of the evidence get a bonus: annotators, whom the scorer learnt from, seldom write them."""
    ranked = []
    options = written(scene, targets, told, policy=policy)
    for own, some in zip(told, options, strict=True):
        others = [other for other in told if other is not own]
        scored = _score(scene, own, others, some, policy=policy)
        scored.sort(key=lambda rewrite: -rewrite.score)
        ranked.append(scored[:_MOST_REWRITES])
    return ranked


def _score(
    scene: Scene,
    own: Support,
    others: Sequence[Support],
    some: RewriteOptions,
    *,
    policy: Policy,
) -> list[Rewrite]:
    question = scene.evidence.question
    features = of_rewrites(question, some.options, some.drawn)
    scores = scene.compact.scorer.rewrite.values(features)
    scored = []
    for option, score in zip(some.options, scores, strict=True):
        if policy.careful and _stumbles(option.question, question):
            continue
        # A phrase of the evidence has a bonus even if the writer wrote it too.
        is_phrase = option.phrase or option.bonus
        worth = np.inf if is_phrase else score
        apart = _APART_BONUS * own.tells_apart(option.question, others)
        total = score + policy.careful * option.bonus + apart
        scored.append(Rewrite(option.question, total, worth))
    return scored


def written(
    scene: Scene, targets: Sequence[Target], told: Sequence[Support], *, policy: Policy
) -> list[RewriteOptions]:
    """Everything that may be given for each answer."""
    phrases = phrase_rewrites(scene, targets, told, policy=policy)
    question: list[int] = []
    for word in question_words(scene.evidence.question):
        question += scene.compact.model.tokenizer.ids(word)
    if not question or len(question) > LONGEST_QUESTION:
        return [RewriteOptions(tuple(some), ()) for some in phrases]
    prompts = []
    pieces = []  # what may be written for each answer
    for target, supported in zip(targets, told, strict=True):
        prompts.append(_prompt(scene, target, targets, question))
        pieces.append(np.append(supported.pieces, question))
    most = _MOST_FOR_READERS if policy.careful else _MOST_SAMPLES
    count = max(_FEWEST_SAMPLES, min(_SAMPLES, most // len(prompts)))
    longest = len(question) + _LONGER
    samples = search.drawn(
        scene.compact.writer, prompts, pieces, count, longest=longest
    )
    options = []
    for each in zip(targets, told, phrases, samples, strict=True):
        options.append(_collect_options(scene, *each))
    return options


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
    scene: Scene,
    target: Target,
    supported: Support,
    phrases: Sequence[Option],
    samples: Sequence[search.Sample],
) -> RewriteOptions:
    """The samples for an answer as text, and the options among them and among the phrases."""
    question = scene.evidence.question
    model = scene.compact.model
    vocabulary = model.words.vocabulary
    asked = [model.tokenizer.ids(word) for word in question_words(question)]
    surfaces = Surfaces(_spelling_texts(scene, target), vocabulary)
    options = {key(option.question): option for option in phrases}
    texts: list[str] = []
    for sample in samples:
        edits: list[_TextEdit] = []
        for edit in changes(asked, sample.tokens, vocabulary):
            edits.append((edit, surfaces.written(edit.inserted)))
        texts.append(applied(question_words(question), edits))
        for text in _supported_rewrites(question, edits, supported):
            known = options.get(key(text))
            if known is None or known.phrase or known.likely < sample.each:
                option = known or Option(text)
                options[key(text)] = replace(option, likely=sample.each, phrase=False)
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


def _stumbles(text: str, question: str) -> bool:
    """Whether a bigram is doubled, a span of years has no length, or a bare number ends the text. What the question
    itself has is allowed.

    >>> [_stumbles(f"Who won {more}?", "Who won?") for more in ("in Berlin in Berlin", "from 1945 to 1945", "as 8")]
    [True, True, True]
    >>> [_stumbles(f"Who won {more}?", "Who won?") for more in ("in Berlin in 1945", "from 1939 to 1945", "on May 8")]
    [False, False, False]
    """
    after = key(text)
    before = key(question)
    for pattern in _STUMBLING:
        for match in pattern.finditer(after):
            if match[0] not in before:
                return True
    return False


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
