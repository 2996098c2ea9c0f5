"""Fits the clarifier's rankers on clarifications that people wrote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import require
from whichsense.files import write_atomically
from whichsense.lab.datasets import ClarifiedQuestion, Question
from whichsense.models.compact.categories import Choice, lead_candidates
from whichsense.models.compact.phrases import (
    AlignedRewrite,
    Features,
    Phrase,
    Ranker,
    align,
    choose_phrases,
    list_phrases,
    overlap,
    phrase_features,
    phrase_text,
    without_commas,
)
from whichsense.types import frozen

# Annotated clarification questions as lists of candidates with how good each is.


@dataclass(frozen=True)
class RankedList:
    """Candidates of one decision: their features and how good each is, from 0 to 1."""

    features: list[Features]
    values: list[float]


@dataclass(frozen=True)
class OptionLists:
    """A question whose options annotators wrote: for each rewrite its phrases, and the list to learn from."""

    question: ClarifiedQuestion
    rewrites: list[AlignedRewrite]
    phrases: list[list[Phrase]]
    lists: list[RankedList]

    def choice(self, ranker: Ranker) -> Choice:
        """The phrases that a ranker chooses."""
        return Choice(self.rewrites, choose_phrases(self.rewrites, ranker))


def option_lists(questions: Sequence[Question]) -> list[OptionLists]:
    """Questions whose options belong to rewrites, one by one."""
    every = []
    for question in questions:
        if not isinstance(question, ClarifiedQuestion) or not question.annotations:
            continue
        pairs = question.annotations[0].pairs
        if len(pairs) != len(question.options):
            continue
        rewrites = align(question.text, [pair.question for pair in pairs])
        phrases = [list_phrases(rewrite) for rewrite in rewrites]
        if all(phrases):
            every.append(_with_values(question, rewrites, phrases))
    return every


def _with_values(
    question: ClarifiedQuestion, rewrites: list[AlignedRewrite], phrases: list[list[Phrase]]
) -> OptionLists:
    lists = []
    for rewrite, own, option in zip(rewrites, phrases, question.options, strict=True):
        gold = without_commas(option)
        features = [phrase_features(rewrite, phrase) for phrase in own]
        values = [overlap(without_commas(phrase_text(rewrite, phrase)), gold) for phrase in own]
        lists.append(RankedList(features, values))
    return OptionLists(question, rewrites, phrases, lists)


def lead_list(choice: Choice, question: ClarifiedQuestion) -> RankedList | None:
    """The leads of a question, the annotators' own with the value 1; None where it is not among them."""
    annotated = question.clarification.partition(":")[0].strip()
    candidates = lead_candidates(choice)
    values = [float(lead.text.lower() == annotated.lower()) for lead in candidates]
    if not any(values):
        return None
    return RankedList(list(candidates.values()), values)


# From annotated clarification questions to weights.json, in a minute or two on one core.

_Doubles = NDArray[np.float64]
_FOLDS = 5
_TINY = 1e-300  # a probability of 0 has no logarithm
_SMALLEST = 0.02  # weights under this are left out


@frozen
class RankerOptions:
    """How a ranker is fitted; chosen by cross-validation."""

    ridge: float
    temperature: float
    """How sharply the best candidates are preferred to good ones."""
    least: int
    """Lists that a feature must occur in."""


OPTIONS = RankerOptions(ridge=2e-3, temperature=0.05, least=8)
LEADS = RankerOptions(ridge=6e-3, temperature=0.05, least=4)


def fit_ranker(lists: Sequence[RankedList], options: RankerOptions) -> Ranker:
    """Softmax regression over each list's candidates, towards those of the highest values."""
    names, matrix = _vectorize(lists, options.least)
    starts = np.cumsum([0, *(len(one.values) for one in lists[:-1])])
    values = np.concatenate([np.array(one.values) for one in lists])
    targets = _softmax(values / options.temperature, starts)

    def loss(weights: _Doubles) -> tuple[float, _Doubles]:
        """The cross entropy with a ridge, and its gradient."""
        chances = _softmax(matrix @ weights, starts)
        entropy = -(targets * np.log(chances + _TINY)).sum() / len(starts)
        gradient = matrix.T @ (chances - targets) / len(starts)
        penalty = options.ridge * weights @ weights
        return entropy + penalty, gradient + 2 * options.ridge * weights

    begin = np.zeros(matrix.shape[1])
    minimize = require("scipy.optimize", "train").minimize
    weights = minimize(loss, begin, jac=True, method="L-BFGS-B").x
    return Ranker(
        {
            name: round(float(weight), 3)
            for name, weight in zip(names, weights, strict=True)
            if abs(weight) >= _SMALLEST
        }
    )


def _vectorize(lists: Sequence[RankedList], least: int) -> tuple[list[str], Any]:
    """The features that at least so many lists have, and candidates × features."""
    counts = Counter(
        chain.from_iterable(
            {name for features in one.features for name in features} for one in lists
        )
    )
    vectorizer = require("sklearn.feature_extraction", "train").DictVectorizer()
    matrix = vectorizer.fit_transform(
        {name: value for name, value in own.items() if counts[name] >= least}
        for one in lists
        for own in one.features
    )
    return vectorizer.feature_names_, matrix


def _softmax(logits: _Doubles, starts: NDArray[np.int64]) -> _Doubles:
    """Within each list."""
    sizes = np.diff(np.r_[starts, len(logits)])
    powers = np.exp(logits - np.repeat(np.maximum.reduceat(logits, starts), sizes))
    return np.asarray(powers / np.repeat(np.add.reduceat(powers, starts), sizes))


@dataclass(frozen=True)
class FittedRankers:
    """Both rankers, and what rankers that had not seen a question chose for it."""

    options: Ranker
    leads: Ranker

    def save(self, path: Path) -> None:
        table = {"options": self.options.weights, "leads": self.leads.weights}
        text = json.dumps(table, ensure_ascii=False, indent=0, sort_keys=True)
        write_atomically(path, text + "\n")


def fit_rankers(questions: Sequence[Question]) -> FittedRankers:
    """Fit both rankers. The leads learn from options that were chosen without having seen the question."""
    examples = option_lists(questions)
    return FittedRankers(fit_options(examples), fit_leads(examples))


def fit_options(examples: Sequence[OptionLists]) -> Ranker:
    return fit_ranker([ranked for one in examples for ranked in one.lists], OPTIONS)


def fit_leads(examples: Sequence[OptionLists]) -> Ranker:
    lists = []
    for fold in range(_FOLDS):
        seen = [one for place, one in enumerate(examples) if place % _FOLDS != fold]
        ranker = fit_options(seen)
        for one in examples[fold::_FOLDS]:
            ranked = lead_list(one.choice(ranker), one.question)
            if ranked is not None:
                lists.append(ranked)
    return fit_ranker(lists, LEADS)
