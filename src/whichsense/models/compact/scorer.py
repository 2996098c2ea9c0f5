"""Calibrated probabilities: linear nets over features, and the trust in what asking again gave."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from whichsense.models.compact.encoder import Floats, damaged
from whichsense.models.compact.scorer_features import (
    ANSWER_FEATURES,
    CORPUS_FEATURES,
    QUESTION_FEATURES,
    REWRITE_FEATURES,
)
from whichsense.text.words import words

# Linear probes of ambiguity: log odds that a question has several readings, from the question alone.
#
# `NgramProbe` looks at the words ("who sang", "when did it come out"), `StateProbe` at the encoder's
# states of the question without a passage. Neither sees the evidence.

_LONGEST_PREFIX = 4  # words
_LONGEST = 15  # words; longer questions count as this long
_DIGITS = 6  # significant digits of a saved weight


def ngrams(question: str) -> list[str]:
    """The features of a question, each once: unigrams, bigrams, prefixes (^) and the length (#).

    >>> ngrams("Who sang it?")
    ['#3', '^who', '^who sang', '^who sang it', 'it', 'sang', 'sang it', 'who', 'who sang']
    """
    unigrams = words(question)
    features = {*unigrams, f"#{min(len(unigrams), _LONGEST)}"}
    for first, second in pairwise(unigrams):
        features.add(f"{first} {second}")
    for count in range(1, min(len(unigrams), _LONGEST_PREFIX) + 1):
        features.add("^" + " ".join(unigrams[:count]))
    return sorted(features)


@dataclass(frozen=True)
class NgramProbe:
    """A logistic regression over n-grams. An unknown n-gram has weight 0."""

    weights: Mapping[str, float] = field(default_factory=dict)
    bias: float = 0.0

    def __call__(self, question: str) -> float:
        """Log odds that the question has several readings.

        >>> NgramProbe({"who": 3.0, "sang": 1.5}, bias=-1.0)("Who sang it?")
        0.5
        """
        features = ngrams(question)
        total = sum(self.weights.get(ngram, 0.0) for ngram in features)
        # Divided by the norm of the indicator vector, so that length alone is no evidence.
        return self.bias + total / math.sqrt(len(features))

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> NgramProbe:
        weights: dict[str, float] = {}
        for ngram, weight in table["weights"].items():
            weights[str(ngram)] = float(weight)
        return cls(weights, float(table["bias"]))

    def to_table(self) -> dict[str, Any]:
        weights = {ngram: round(weight, 3) for ngram, weight in self.weights.items()}
        return {"weights": weights, "bias": self.bias}


@dataclass(frozen=True)
class StateProbe:
    """A logistic regression over pooled encoder states. Without weights it returns 0."""

    weights: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    bias: float = 0.0

    def __call__(self, states: Floats) -> float:
        """Log odds that the question has several readings. `states` comes from `pool_states`.

        >>> StateProbe(np.array([2.0, -1.0], np.float32), bias=0.5)(np.array([1.0, 1.0], np.float32))
        1.5
        """
        if not len(self.weights):
            return 0.0
        return self.bias + float(states @ self.weights)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> StateProbe:
        weights = np.asarray(table["weights"], dtype=np.float32)
        return cls(weights, float(table["bias"]))

    def to_table(self) -> dict[str, Any]:
        weights = [float(f"{weight:.{_DIGITS}g}") for weight in self.weights]
        return {"weights": weights, "bias": self.bias}


def pool_states(early: Floats, late: Floats) -> Floats:
    """Pool a question's states (tokens × width) after the first layers and after all layers into one vector
    (4 · width): of each the [CLS] state and the mean over the question's tokens, without the final [SEP]."""
    parts = []
    for states in (early, late):
        parts.append(states[0])
        parts.append(states[1:-1].mean(axis=0))
    return np.concatenate(parts)


# The learned scorer: features → calibrated probabilities → the answers that are given.

FAR = 4.0  # standard deviations: values further out are clipped to this
_SMALL, _LARGE = 5_000, 200_000  # passages: a corpus is small up to, large from
_LARGEST_LOGIT = 30.0  # further out exp would overflow
_NETS = {"answerable": QUESTION_FEATURES, "large": CORPUS_FEATURES}
_JUDGES = ("in_large", "in_small")
_SETTINGS = ("decline_under", "search_weight", "holds_over")
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError)


