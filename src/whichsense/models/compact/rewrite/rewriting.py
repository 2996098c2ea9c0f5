"""Rewrites for each answer: what the writer draws, and phrases of the evidence, those that hold what they must."""

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
from whichsense.models.compact.rewrite.windows import windows
from whichsense.models.compact.scene import Scene
from whichsense.models.compact.scorer.choosing import Option, Rewrite, key, of_rewrites
from whichsense.models.compact.writer import search
from whichsense.models.compact.writer.edits import Edit, Surfaces, applied, changes
from whichsense.models.compact.writer.prompts import Prompt, rewriting
from whichsense.text.words import words

_SEEN = 3  # passages that tell how words are spelt
# Rewrites that are drawn for each answer; in all, and in all where somebody waits; unless there are very many answers.
_DRAWN, _MOST_DRAWN, _MOST_WAITED_FOR = 40, 120, 48
_FEWEST_DRAWN = 4
_LONGER = 10  # word pieces by which a rewrite may be longer than the question: 97% of annotators' are not longer
_KEPT = 8  # of each answer, best first
_APART = 0.02  # what it counts that a rewrite says something which the evidence of no other answer says
_LEADING = frozenset(
    "a an the of in on at to for from by with as and or during between which whose".split()
)
_STUMBLING = (
    re.compile(r"\b(\w+ \w+) \1\b"),
    re.compile(r"\bfrom (\w+) to \1\b"),
    re.compile(r"\b(?:as|at|by|for|from|in|of|on|to|with) \d\d?$"),
)


@dataclass(frozen=True, slots=True)
class Written:
    """Rewrites for one answer that may be given, and all that the writer wrote."""

    options: tuple[Option, ...]
    drawn: tuple[str, ...]


def rewrites(
    scene: Scene,
    targets: Sequence[Target],
    told: Sequence[Support],
    *,
    cautious: bool = False,
) -> list[list[Rewrite]]:
    """Several rewrites for each answer, best first; none where nothing fits. `told`: what each may say. If `cautious`,
    phrases of the evidence count more than annotators, whom the scorer learnt from, would have them."""
    net, found = scene.compact.scorer.rewrite, []
    for own, some in zip(
        told, written(scene, targets, told, cautious=cautious), strict=True
    ):
        rivals = [other for other in told if other is not own]
        scores = net.values(
            of_rewrites(scene.evidence.question, some.options, some.drawn)
        )
        ranked = []
        for option, score in zip(some.options, scores, strict=True):
            if cautious and stumbles(option.question, scene.evidence.question):
                continue
            worth = (
                np.inf if option.phrase or option.bonus else score
            )  # a phrase, though it was drawn, too
            apart = _APART * own.tells_apart(option.question, rivals)
            ranked.append(
                Rewrite(option.question, score + cautious * option.bonus + apart, worth)
            )
        found.append(sorted(ranked, key=lambda one: -one.score)[:_KEPT])
    return found


