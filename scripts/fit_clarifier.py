"""Fit the compact clarifier's rankers to CAmbigNQ's part_train and write models/compact/clarification/weights.json.

    python scripts/fit_clarifier.py            # a few minutes on one core; WHICHSENSE_DATA names the data folder

The part itself is not shipped: no licence is stated for it. Weights are of forms, function words and frequent words.
Each ranker is a softmax regression over the candidates of a list, towards the best of them; its numbers were chosen by
cross-validation.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.feature_extraction import DictVectorizer

from whichsense import datasets
from whichsense.files import write_atomically
from whichsense.lab.datasets import ClarifiedQuestion, Question
from whichsense.models.compact.categories import Choice, lead_candidates
from whichsense.models.compact.phrases import (
    WEIGHTS,
    AlignedRewrite,
    Features,
    Ranker,
    align,
    choose_phrases,
    list_phrases,
    overlap,
    phrase_features,
    phrase_text,
    without_commas,
)

_FOLDS = 5
_TEMPERATURE = 0.05  # how sharply the best candidates are preferred to good ones
_SMALLEST = 0.02  # weights under this are left out
_TINY = 1e-300  # a probability of 0 has no logarithm
# The ridge, and how many lists a feature must be in.
_OPTIONS = (2e-3, 8)
_LEADS = (6e-3, 4)
_Doubles = NDArray[np.float64]


class Annotated(NamedTuple):
    """A question whose options annotators wrote, one for each rewrite."""

    question: ClarifiedQuestion
    rewrites: list[AlignedRewrite]


class Ranked(NamedTuple):
    """Candidates of one decision: their features and how good each is, from 0 to 1."""

    features: list[Features]
    values: list[float]


def read_annotated(questions: Sequence[Question]) -> Iterator[Annotated]:
    """Yield the questions whose options belong to rewrites, one by one."""
    for question in questions:
        if not isinstance(question, ClarifiedQuestion) or not question.annotations:
            continue
        pairs = question.annotations[0].pairs
        rewrites = align(question.text, [pair.question for pair in pairs])
        if len(pairs) == len(question.options) and all(map(list_phrases, rewrites)):
            yield Annotated(question, rewrites)


def rank_options(one: Annotated) -> Iterator[Ranked]:
    """Yield the phrases of each rewrite, by how much of the annotators' option they are."""
    for rewrite, option in zip(one.rewrites, one.question.options, strict=True):
        phrases, gold = list_phrases(rewrite), without_commas(option)
        texts = [without_commas(phrase_text(rewrite, phrase)) for phrase in phrases]
        features = [phrase_features(rewrite, phrase) for phrase in phrases]
        yield Ranked(features, [overlap(text, gold) for text in texts])


def rank_leads(one: Annotated, options: Ranker) -> Iterator[Ranked]:
    """Yield the leads of a question, the annotators' own with the value 1; nothing where it is not among them."""
    annotated = one.question.clarification.partition(":")[0].strip()
    choice = Choice(one.rewrites, choose_phrases(one.rewrites, options))
    candidates = lead_candidates(choice)
    values = [float(lead.text.lower() == annotated.lower()) for lead in candidates]
    if any(values):
        yield Ranked(list(candidates.values()), values)


def fit_ranker(lists: Sequence[Ranked], ridge: float, least: int) -> Ranker:
    """Fit a ranker; features that fewer than `least` lists have are left out."""
    names, matrix = _vectorize(lists, least)
    starts = np.cumsum([0, *(len(one.values) for one in lists[:-1])])
    values = np.concatenate([np.array(one.values) for one in lists])
    targets = _softmax(values / _TEMPERATURE, starts)

    def loss(weights: _Doubles) -> tuple[float, _Doubles]:
        """Return the cross entropy with a ridge, and its gradient."""
        chances = _softmax(matrix @ weights, starts)
        entropy = -(targets * np.log(chances + _TINY)).sum() / len(starts)
        gradient = matrix.T @ (chances - targets) / len(starts)
        return entropy + ridge * weights @ weights, gradient + 2 * ridge * weights

    weights = minimize(loss, np.zeros(matrix.shape[1]), jac=True, method="L-BFGS-B").x
    named = zip(names, weights.tolist(), strict=True)
    return Ranker({name: round(weight, 3) for name, weight in named if abs(weight) >= _SMALLEST})


def _vectorize(lists: Sequence[Ranked], least: int) -> tuple[list[str], Any]:
    """Return the features that are used, and candidates × features."""
    counts = Counter(name for one in lists for name in set().union(*one.features))
    vectorizer = DictVectorizer()
    rows = [features for one in lists for features in one.features]
    matrix = vectorizer.fit_transform(
        {name: value for name, value in row.items() if counts[name] >= least} for row in rows
    )
    return vectorizer.feature_names_, matrix


def _softmax(logits: _Doubles, starts: NDArray[np.int64]) -> _Doubles:
    """Return probabilities within each list."""
    sizes = np.diff(np.r_[starts, len(logits)])
    powers = np.exp(logits - np.repeat(np.maximum.reduceat(logits, starts), sizes))
    return np.asarray(powers / np.repeat(np.add.reduceat(powers, starts), sizes))


def fit_both(questions: Sequence[Question]) -> dict[str, Ranker]:
    """Fit both rankers. The leads learn from options that were chosen without having seen the question."""
    annotated = list(read_annotated(questions))
    ranked = [list(rank_options(one)) for one in annotated]
    leads: list[Ranked] = []
    for fold in range(_FOLDS):
        seen = [own for number, own in enumerate(ranked) if number % _FOLDS != fold]
        options = fit_ranker(list(chain.from_iterable(seen)), *_OPTIONS)
        for one in annotated[fold::_FOLDS]:
            leads += rank_leads(one, options)
    return {
        "options": fit_ranker(list(chain.from_iterable(ranked)), *_OPTIONS),
        "leads": fit_ranker(leads, *_LEADS),
    }


def main() -> None:
    """Fit the rankers and write them."""
    rankers = fit_both(list(datasets.load("cambignq/part_train")))
    table = {name: ranker.weights for name, ranker in rankers.items()}
    text = json.dumps(table, ensure_ascii=False, indent=0, sort_keys=True)
    write_atomically(WEIGHTS, text + "\n")
    count = sum(map(len, table.values()))
    sys.stdout.write(f"{count} weights: {WEIGHTS}\n")


if __name__ == "__main__":
    main()
