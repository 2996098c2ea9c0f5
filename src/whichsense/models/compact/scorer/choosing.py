"""Which of several rewrites to give: what speaks for each, and one for each answer so that no two are alike.

What agrees best with everything that the writer drew is the best (minimum Bayes risk): the single likeliest rewrite
says too little, or the same for every answer. A small learned scorer weighs this with what else is known of a rewrite.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from whichsense.models.compact.writer.edits import SMALL_WORDS
from whichsense.text.bleu import sentence_bleu
from whichsense.text.edit_f1 import edit_f1
from whichsense.text.porter import stem
from whichsense.text.ptb import question_words as compared
from whichsense.text.words import words

PHRASE_LIKELY = -1.2  # a phrase of the evidence counts as this likely: about what the writer gives what it draws
_MOST_TOGETHER = 4096  # ways of choosing rewrites together that are tried one by one

_NAMES_NO_READING = SMALL_WORDS | frozenset(
    "country city state person people individual man men woman women team group name named year date time".split()
)

REWRITE_FEATURES = (
    "edits",
    "order",
    "likely",
    "phrase",
    "drawn",
    "inserted",
    "deleted",
    "only_small",
    "front",
    "behind",
    "small_beside_small",
    "digits",
)


@dataclass(frozen=True, slots=True)
class Option:
    """A rewrite that may be given."""

    question: str
    likely: float = PHRASE_LIKELY
    """Mean log probability of its tokens, by the writer."""
    phrase: bool = False
    """Whether it is a phrase of the evidence, put to the question."""
    bonus: float = 0.0
    """What it counts beyond what the scorer says."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewritten question and how good it is (higher is better)."""

    question: str
    score: float
    worth: float = 0.0
    """The same, whatever the other answers are; endless for a phrase of the evidence, which is as good as its text."""


def of_rewrites(
    question: str, options: Sequence[Option], drawn: Sequence[str]
) -> list[dict[str, float]]:
    """What speaks for each option, by name. `drawn`: all that the writer drew, right or not.

    >>> drawn = ["Who sang it in 1969?", "Who sang it in 1969?", "Who first sang it?"]
    >>> options = [Option("Who sang it in 1969?"), Option("Who first sang it?")]
    >>> first, second = of_rewrites("Who sang it?", options, drawn)
    >>> first["edits"] > second["edits"], first["digits"], second["behind"]
    (True, 1.0, 0.0)
    """
    before, others = compared(question), [compared(text) for text in drawn]
    times = Counter(key(text) for text in drawn)
    found = []
    for option in options:
        own = compared(option.question)
        edits = [edit_f1(before, other, own) for other in others]
        order = [sentence_bleu((other,), own)[3] for other in others]
        found.append(
            {
                "edits": float(np.mean(edits)) if edits else 0.0,
                "order": float(np.mean(order)) if order else 0.0,
                "likely": option.likely,
                "phrase": float(option.phrase),
                "drawn": times[key(option.question)] / max(len(drawn), 1),
                **_changes(question, option.question),
            }
        )
    return found


def _changes(question: str, rewrite: str) -> dict[str, float]:
    before, after = words(question), words(rewrite)
    inserted = list((Counter(after) - Counter(before)).elements())
    deleted = list((Counter(before) - Counter(after)).elements())
    pairs = set(itertools.pairwise(before))
    beside = [
        pair
        for pair in itertools.pairwise(after)
        if pair not in pairs and set(pair) <= SMALL_WORDS
    ]
    return {
        "inserted": math.log1p(len(inserted)),
        "deleted": math.log1p(len(deleted)),
        "only_small": float(bool(inserted) and set(inserted) <= SMALL_WORDS),
        "front": float(after[:1] != before[:1]),
        "behind": float(after[-1:] != before[-1:]),
        "small_beside_small": float(len(beside)),
        "digits": float(any(letter.isdigit() for word in inserted for letter in word)),
    }


def together(
    options: Sequence[Sequence[Rewrite]], alike: Callable[[str], Hashable] | None = None
) -> list[Rewrite | None]:
    """One rewrite for each answer, no two alike, with the best scores in sum; None where none is left. `alike`: what
    rewrites that are alike have in common; without it, all their words."""
    alike = alike or key
    ways = [[*some, None] for some in options]
    if np.prod([float(len(way)) for way in ways]) > _MOST_TOGETHER:
        return _one_by_one(options, alike)
    best: tuple[float, list[Rewrite | None]] = (-np.inf, [None] * len(options))
    for way in itertools.product(*ways):
        given = [one for one in way if one is not None]
        if len({alike(one.question) for one in given}) == len(given):
            value = sum(one.score for one in given) - 100.0 * (len(way) - len(given))
            best = max(best, (value, list(way)), key=lambda pair: pair[0])
    return best[1]


def _one_by_one(
    options: Sequence[Sequence[Rewrite]], alike: Callable[[str], Hashable]
) -> list[Rewrite | None]:
    """The same, greedily: for very many answers."""
    taken: set[Hashable] = set()
    found: list[Rewrite | None] = []
    for some in options:
        free = [one for one in some if alike(one.question) not in taken]
        chosen = max(free, key=lambda one: one.score) if free else None
        taken |= {alike(chosen.question)} if chosen else set()
        found.append(chosen)
    return found


def added(question: str, rewrite: str) -> frozenset[str]:
    """What a rewrite says beyond the question, by the stems of its words: not how, and not what is asked for. Two that
    add the same name the same reading.

    >>> said = ("What country won the 2014 FIFA Cup?", "Who won the FIFA Cup in 2014?", "Who won the 2018 FIFA Cup?")
    >>> [sorted(added("Who won the cup?", one)) for one in said]
    [['2014', 'fifa'], ['2014', 'fifa'], ['2018', 'fifa']]
    """
    before = set(map(stem, words(question)))
    return (
        frozenset(
            stem(word) for word in words(rewrite) if word not in _NAMES_NO_READING
        )
        - before
    )


def key(question: str) -> str:
    """Two rewrites with the same words are the same."""
    return " ".join(words(question))