@dataclass(frozen=True)
class Net:
    """A logistic regression over named features, which are standardized and clipped first."""

    names: tuple[str, ...]
    mean: Floats
    spread: Floats
    weights: Floats
    """One for each standardized feature."""
    bias: float

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Net:
        names = tuple(table["names"])
        arrays = []
        for part in ("mean", "spread", "weights"):
            array = np.asarray(table[part], dtype=np.float32)
            if array.shape != (len(names),):
                raise ValueError("the weights do not fit the features")
            arrays.append(array)
        mean, spread, weights = arrays
        return cls(names, mean, spread, weights, float(table["bias"]))

    def to_table(self) -> dict[str, Any]:
        return {
            "names": list(self.names),
            "mean": self.mean.tolist(),
            "spread": self.spread.tolist(),
            "weights": self.weights.tolist(),
            "bias": self.bias,
        }

    def probabilities(self, features: Sequence[Mapping[str, float]]) -> list[float]:
        """The probability of each item, given its features."""
        logits = np.clip(self.values(features), -_LARGEST_LOGIT, _LARGEST_LOGIT)
        probabilities: list[float] = (1 / (1 + np.exp(-logits))).tolist()
        return probabilities

    def values(self, features: Sequence[Mapping[str, float]]) -> list[float]:
        """The logit of each item, given its features."""
        rows = []
        for item in features:
            rows.append([item[name] for name in self.names])
        matrix = np.array(rows, dtype=np.float32)
        # An empty list has no second axis yet: items × features.
        matrix = matrix.reshape(len(features), len(self.names))
        standardized = np.clip((matrix - self.mean) / self.spread, -FAR, FAR)
        logits: list[float] = (standardized @ self.weights + self.bias).tolist()
        return logits


def linear(**weights: float) -> Net:
    """A net that sums features times weights, without standardizing them."""
    zeros = np.zeros(len(weights), np.float32)
    values = np.array(list(weights.values()), np.float32)
    return Net(tuple(weights), zeros, zeros + 1, values, 0.0)


_AGREEMENT = linear(edits=0.25, order=0.2, likely=0.015)


@dataclass(frozen=True)
class Judge:
    """The probabilities that a candidate is right and that a question is ambiguous, and the thresholds on them."""

    answer: Net
    ambiguous: Net
    single_under: float | None = 0.46
    """A question that is less probably ambiguous than this gets one answer. None: it is ambiguous if several answers
    are given."""
    missing: float = 2.0
    """The number of right answers expected beyond all candidates: those that the reader misses count for F1."""
    join_over: float = 0.2
    """The least probability of a candidate that joins the answers because a rewrite prefers it."""

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Judge:
        return cls(
            _read_net(table["answer"], ANSWER_FEATURES),
            _read_net(table["ambiguous"], QUESTION_FEATURES),
            table["single_under"],
            table["missing"],
            table["join_over"],
        )

    def to_table(self) -> dict[str, Any]:
        return {
            "answer": self.answer.to_table(),
            "ambiguous": self.ambiguous.to_table(),
            "single_under": self.single_under,
            "missing": self.missing,
            "join_over": self.join_over,
        }


@dataclass(frozen=True)
class Scorer:
    """All learned weights beside the encoder and the writer, as one JSON file.

    Two judges decide which answers are right and whether a question is ambiguous: a few documents seldom hold all that
    could be meant, a million passages always hold something else.
    """

    answerable: Net
    """Whether the evidence holds an answer."""
    large: Net
    """Whether a corpus is large, from the passages that a question retrieves."""
    in_large: Judge
    in_small: Judge
    rewrite: Net = _AGREEMENT
    """How good a rewrite is beside others for the same answer (a logit)."""
    wording: NgramProbe = field(default_factory=NgramProbe)
    impression: StateProbe = field(default_factory=StateProbe)
    """Both judges weigh the two probes of ambiguity."""
    decline_under: float = 0.5
    """If an answer is less probable than this to be there, none is given."""
    search_weight: float = 3.0
    """The factor of log(search score / best search score) in a passage's relevance."""
    holds_over: float = -9.0
    """How much less likely than another answer a reading's own may be when its rewrite is asked (log probability)."""

    def judge(self, corpus: Mapping[str, float], passages: int | None = None) -> Judge:
        """The judge for a corpus of so many passages. If the size is unknown or between small and large, a classifier
        decides by `features.of_corpus`: it is wrong for one question in fifteen of the sample."""
        if passages is not None and passages <= _SMALL:
            return self.in_small
        if passages is not None and passages >= _LARGE:
            return self.in_large
        is_large = self.large.probabilities([corpus])[0] >= 0.5
        return self.in_large if is_large else self.in_small

    @classmethod
    def load(cls, path: Path) -> Scorer:
        try:
            return cls.from_table(json.loads(path.read_text(encoding="utf-8")))
        except _UNREADABLE as error:
            raise damaged(path, error) from None

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Scorer:
        settings = {name: table["settings"][name] for name in _SETTINGS}
        return cls(
            answerable=_read_net(table["answerable"], _NETS["answerable"]),
            large=_read_net(table["large"], _NETS["large"]),
            in_large=Judge.from_table(table["in_large"]),
            in_small=Judge.from_table(table["in_small"]),
            rewrite=_read_net(table["rewrite"], REWRITE_FEATURES),
            wording=NgramProbe.from_table(table["wording"]),
            impression=StateProbe.from_table(table["impression"]),
            **settings,
        )

    def save(self, path: Path) -> None:
        table: dict[str, Any] = {}
        for name in (*_NETS, *_JUDGES, "rewrite", "wording", "impression"):
            table[name] = getattr(self, name).to_table()
        settings: dict[str, float] = {}
        for name in _SETTINGS:
            settings[name] = getattr(self, name)
        table["settings"] = settings
        path.write_text(json.dumps(table) + "\n", encoding="utf-8")


