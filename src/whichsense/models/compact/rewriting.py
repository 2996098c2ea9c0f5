"""A rewrite for each answer: edits from the decoder, those that hold what they must, chosen so that all differ.

The decoder is asked many times, and what agrees best with everything that it wrote is the best: the rewrite whose edits
have the highest expected EDIT-F1 (minimum Bayes risk). The single likeliest rewrite says too little, or the same for
every answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from whichsense.metrics.ambignq import edit_f1
from whichsense.metrics.bleu import sentence_bleu
from whichsense.metrics.ptb import question_words as compared
from whichsense.models.compact import search
from whichsense.models.compact.decoding import Decoder, Memory, View
from whichsense.models.compact.edits import Surfaces, applied, parsed
from whichsense.models.compact.inputs import question_words, rewrite_prefix
from whichsense.models.compact.runtime import Floats
from whichsense.models.compact.support import Support, Target
from whichsense.models.compact.system import Scene
from whichsense.models.compact.tokens import Pieces
from whichsense.text import words

SEEN = 3  # passages that a rewrite may draw on
_DRAWN, _MOST_DRAWN = 16, 36  # rewrites that are drawn for each answer, and, unless there are very many answers, in all
_KEPT = 8  # of each answer, best first
# Agreement in edits and in word order (BLEU-4), and what a rewrite's agreement is worth in real EDIT-F1: measured on 40
# val questions, so that it can be set beside the worth of what the evidence says.
_ORDER, _WORTH = 0.8, 0.25
_LIKELY = 0.015  # what a token's mean log probability counts
APART = 0.05  # what it counts that a rewrite says something which the evidence of no other answer says
_LEADING = frozenset("a an the of in on at to for from by with as and or during between which whose".split())
_MOST_TOGETHER = 4096  # ways of choosing rewrites together that are tried one by one


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewritten question and how good it is (higher is better): about the EDIT-F1 that is to be expected of it."""

    question: str
    score: float


def rewrites(scene: Scene, targets: Sequence[Target], told: Sequence[Support], beams: int = 4) -> list[list[Rewrite]]:
    """Several rewrites for each answer, best first; none where nothing fits. `told`: what each may say."""
    question = scene.evidence.question
    asked = question_words(question)
    seen = [_seen(scene, target) for target in targets]
    together_seen = sorted({place for places in seen for place in places})
    prompts: list[search.Prompt] = []
    for target, places, supported in zip(targets, seen, told, strict=True):
        others = [other.answer for other in targets if other is not target]
        prefix = rewrite_prefix(scene.compact.model.tokenizer, question, target.answer, others)
        if prefix is None:
            return [[] for _ in targets]
        view = _view(scene, together_seen, places, target)
        prompts.append(search.Prompt(prefix, view, len(asked), supported.pieces))
    memory = scene.memory.part(scene.places(together_seen))
    best, drawn = _written(scene.compact.decoder, memory, prompts, beams)
    every: list[list[Rewrite]] = []
    for places, supported, some, more in zip(seen, told, best, drawn, strict=True):
        surfaces = Surfaces(_texts(scene, places), scene.compact.model.words.vocabulary)
        made, texts = dict[str, str](), list[str]()
        likely: dict[str, float] = {}
        for one in [*more, *some]:
            edits = [(edit, surfaces.written(edit.inserted)) for edit in parsed(one.tokens)]
            texts.append(applied(asked, edits))
            if is_fluent(texts[-1], question) and all(supported.holds(inserted) for _, inserted in edits):
                made.setdefault(key(texts[-1]), texts[-1])
                likely[made[key(texts[-1])]] = max(one.each, likely.get(made[key(texts[-1])], -np.inf))
        made.pop(key(question), None)
        rivals = [other for other in told if other is not supported]
        ranked = [
            replace(one, score=one.score + _LIKELY * likely[one.question] + apart(one.question, supported, rivals))
            for one in agreeing(question, list(made.values()), texts[: len(more)] or texts)
        ]
        every.append(sorted(ranked, key=lambda one: -one.score)[:_KEPT])
    return every


