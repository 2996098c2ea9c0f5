"""A rewrite for each answer: edits from the decoder, those that hold what they must, chosen so that all differ."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from whichsense.answers import same
from whichsense.metrics.porter import stem
from whichsense.models.compact import search
from whichsense.models.compact.decoding import Ints, View
from whichsense.models.compact.edits import NEUTRAL_WORDS, SMALL_WORDS, Surfaces, applied, parsed
from whichsense.models.compact.inputs import question_words, rewrite_prefix
from whichsense.models.compact.runtime import Floats
from whichsense.models.compact.system import Scene
from whichsense.models.compact.tokens import Pieces
from whichsense.text import words

SEEN = 3  # passages that a rewrite may draw on
# The decoder's mean EDIT-F1 on 80 val questions, and a little less for what it writes with doubt.
_WORTH, _WORTH_EACH = 0.08, 0.005
_MOST_TOGETHER = 4096  # ways of choosing rewrites together that are tried one by one


@dataclass(frozen=True, slots=True)
class Target:
    """An answer to write a rewrite for, and where it stands: passage → (first, last + 1) of its pair's tokens, best
    passages first."""

    answer: str
    marked: dict[int, list[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewritten question and how good it is (higher is better): about the EDIT-F1 that is to be expected of it."""

    question: str
    score: float


def rewrites(scene: Scene, targets: Sequence[Target], beams: int = 4) -> list[list[Rewrite]]:
    """Several rewrites for each answer, best first; none where nothing fits."""
    question = scene.evidence.question
    asked = question_words(question)
    seen = [_seen(scene, target) for target in targets]
    together_seen = sorted({place for places in seen for place in places})
    writable = _writable(scene)
    prompts: list[search.Prompt] = []
    for target, places in zip(targets, seen, strict=True):
        others = [other.answer for other in targets if other is not target]
        prefix = rewrite_prefix(scene.compact.model.tokenizer, question, target.answer, others)
        if prefix is None:
            return [[] for _ in targets]
        view = _view(scene, together_seen, places, target)
        prompts.append(search.Prompt(prefix, view, len(asked), writable))
    memory, known = scene.memory.part(scene.places(together_seen)), known_stems(scene)
    found = search.edits(scene.compact.decoder, memory, prompts, beams)
    every: list[list[Rewrite]] = []
    for target, places, written in zip(targets, seen, found, strict=True):
        surfaces = Surfaces(_texts(scene, places), scene.compact.model.words.vocabulary)
        made: dict[str, Rewrite] = {}
        for one in written:
            edits = [(edit, surfaces.written(edit.inserted)) for edit in parsed(one.tokens)]
            text = applied(asked, edits)
            if key(text) != key(question) and all(fits(inserted, target.answer, known) for _, inserted in edits):
                made.setdefault(key(text), Rewrite(text, _WORTH + _WORTH_EACH * one.each))
        every.append(list(made.values()))
    return every


def fits(inserted: str, answer: str, known: frozenset[str]) -> bool:
    """What is inserted gives the answer not away, and says nothing that the evidence does not say.

    `known` holds the stems of what it says: "played" supports "plays".
    """
    new, told = words(inserted), words(answer)
    holds = any(new[at : at + len(told)] == told for at in range(len(new) - len(told) + 1)) if told else False
    return not holds and not (inserted and same(inserted, answer)) and all(_stem(word) in known for word in new)


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


def _writable(scene: Scene) -> Ints:
    """Word pieces that the passages hold, and those of words that say nothing."""
    tokenizer = scene.compact.model.tokenizer
    pieces = {token for pair in scene.evidence.pairs for token in pair.ids}
    pieces |= {token for word in SMALL_WORDS | NEUTRAL_WORDS for token in tokenizer.ids(word)}
    return np.array(sorted(pieces), dtype=np.int64)


def known_stems(scene: Scene) -> frozenset[str]:
    """Of all words that the question and the evidence hold, and of those that say nothing."""
    texts = [scene.evidence.question]
    for passage in scene.evidence.passages:
        texts += [passage.title, passage.text]
    told = {word for text in texts for word in words(text)}
    return frozenset(map(_stem, SMALL_WORDS | NEUTRAL_WORDS | told))


@lru_cache(maxsize=2**15)
def _stem(word: str) -> str:
    return stem(word)


def _texts(scene: Scene, seen: Sequence[int]) -> list[tuple[str, Pieces]]:
    """Titles and texts of passages with their word pieces."""
    found = []
    for place in seen:
        pair, passage = scene.evidence.pairs[place], scene.evidence.passages[place]
        for (first, last), text in ((pair.title, passage.title), (pair.text, passage.text)):
            found.append((text, Pieces(pair.ids[first:last], pair.starts[first:last], pair.ends[first:last])))
    return found
