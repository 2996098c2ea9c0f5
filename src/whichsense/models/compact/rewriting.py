"""Rewrites for each answer: edits from the decoder, and phrases of the evidence, those that hold what they must."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whichsense.models.compact import search
from whichsense.models.compact.choosing import Option, Rewrite, key, of_rewrites
from whichsense.models.compact.decoding import Decoder, Memory, View
from whichsense.models.compact.edits import Surfaces, applied, parsed
from whichsense.models.compact.inputs import question_words, rewrite_prefix
from whichsense.models.compact.phrases import phrase_rewrites
from whichsense.models.compact.runtime import Floats
from whichsense.models.compact.support import Support, Target
from whichsense.models.compact.system import Scene
from whichsense.models.compact.tokens import Pieces
from whichsense.text import words

SEEN = 3  # passages that a rewrite may draw on
_DRAWN, _MOST_DRAWN = 16, 36  # rewrites that are drawn for each answer, and, unless there are very many answers, in all
_KEPT = 8  # of each answer, best first
_APART = 0.03  # what it counts that a rewrite says something which the evidence of no other answer says
_LEADING = frozenset("a an the of in on at to for from by with as and or during between which whose".split())


@dataclass(frozen=True, slots=True)
class Written:
    """Rewrites for one answer that may be given, and all that the decoder wrote by chance."""

    options: tuple[Option, ...]
    drawn: tuple[str, ...]


def rewrites(scene: Scene, targets: Sequence[Target], told: Sequence[Support], beams: int = 4) -> list[list[Rewrite]]:
    """Several rewrites for each answer, best first; none where nothing fits. `told`: what each may say."""
    net, found = scene.compact.scorer.rewrite, []
    for own, some in zip(told, written(scene, targets, told, beams), strict=True):
        rivals = [other for other in told if other is not own]
        scores = net.values(of_rewrites(scene.evidence.question, some.options, some.drawn))
        ranked = []
        for option, score in zip(some.options, scores, strict=True):
            worth = np.inf if option.phrase else score
            apart = _APART * own.tells_apart(option.question, rivals)
            ranked.append(Rewrite(option.question, score + option.bonus + apart, worth))
        found.append(sorted(ranked, key=lambda one: -one.score)[:_KEPT])
    return found


def written(scene: Scene, targets: Sequence[Target], told: Sequence[Support], beams: int = 4) -> list[Written]:
    """Everything that may be given for each answer."""
    question, phrases = scene.evidence.question, phrase_rewrites(scene, targets, told)
    asked = question_words(question)
    seen = [_seen(scene, target) for target in targets]
    together_seen = sorted({place for places in seen for place in places})
    prompts: list[search.Prompt] = []
    for target, places, supported in zip(targets, seen, told, strict=True):
        others = [other.answer for other in targets if other is not target]
        prefix = rewrite_prefix(scene.compact.model.tokenizer, question, target.answer, others)
        if prefix is None:
            return [Written(tuple(some), ()) for some in phrases]
        view = _view(scene, together_seen, places, target)
        prompts.append(search.Prompt(prefix, view, len(asked), supported.pieces))
    memory = scene.memory.part(scene.places(together_seen))
    best, drawn = _decoded(scene.compact.decoder, memory, prompts, beams)
    every: list[Written] = []
    for places, supported, some, more, own in zip(seen, told, best, drawn, phrases, strict=True):
        surfaces = Surfaces(_texts(scene, places), scene.compact.model.words.vocabulary)
        made, texts = {key(one.question): one for one in own}, list[str]()
        for one in [*more, *some]:
            edits = [(edit, surfaces.written(edit.inserted)) for edit in parsed(one.tokens)]
            texts.append(applied(asked, edits))
            if is_fluent(texts[-1], question) and all(supported.holds(inserted) for _, inserted in edits):
                before = made.get(key(texts[-1]))
                if before is None or before.phrase or before.likely < one.each:
                    made[key(texts[-1])] = Option(before.question if before else texts[-1], one.each)
        made.pop(key(question), None)
        every.append(Written(tuple(made.values()), tuple(texts[: len(more)] or texts)))
    return every


def _decoded(
    decoder: Decoder, memory: Memory, prompts: Sequence[search.Prompt], beams: int
) -> tuple[list[list[search.Written]], list[list[search.Written]]]:
    """The likeliest edits of each prompt, and such as are drawn by chance."""
    begun = search.begun_with(decoder, memory, prompts)
    count = max(beams, min(_DRAWN, _MOST_DRAWN // len(prompts)))
    best = search.edits(decoder, memory, prompts, beams, begun=begun)
    return best, search.drawn(decoder, memory, prompts, count, begun=begun)


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
    return not doubled and len(set(threes)) == len(threes) and not quoted and not open_end


def _seen(scene: Scene, target: Target) -> list[int]:
    """The answer's own passages first, then the best of the others."""
    rest = [place for place in range(len(scene.evidence.hits)) if place not in target.marked]
    return [*target.marked, *rest][:SEEN]


def _view(scene: Scene, together_seen: Sequence[int], seen: Sequence[int], target: Target) -> View:
    """What a rewrite sees of the passages that all rewrites see together."""
    shown, marks = list[Floats](), list[Floats]()
    for place in together_seen:
        count = len(scene.evidence.pairs[place])
        shown.append(np.full(count, float(place in seen), dtype=np.float32))
        marks.append(np.zeros(count, dtype=np.float32))
        for first, last in target.marked.get(place, ()) if place in seen else ():
            marks[-1][first:last] = 1
    return View(np.concatenate(shown), np.concatenate(marks))


def _texts(scene: Scene, seen: Sequence[int]) -> list[tuple[str, Pieces]]:
    """Titles and texts of passages with their word pieces."""
    found = []
    for place in seen:
        pair, passage = scene.evidence.pairs[place], scene.evidence.passages[place]
        for (first, last), text in ((pair.title, passage.title), (pair.text, passage.text)):
            found.append((text, Pieces(pair.ids[first:last], pair.starts[first:last], pair.ends[first:last])))
    return found
