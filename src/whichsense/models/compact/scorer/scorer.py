"""The learned scorer: features to calibrated probabilities, and from these the answers that are given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from whichsense.models.compact.encoder.runtime import Floats, damaged
from whichsense.models.compact.scorer.choosing import REWRITE_FEATURES
from whichsense.models.compact.scorer.features import (
    ANSWER_FEATURES,
    CORPUS_FEATURES,
    QUESTION_FEATURES,
)
from whichsense.models.compact.scorer.impression import Impression
from whichsense.models.compact.scorer.wording import Wording

FAR = 4.0  # standard deviations: an odd value counts as a far one, no further
FEW, MANY = (
    5_000,
    200_000,
)  # passages: the judges learnt from corpora of hundreds, and of a million
_NETS = {"answerable": QUESTION_FEATURES, "large": CORPUS_FEATURES}
_JUDGES = ("in_large", "in_small")
_SETTINGS = ("decline_under", "search_weight", "holds_over")


@dataclass(frozen=True)
class Net:
    """A linear model over named features, made into a probability."""

    names: tuple[str, ...]
    mean: Floats
    spread: Floats
    weights: Floats
    """Of the features in units of their spread."""
    bias: float

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Net:
        names = tuple(table["names"])
        mean, spread, weights = (
            np.asarray(table[part], dtype=np.float32)
            for part in ("mean", "spread", "weights")
        )
        if any(array.shape != (len(names),) for array in (mean, spread, weights)):
            raise ValueError("the weights do not fit the features")
        return cls(names, mean, spread, weights, float(table["bias"]))

    def to_table(self) -> dict[str, Any]:
        arrays = {"mean": self.mean, "spread": self.spread, "weights": self.weights}
        return {
            "names": list(self.names),
            **{part: array.tolist() for part, array in arrays.items()},
            "bias": self.bias,
        }

    def probabilities(self, features: Sequence[Mapping[str, float]]) -> list[float]:
        """One for each candidate."""
        found: list[float] = (
            1 / (1 + np.exp(-np.clip(self.values(features), -30, 30)))
        ).tolist()
        return found

    def values(self, features: Sequence[Mapping[str, float]]) -> list[float]:
        """What the net says of each, before it is made a probability."""
        values = np.array(
            [[one[name] for name in self.names] for one in features], dtype=np.float32
        )
        values = np.clip(
            (values.reshape(len(features), len(self.names)) - self.mean) / self.spread,
            -FAR,
            FAR,
        )
        found: list[float] = (values @ self.weights + self.bias).tolist()
        return found


def linear(**weights: float) -> Net:
    """A net that adds up some features, each times its weight."""
    nothing = np.zeros(len(weights), np.float32)
    return Net(
        tuple(weights),
        nothing,
        nothing + 1,
        np.array(list(weights.values()), np.float32),
        0.0,
    )


_AGREEMENT = linear(edits=0.25, order=0.2, likely=0.015)


@dataclass(frozen=True)
class Judge:
    """How probable each candidate is to be right and a question to be ambiguous, and what follows for its answers."""

    answer: Net
    ambiguous: Net
    single_under: float | None = 0.46
    """A question that is less probably ambiguous than this is not, and gets one answer. None: it is ambiguous where
    several answers are given."""
    missing: float = 2.0
    """How many right answers are expected beyond all candidates: what the reader never finds counts for F1."""
    join_over: float = 0.2
    """A candidate that a rewrite prefers joins the answers if it is at least this probable."""

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Judge:
        nets = (
            _net(table["answer"], ANSWER_FEATURES),
            _net(table["ambiguous"], QUESTION_FEATURES),
        )
        return cls(
            *nets,
            table["single_under"],
            table["missing"],
            table.get("join_over", cls.join_over),
        )

    def to_table(self) -> dict[str, Any]:
        nets = {
            name: getattr(self, name).to_table() for name in ("answer", "ambiguous")
        }
        return nets | {
            "single_under": self.single_under,
            "missing": self.missing,
            "join_over": self.join_over,
        }


@dataclass(frozen=True)
class Scorer:
    """How probable the evidence is to hold an answer. Which answers are right and whether a question is ambiguous is
    for two judges: a few documents seldom hold all that could be meant, a million passages always something else."""

    answerable: Net
    large: Net
    """Whether a corpus is large, by how the passages for a question look."""
    in_large: Judge
    in_small: Judge
    rewrite: Net = _AGREEMENT
    """How good a rewrite is, beside others for the same answer."""
    wording: Wording = field(default_factory=Wording)
    """How ambiguous a question is by its words,"""
    impression: Impression = field(default_factory=Impression)
    """and to the encoder, which reads it alone. Judges weigh both."""
    decline_under: float = 0.5
    """Where an answer is there less probably than this, none is given: it would be a guess."""
    search_weight: float = 3.0
    """What the logarithm of a passage's search score, beside the best one's, adds to its relevance."""
    holds_over: float = -9.0
    """How much less likely than another answer a reading's own may be when its rewrite is asked (log probability)."""

    def judge(self, corpus: Mapping[str, float], passages: int | None = None) -> Judge:
        """The one for a corpus of so many passages; of a middling size, or an unknown one, for what looks like this
        (`features.of_corpus`): it guesses wrong for one question in fifteen of the sample."""
        if passages is not None and not FEW < passages < MANY:
            return self.in_small if passages <= FEW else self.in_large
        return (
            self.in_large
            if self.large.probabilities([corpus])[0] >= 0.5
            else self.in_small
        )

    @classmethod
    def load(cls, path: Path) -> Scorer:
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            answerable, large = (
                _net(table[name], features) for name, features in _NETS.items()
            )
            in_large, in_small = (Judge.from_table(table[name]) for name in _JUDGES)
            rewrite = _net(table["rewrite"], REWRITE_FEATURES)
            heard = (
                Wording.from_table(table["wording"]),
                Impression.from_table(table["impression"]),
            )
            settings = {name: table["settings"][name] for name in _SETTINGS}
            return cls(
                answerable, large, in_large, in_small, rewrite, *heard, **settings
            )
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            AttributeError,
        ) as error:
            raise damaged(path, error) from None

    def save(self, path: Path) -> None:
        parts = (*_NETS, *_JUDGES, "rewrite", "wording", "impression")
        table: dict[str, Any] = {name: getattr(self, name).to_table() for name in parts}
        table["settings"] = {name: getattr(self, name) for name in _SETTINGS}
        path.write_text(json.dumps(table) + "\n", encoding="utf-8")


def _net(table: Mapping[str, Any], features: Sequence[str]) -> Net:
    """A net that a file holds. It may look at these features."""
    found = Net.from_table(table)
    if strange := set(found.names) - set(features):
        raise ValueError(f"there is no feature '{min(strange)}'")
    return found


def chosen(
    probabilities: Sequence[float], missing: float, threshold: float | None = None
) -> list[int]:
    """Which candidates to give: the set with the highest expected F1, or all that reach `threshold`; one at least.

    With k given, Σp of them right, and n right ones in all, F1 is about 2 Σp / (k + n).

    >>> chosen([0.8, 0.7, 0.1], missing=0.2), chosen([0.9, 0.1], missing=0.0), chosen([0.3, 0.2], 0.0, threshold=0.25)
    ([0, 1], [0], [0])
    """
    order = sorted(range(len(probabilities)), key=lambda place: -probabilities[place])
    if threshold is not None:
        return [place for place in order if probabilities[place] >= threshold] or order[
            :1
        ]
    expected = max(sum(probabilities) + missing, 1.0)
    values = [
        2 * sum(probabilities[place] for place in order[:count]) / (count + expected)
        for count in range(1, len(order) + 1)
    ]
    return order[: int(np.argmax(values)) + 1] if values else []
