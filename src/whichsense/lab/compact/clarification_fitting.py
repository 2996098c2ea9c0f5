"""Fits the clarifier's rankers on clarifications that people wrote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense.files import write_atomically
from whichsense.lab.compact.scorer_fitting import SparseMatrix
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
        phrases = choose_phrases(self.rewrites, ranker)
        return Choice(self.rewrites, phrases)


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
    question: ClarifiedQuestion,
    rewrites: list[AlignedRewrite],
    phrases: list[list[Phrase]],
) -> OptionLists:
    lists = []
    for rewrite, own, option in zip(rewrites, phrases, question.options, strict=True):
        gold = without_commas(option)
        features = [phrase_features(rewrite, phrase) for phrase in own]
        values = []
        for phrase in own:
            said = without_commas(phrase_text(rewrite, phrase))
            values.append(overlap(said, gold))
        lists.append(RankedList(features, values))
    return OptionLists(question, rewrites, phrases, lists)


def lead_list(choice: Choice, question: ClarifiedQuestion) -> RankedList | None:
    """The leads of a question, the annotators' own with the value 1; None where it is not among them."""
    annotated = question.clarification.partition(":")[0].strip()
    candidates = lead_candidates(choice)
    values = []
    for lead in candidates:
        values.append(float(lead.text.lower() == annotated.lower()))
    if not any(values):
        return None
    return RankedList(list(candidates.values()), values)


# From annotated clarification questions to weights.json, in a minute or two on one core.

_Doubles = NDArray[np.float64]
_FOLDS = 5
_STEPS = 250
_SMALLEST = 0.02  # weights under this are left out


@dataclass(frozen=True, slots=True)
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
    names = _frequent_features(lists, options.least)
    matrix, starts = _matrix(lists, names)
    values = np.concatenate([np.array(one.values) for one in lists])
    targets = _softmax(values / options.temperature, starts)
    weights = _descend(matrix, targets, starts, options.ridge)
    kept = {}
    for name, weight in zip(names, weights, strict=True):
        if abs(weight) >= _SMALLEST:
            kept[name] = round(float(weight), 3)
    return Ranker(kept)


def _frequent_features(lists: Sequence[RankedList], least: int) -> list[str]:
    counts: Counter[str] = Counter()
    for one in lists:
        counts.update({name for features in one.features for name in features})
    return sorted(name for name, count in counts.items() if count >= least)


def _matrix(
    lists: Sequence[RankedList], names: Sequence[str]
) -> tuple[SparseMatrix, NDArray[np.int64]]:
    """Candidates × features, and where each list begins."""
    column_of = {name: column for column, name in enumerate(names)}
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    starts = []
    row = 0
    for one in lists:
        starts.append(row)
        for features in one.features:
            for name, value in features.items():
                if name in column_of:
                    rows.append(row)
                    columns.append(column_of[name])
                    values.append(value)
            row += 1
    matrix = SparseMatrix(
        np.array(rows), np.array(columns), np.array(values), (row, len(names))
    )
    return matrix, np.array(starts)


def _softmax(logits: _Doubles, starts: NDArray[np.int64]) -> _Doubles:
    """Within each list."""
    sizes = np.diff(np.r_[starts, len(logits)])
    highest = np.repeat(np.maximum.reduceat(logits, starts), sizes)
    powers = np.exp(logits - highest)
    sums = np.repeat(np.add.reduceat(powers, starts), sizes)
    return np.asarray(powers / sums)


def _descend(
    matrix: SparseMatrix, targets: _Doubles, starts: NDArray[np.int64], ridge: float
) -> _Doubles:
    """Cross entropy and a ridge, by Adam with a falling rate over all lists at once."""
    weights = np.zeros(matrix.shape[1])
    mean = np.zeros_like(weights)
    square = np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        chances = _softmax(matrix.times(weights), starts)
        gradient = matrix.transposed_times(chances - targets) / len(starts)
        gradient += 2 * ridge * weights
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        unbiased = mean / (1 - 0.9**step)
        spread = np.sqrt(square / (1 - 0.99**step)) + 1e-8
        rate = 0.1 * (1 - (step - 1) / _STEPS)
        weights -= rate * unbiased / spread
    return weights


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
