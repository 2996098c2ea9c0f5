"""Choose among rewrites: features of each, and one rewrite for each answer so that no two are alike.

The main feature is agreement with all samples of the writer (minimum Bayes risk decoding): the single likeliest rewrite
says too little, or the same for every answer. A linear model weighs it with the other features.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from whichsense.text.bleu import sentence_bleu
from whichsense.text.edit_f1 import edit_f1
from whichsense.text.function_words import GENERIC_WORDS, SMALL_WORDS
from whichsense.text.porter import porter_stem
from whichsense.text.ptb import tokenize_question as compared
from whichsense.text.words import words

_PHRASE_LIKELY = (
    -1.2
)  # log probability that a phrase counts with: about the mean of the writer's samples
_MOST_COMBINATIONS = 4096  # up to so many are searched exhaustively
_UNANSWERED = (
    100.0  # penalty for an answer without a rewrite: above any difference of scores
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
    likely: float = _PHRASE_LIKELY
    """Mean log probability of its tokens, by the writer."""
    phrase: bool = False
    """Whether it is the question with a phrase of the evidence."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rewritten question and how good it is (higher is better)."""

    question: str
    score: float


def of_rewrites(
    question: str, options: Sequence[Option], drawn: Sequence[str]
) -> list[dict[str, float]]:
    """The features of each option. `drawn` holds all samples of the writer, right or not.

    >>> drawn = ["Who sang it in 1969?", "Who sang it in 1969?", "Who first sang it?"]
    >>> options = [Option("Who sang it in 1969?"), Option("Who first sang it?")]
    >>> first, second = of_rewrites("Who sang it?", options, drawn)
    >>> first["edits"] > second["edits"], first["digits"], second["behind"]
    (True, 1.0, 0.0)
    """
    before = compared(question)
    samples = list(map(compared, drawn))
    counts = Counter(map(key, drawn))
    features = []
    for option in options:
        own = compared(option.question)
        # Agreement with each sample: on the edits, and on the order of words (BLEU-4).
        edits = []
        order = []
        for sample in samples:
            edits.append(edit_f1(before, sample, own))
            order.append(sentence_bleu((sample,), own)[3])
        row = {
            "edits": float(np.mean(edits)) if edits else 0.0,
            "order": float(np.mean(order)) if order else 0.0,
            "likely": option.likely,
            "phrase": float(option.phrase),
            "drawn": counts[key(option.question)] / max(len(drawn), 1),
        }
        features.append(row | change_features(question, option.question))
    return features


def change_features(question: str, rewrite: str) -> dict[str, float]:
    """Features of the words that the rewrite inserts and deletes."""
    before = words(question)
    after = words(rewrite)
    inserted = list((Counter(after) - Counter(before)).elements())
    deleted = list((Counter(before) - Counter(after)).elements())
    old_pairs = set(itertools.pairwise(before))
    small_pairs = 0
    for pair in itertools.pairwise(after):
        if pair not in old_pairs and set(pair) <= SMALL_WORDS:
            small_pairs += 1
    letters = "".join(inserted)
    return {
        "inserted": math.log1p(len(inserted)),
        "deleted": math.log1p(len(deleted)),
        "only_small": float(bool(inserted) and set(inserted) <= SMALL_WORDS),
        "front": float(after[:1] != before[:1]),
        "behind": float(after[-1:] != before[-1:]),
        "small_beside_small": float(small_pairs),
        "digits": float(any(map(str.isdigit, letters))),
    }


def together(
    options: Sequence[Sequence[Rewrite]], alike: Callable[[str], Hashable] | None = None
) -> list[Rewrite | None]:
    """Choose one rewrite for each answer, no two alike, with the highest sum of scores; None where none is left.

    Two rewrites are alike if `alike` maps them to the same value; by default, if they have the same words.
    """
    alike = alike or key
    # The ways of each answer: one of its rewrites, or none.
    ways = []
    combinations = 1.0
    for some in options:
        ways.append([*some, None])
        combinations *= len(some) + 1
    if combinations > _MOST_COMBINATIONS:
        return _choose_greedily(options, alike)
    best: list[Rewrite | None] = [None] * len(options)
    best_value = -math.inf
    for way in itertools.product(*ways):
        given = [one for one in way if one is not None]
        names = {alike(one.question) for one in given}
        if len(names) < len(given):
            continue
        missing = len(way) - len(given)
        value = sum(one.score for one in given) - _UNANSWERED * missing
        if value > best_value:
            best = list(way)
            best_value = value
    return best


def _choose_greedily(
    options: Sequence[Sequence[Rewrite]], alike: Callable[[str], Hashable]
) -> list[Rewrite | None]:
    """The best rewrite left for one answer after the other: for very many answers."""
    taken: set[Hashable] = set()
    rewrites: list[Rewrite | None] = []
    for some in options:
        free = [one for one in some if alike(one.question) not in taken]
        best = max(free, key=lambda one: one.score, default=None)
        if best is not None:
            taken.add(alike(best.question))
        rewrites.append(best)
    return rewrites


def added(question: str, rewrite: str) -> frozenset[str]:
    """The stems that a rewrite adds to the question, without generic words. Two rewrites that add the same name the
    same reading.

    >>> said = ("What country won the 2014 FIFA Cup?", "Who won the FIFA Cup in 2014?", "Who won the 2018 FIFA Cup?")
    >>> [sorted(added("Who won the cup?", one)) for one in said]
    [['2014', 'fifa'], ['2014', 'fifa'], ['2018', 'fifa']]
    """
    before = set(map(porter_stem, words(question)))
    after = set()
    for word in words(rewrite):
        if word not in GENERIC_WORDS:
            after.add(porter_stem(word))
    return frozenset(after - before)


def key(question: str) -> str:
    """The words of a rewrite: two rewrites with the same words are the same."""
    return " ".join(words(question))