def written(
    scene: Scene,
    targets: Sequence[Target],
    told: Sequence[Support],
    *,
    cautious: bool = False,
) -> list[Written]:
    """Everything that may be given for each answer."""
    question, phrases = (
        scene.evidence.question,
        phrase_rewrites(scene, targets, told, cautious=cautious),
    )
    flat = [
        piece
        for word in question_words(question)
        for piece in scene.compact.model.tokenizer.ids(word)
    ]
    if not flat or len(flat) > LONGEST_QUESTION:
        return [Written(tuple(some), ()) for some in phrases]
    prompts = [_prompt(scene, target, targets, flat) for target in targets]
    pieces = [np.append(supported.pieces, flat) for supported in told]
    count = max(
        _FEWEST_DRAWN,
        min(_DRAWN, (_MOST_WAITED_FOR if cautious else _MOST_DRAWN) // len(prompts)),
    )
    drawn = search.drawn(
        scene.compact.writer, prompts, pieces, count, longest=len(flat) + _LONGER
    )
    each = zip(targets, told, phrases, drawn, strict=True)
    return [
        _with_phrases(scene, target, supported, own, some)
        for target, supported, own, some in each
    ]


def _with_phrases(
    scene: Scene,
    target: Target,
    supported: Support,
    phrases: Sequence[Option],
    drawn: Sequence[search.Written],
) -> Written:
    """What was drawn for an answer, as text, and all of it that may be given."""
    question, vocabulary = scene.evidence.question, scene.compact.model.words.vocabulary
    asked = [
        scene.compact.model.tokenizer.ids(word) for word in question_words(question)
    ]
    surfaces = Surfaces(_texts(scene, target), vocabulary)
    made, texts = {key(one.question): one for one in phrases}, list[str]()
    for one in drawn:
        edits = [
            (edit, surfaces.written(edit.inserted))
            for edit in changes(asked, one.tokens, vocabulary)
        ]
        texts.append(applied(question_words(question), edits))
        for text in _supported(question, edits, supported):
            before = made.get(key(text))
            if before is None or before.phrase or before.likely < one.each:
                made[key(text)] = replace(
                    before or Option(text), likely=one.each, phrase=False
                )
    made.pop(key(question), None)
    return Written(tuple(made.values()), tuple(texts))


def _supported(
    question: str, edits: Sequence[tuple[Edit, str]], supported: Support
) -> Iterator[str]:
    """The question with all edits, and with each alone: often one of them says enough. Those that read well, and say
    what is supported."""
    for some in [edits, *([edit] for edit in edits if len(edits) > 1)]:
        text = applied(question_words(question), some)
        if is_fluent(text, question) and all(
            supported.holds(inserted) for _, inserted in some
        ):
            yield text


def _prompt(
    scene: Scene, target: Target, targets: Sequence[Target], question: Sequence[int]
) -> Prompt:
    others = [scene.tokens(other.answer) for other in targets if other is not target]
    return rewriting(
        question, scene.tokens(target.answer), others, windows(scene, target)
    )


def is_fluent(text: str, question: str) -> bool:
    """Whether no word stands twice in a row, no three words come again, there are no new quotes and brackets, and it
    does not end in the middle of a phrase, unless the question does.

    >>> good, bad = ("Who sang it?", "In which film?"), ("Who sang sang it?", 'Who sang "it?', "Who sang it in the?")
    >>> [is_fluent(text, "Who sang it?") for text in (*good, *bad)]
    [True, True, False, False, False]
    """
    told, asked = words(text), words(question)
    threes = list(zip(told, told[1:], told[2:], strict=False))
    doubled = any(one == other for one, other in itertools.pairwise(told))
    open_end = told[-1:] != asked[-1:] and told[-1:] and told[-1] in _LEADING
    quoted = any(text.count(sign) > question.count(sign) for sign in '"(')
    return (
        not doubled and len(set(threes)) == len(threes) and not quoted and not open_end
    )


def stumbles(text: str, question: str) -> bool:
    """Whether two words come twice in a row, a span of years has no length, or a bare number ends it, unless the
    question does.

    >>> [stumbles(f"Who won {more}?", "Who won?") for more in ("in Berlin in Berlin", "from 1945 to 1945", "as 8")]
    [True, True, True]
    >>> [stumbles(f"Who won {more}?", "Who won?") for more in ("in Berlin in 1945", "from 1939 to 1945", "on May 8")]
    [False, False, False]
    """
    told = " ".join(words(text))
    asked = " ".join(words(question))
    return any(
        found[0] not in asked
        for pattern in _STUMBLING
        for found in pattern.finditer(told)
    )


def _texts(scene: Scene, target: Target) -> list[tuple[str, Pieces]]:
    """Titles and texts of passages with their word pieces: the answer's own first, then the best of the others."""
    rest = [
        place for place in range(len(scene.evidence.hits)) if place not in target.marked
    ]
    found = []
    for place in [*target.marked, *rest][:_SEEN]:
        pair, passage = scene.evidence.pairs[place], scene.evidence.passages[place]
        for (first, last), text in (
            (pair.title, passage.title),
            (pair.text, passage.text),
        ):
            found.append(
                (
                    text,
                    Pieces(
                        pair.ids[first:last],
                        pair.starts[first:last],
                        pair.ends[first:last],
                    ),
                )
            )
    return found