def apart(rewrite: str, own: Support, others: Sequence[Support]) -> float:
    """What a rewrite gains by saying what the evidence of no other answer says."""
    return APART if own.tells_apart(rewrite, others) else 0.0


def _written(
    decoder: Decoder, memory: Memory, prompts: Sequence[search.Prompt], beams: int
) -> tuple[list[list[search.Written]], list[list[search.Written]]]:
    """The likeliest edits of each prompt, and such as are drawn by chance."""
    begun = search.begun_with(decoder, memory, prompts)
    count = max(beams, min(_DRAWN, _MOST_DRAWN // len(prompts)))
    best = search.edits(decoder, memory, prompts, beams, begun=begun)
    return best, search.drawn(decoder, memory, prompts, count, begun=begun)


def agreeing(question: str, rewrites: Sequence[str], drawn: Sequence[str]) -> list[Rewrite]:
    """Rewrites by how well they agree with all that were drawn, best first.

    >>> drawn = ["Who sang it in 1969?", "Who sang it in 1969?", "Who first sang it?"]
    >>> [one.question for one in agreeing("Who sang it?", ["Who first sang it?", "Who sang it in 1969?"], drawn)]
    ['Who sang it in 1969?', 'Who first sang it?']
    """
    before, others = compared(question), [compared(text) for text in drawn]
    found = []
    for text in rewrites:
        own = compared(text)
        edits = [edit_f1(before, other, own) for other in others]
        order = [sentence_bleu((other,), own)[3] for other in others]
        found.append(Rewrite(text, _WORTH * float(np.mean(edits) + _ORDER * np.mean(order))))
    return sorted(found, key=lambda one: -one.score)


def is_fluent(text: str, question: str) -> bool:
    """Whether no word stands twice in a row, no three words come again, quotes come in pairs, and it does not end in
    the middle of a phrase, unless the question does.

    >>> good, bad = ("Who sang it?", "In which film?"), ("Who sang sang it?", 'Who sang "it?', "Who sang it in the?")
    >>> [is_fluent(text, "Who sang it?") for text in (*good, *bad)]
    [True, True, False, False, False]
    """
    told, asked = words(text), words(question)
    threes = list(zip(told, told[1:], told[2:], strict=False))
    doubled = any(one == other for one, other in itertools.pairwise(told))
    open_end = told[-1:] != asked[-1:] and told[-1:] and told[-1] in _LEADING
    return not doubled and len(set(threes)) == len(threes) and text.count('"') % 2 == 0 and not open_end


def together(options: Sequence[Sequence[Rewrite]]) -> list[Rewrite | None]:
    """One rewrite for each answer, no two alike, with the best scores in sum; None where none is left."""
    ways = [[*some, None] for some in options]
    if np.prod([float(len(way)) for way in ways]) > _MOST_TOGETHER:
        return _one_by_one(options)
    best: tuple[float, list[Rewrite | None]] = (-np.inf, [None] * len(options))
    for way in itertools.product(*ways):
        given = [one for one in way if one is not None]
        if len({key(one.question) for one in given}) == len(given):
            value = sum(one.score for one in given) - 100.0 * (len(way) - len(given))
            best = max(best, (value, list(way)), key=lambda pair: pair[0])
    return best[1]


def _one_by_one(options: Sequence[Sequence[Rewrite]]) -> list[Rewrite | None]:
    """The same, greedily: for very many answers."""
    taken: set[str] = set()
    found: list[Rewrite | None] = []
    for some in options:
        free = [one for one in some if key(one.question) not in taken]
        chosen = max(free, key=lambda one: one.score) if free else None
        taken |= {key(chosen.question)} if chosen else set()
        found.append(chosen)
    return found


def key(question: str) -> str:
    """Two rewrites with the same words are the same."""
    return " ".join(words(question))


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