def _read_net(table: Mapping[str, Any], features: Sequence[str]) -> Net:
    """Read a net from a file's table. Reject names that are not among the features."""
    net = Net.from_table(table)
    unknown = set(net.names) - set(features)
    if unknown:
        raise ValueError(f"there is no feature '{min(unknown)}'")
    return net


def chosen(
    probabilities: Sequence[float], missing: float, threshold: float | None = None, least: int = 1
) -> list[int]:
    """Choose candidates: the set with the highest expected F1, or all that reach `threshold`; `least` in any case.

    With k given, Σp of them right, and n right ones in all, F1 is about 2 Σp / (k + n).

    >>> chosen([0.8, 0.7, 0.1], missing=0.2), chosen([0.9, 0.1], missing=0.0), chosen([0.3, 0.2], 0.0, threshold=0.25)
    ([0, 1], [0], [0])
    >>> chosen([0.9, 0.1, 0.05], missing=0.0, least=2)
    [0, 1]
    """
    order = sorted(range(len(probabilities)), key=lambda place: -probabilities[place])
    if threshold is not None:
        over = [place for place in order if probabilities[place] >= threshold]
        return order[: max(len(over), least)]
    expected = max(sum(probabilities) + missing, 1.0)
    best = 0
    best_value = 0.0
    for count in range(1, len(order) + 1):
        right = sum(probabilities[place] for place in order[:count])
        value = 2 * right / (count + expected)
        if count == 1 or value > best_value:
            best = count
            best_value = value
    return order[: max(best, least)]


# How far an answer and a rewrite can be trusted: linear nets over what asking again gave, and the
# thresholds.

_TRUST_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)
# Of a model whose trust was never learnt: the reader's own probability, and what asking again gave.
_OF_ANSWERS = frozenset(
    "inside holds mark mark_beside_best best_mark marked_passages probability probability_beside_best"
    " answerable".split()
)
"""What `people.answer_features` says of an answer."""
_ANSWER = linear(probability=1.0)
_ANSWERABLE = linear(answerable=1.0)
_TRUE = linear(own=0.6, margin=0.3)
_FLUENT = linear(fluency=1.0)


@dataclass(frozen=True)
class Standard:
    """Whether an answer is right in corpora of one size, and from where on a question is answered there."""

    answer: Net = _ANSWER
    answerable_over: float = 0.25
    """Where an answer is less probable to be there, none is given."""
    only_over: float = 0.15
    """The least probability of the best answer, where one is given."""

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Standard:
        return cls(
            Net.from_table(table["answer"]),
            float(table["answerable_over"]),
            float(table["only_over"]),
        )

    def to_table(self) -> dict[str, Any]:
        return {
            "answer": self.answer.to_table(),
            "answerable_over": self.answerable_over,
            "only_over": self.only_over,
        }


IN_SMALL = Standard(answerable_over=0.4)
# A large corpus has all that could be meant, and much else beside it: less is certain there.
IN_LARGE = Standard(answerable_over=0.0, only_over=0.1)


@dataclass(frozen=True)
class Trust:
    """Probabilities of answers and rewrites."""

    in_large: Standard = IN_LARGE
    in_small: Standard = IN_SMALL
    answerable: Net = _ANSWERABLE
    """Whether there is an answer at all, from the features of the best one."""
    true: Net = _TRUE
    """Whether a rewrite is true of its answer and of no other, if the answer is right."""
    fluent: Net = _FLUENT
    """Whether a person could have written a rewrite."""

    @classmethod
    def load(cls, path: Path) -> Trust:
        """Read a file. A folder without one has the defaults."""
        if not path.exists():
            return cls()
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            trust = cls.from_table(table)
            for net in (trust.in_large.answer, trust.in_small.answer, trust.answerable):
                if unknown := set(net.names).difference(_OF_ANSWERS):
                    raise ValueError(f"it was fitted by another version: {unknown}")
            return trust
        except _TRUST_UNREADABLE as error:
            raise damaged(path, error) from None

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Trust:
        return cls(
            Standard.from_table(table["in_large"]),
            Standard.from_table(table["in_small"]),
            Net.from_table(table["answerable"]),
            Net.from_table(table["true"]),
            Net.from_table(table["fluent"]),
        )

    @property
    def reads_marks(self) -> bool:
        """Whether it was fitted on what a tagger marks."""
        return "mark" in self.in_small.answer.names

    def to_table(self) -> dict[str, Any]:
        return {
            "in_large": self.in_large.to_table(),
            "in_small": self.in_small.to_table(),
            "answerable": self.answerable.to_table(),
            "true": self.true.to_table(),
            "fluent": self.fluent.to_table(),
        }

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.to_table()) + "\n", encoding="utf-8")


def probability(net: Net, features: Sequence[Mapping[str, float]]) -> list[float]:
    """The probability of each item; none for no items."""
    return net.probabilities(features) if features else []
