"""The learned scorer: features to calibrated probabilities, and from these the answers that are given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from whichsense.models.compact.choosing import REWRITE_FEATURES
from whichsense.models.compact.features import ANSWER_FEATURES, QUESTION_FEATURES
from whichsense.models.compact.runtime import Floats, damaged
from whichsense.models.compact.wording import Wording

FAR = 4.0  # standard deviations: an odd value counts as a far one, no further
_NETS = {
    "answer": ANSWER_FEATURES,
    "ambiguous": QUESTION_FEATURES,
    "ambiguous_in_large": QUESTION_FEATURES,
    "large": QUESTION_FEATURES,
    "answerable": QUESTION_FEATURES,
    "rewrite": REWRITE_FEATURES,
}
_SETTINGS = (
    "search_weight",
    "decline_under",
    "single_under",
    "single_under_in_large",
    "missing",
    "holds_over",
    "join_over",
)


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
        mean, spread, weights = (np.asarray(table[part], dtype=np.float32) for part in ("mean", "spread", "weights"))
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
        found: list[float] = (1 / (1 + np.exp(-np.clip(self.values(features), -30, 30)))).tolist()
        return found

    def values(self, features: Sequence[Mapping[str, float]]) -> list[float]:
        """What the net says of each, before it is made a probability."""
        values = np.array([[one[name] for name in self.names] for one in features], dtype=np.float32)
        values = np.clip((values.reshape(-1, len(self.names)) - self.mean) / self.spread, -FAR, FAR)
        found: list[float] = (values @ self.weights + self.bias).tolist()
        return found


def linear(**weights: float) -> Net:
    """A net that adds up some features, each times its weight."""
    nothing = np.zeros(len(weights), np.float32)
    return Net(tuple(weights), nothing, nothing + 1, np.array(list(weights.values()), np.float32), 0.0)


_AGREEMENT = linear(edits=0.25, order=0.2, likely=0.015)


@dataclass(frozen=True)
class Scorer:
    """How probable each candidate is to be right, the question to be ambiguous, and the corpus to hold an answer."""

    answer: Net
    ambiguous: Net
    ambiguous_in_large: Net
    large: Net
    answerable: Net
    rewrite: Net = _AGREEMENT
    """How good a rewrite is, beside others for the same answer."""
    wording: Wording = field(default_factory=Wording)
    """How ambiguous a question sounds; `ambiguous` weighs it with the evidence."""
    decline_under: float = 0.5
    """A corpus that less probably holds an answer than this gets none: it would be a guess."""
    single_under: float = 0.3
    """A question that is less probably ambiguous than this is not, and gets one answer."""
    single_under_in_large: float = 0.42
    """The same in a large corpus, where there is something else to be found for every question."""
    missing: float = 2.0
    """How many right answers are expected beyond all candidates: what the reader never finds counts for F1."""
    search_weight: float = 3.0
    """What the logarithm of a passage's search score, beside the best one's, adds to its relevance."""
    holds_over: float = -6.0
    """How much less likely than another answer a reading's own may be when its rewrite is asked (log probability)."""
    join_over: float = 0.2
    """A candidate that a rewrite prefers joins the answers if it is at least this probable."""

    def several(self, about: Mapping[str, float]) -> float:
        """The probability that a question has several readings, by what is known of it.

        A few documents answer only some of them, all of Wikipedia nearly all: large corpora have a net of their own,
        and count by how much the passages look like such a one's.
        """
        large, in_large, in_any = (
            net.probabilities([about])[0] for net in (self.large, self.ambiguous_in_large, self.ambiguous)
        )
        return large * in_large + (1 - large) * in_any

    def is_several(self, about: Mapping[str, float]) -> bool:
        large = self.large.probabilities([about])[0] >= 0.5
        return self.several(about) >= (self.single_under_in_large if large else self.single_under)

    @classmethod
    def load(cls, path: Path) -> Scorer:
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            nets = {name: Net.from_table(table[name]) for name in _NETS}
            for name, net in nets.items():
                if strange := set(net.names) - set(_NETS[name]):
                    raise ValueError(f"there is no feature '{min(strange)}'")
            wording = Wording.from_table(table["wording"])
            return cls(**nets, wording=wording, **table.get("settings", {}))  # type: ignore[arg-type]
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise damaged(path, error) from None

    def save(self, path: Path) -> None:
        table: dict[str, Any] = {name: getattr(self, name).to_table() for name in _NETS}
        table["wording"] = self.wording.to_table()
        table["settings"] = {name: getattr(self, name) for name in _SETTINGS}
        path.write_text(json.dumps(table) + "\n", encoding="utf-8")


def chosen(probabilities: Sequence[float], missing: float, threshold: float | None = None) -> list[int]:
    """Which candidates to give: the set with the highest expected F1, or all that reach `threshold`; one at least.

    With k given, Σp of them right, and n right ones in all, F1 is about 2 Σp / (k + n).

    >>> chosen([0.8, 0.7, 0.1], missing=0.2), chosen([0.9, 0.1], missing=0.0), chosen([0.3, 0.2], 0.0, threshold=0.25)
    ([0, 1], [0], [0])
    """
    order = sorted(range(len(probabilities)), key=lambda place: -probabilities[place])
    if threshold is not None:
        return [place for place in order if probabilities[place] >= threshold] or order[:1]
    expected = max(sum(probabilities) + missing, 1.0)
    values = [
        2 * sum(probabilities[place] for place in order[:count]) / (count + expected)
        for count in range(1, len(order) + 1)
    ]
    return order[: int(np.argmax(values)) + 1] if values else []
