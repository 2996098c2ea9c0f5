"""The learned scorer: features to calibrated probabilities, and from these the answers that are given."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from whichsense.models.compact.choosing import REWRITE_FEATURES
from whichsense.models.compact.features import ANSWER_FEATURES, QUESTION_FEATURES
from whichsense.models.compact.runtime import Floats, damaged

FAR = 4.0  # standard deviations: an odd value counts as a far one, no further
_NETS = {
    "answer": ANSWER_FEATURES,
    "ambiguous": QUESTION_FEATURES,
    "answerable": QUESTION_FEATURES,
    "rewrite": REWRITE_FEATURES,
}
_SETTINGS = ("search_weight", "decline_under", "single_under", "missing", "holds_over", "join_over")


@dataclass(frozen=True)
class Net:
    """A linear model or one with hidden layers (tanh between them), over named features, made into a probability."""

    names: tuple[str, ...]
    mean: Floats
    spread: Floats
    layers: tuple[tuple[Floats, Floats], ...]
    slope: float = 1.0
    shift: float = 0.0

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Net:
        layers = tuple((_array(layer["weight"]), _array(layer["bias"])) for layer in table["layers"])
        names = tuple(table["names"])
        made = cls(names, _array(table["mean"]), _array(table["spread"]), layers, *table.get("calibration", (1.0, 0.0)))
        if made.mean.shape != (len(names),) or layers[0][0].shape[1] != len(names) or layers[-1][0].shape[0] != 1:
            raise ValueError("the layers do not fit the features")
        return made

    def to_table(self) -> dict[str, Any]:
        return {
            "names": list(self.names),
            "mean": self.mean.tolist(),
            "spread": self.spread.tolist(),
            "layers": [{"weight": weight.tolist(), "bias": bias.tolist()} for weight, bias in self.layers],
            "calibration": [self.slope, self.shift],
        }

    def probabilities(self, features: Sequence[Mapping[str, float]]) -> list[float]:
        """One for each candidate."""
        found: list[float] = (1 / (1 + np.exp(-np.clip(self.values(features), -30, 30)))).tolist()
        return found

    def values(self, features: Sequence[Mapping[str, float]]) -> list[float]:
        """What the net says of each, before it is made a probability."""
        values = np.array([[one[name] for name in self.names] for one in features], dtype=np.float32)
        values = np.clip((values.reshape(-1, len(self.names)) - self.mean) / self.spread, -FAR, FAR)
        for number, (weight, bias) in enumerate(self.layers):
            values = (np.tanh(values) if number else values) @ weight.T + bias
        found: list[float] = (self.slope * values[:, 0] + self.shift).tolist()
        return found


def linear(**weights: float) -> Net:
    """A net that adds up some features, each times its weight."""
    nothing, layer = np.zeros(len(weights), np.float32), np.array([list(weights.values())], np.float32)
    return Net(tuple(weights), nothing, nothing + 1, ((layer, np.zeros(1, np.float32)),))


_AGREEMENT = linear(edits=0.25, order=0.2, likely=0.015)


@dataclass(frozen=True)
class Scorer:
    """How probable each candidate is to be right, the question to be ambiguous, and the corpus to hold an answer."""

    answer: Net
    ambiguous: Net
    answerable: Net
    rewrite: Net = _AGREEMENT
    """How good a rewrite is, beside others for the same answer."""
    decline_under: float = 0.5
    """A corpus that less probably holds an answer than this gets none: it would be a guess."""
    single_under: float = 0.4
    """A question that is less probably ambiguous than this is not, and gets one answer."""
    missing: float = 2.5
    """How many right answers are expected beyond all candidates: what the reader never finds counts for F1."""
    search_weight: float = 3.0
    """What the logarithm of a passage's search score, beside the best one's, adds to its relevance."""
    holds_over: float = -6.0
    """How much less likely than another answer a reading's own may be when its rewrite is asked (log probability)."""
    join_over: float = 0.2
    """A candidate that a rewrite prefers joins the answers if it is at least this probable."""

    @classmethod
    def load(cls, path: Path) -> Scorer:
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            nets = {name: Net.from_table(table[name]) for name in _NETS}
            for name, net in nets.items():
                if strange := set(net.names) - set(_NETS[name]):
                    raise ValueError(f"there is no feature '{min(strange)}'")
            answer, ambiguous, answerable, rewrite = nets.values()
            return cls(answer, ambiguous, answerable, rewrite, **table.get("settings", {}))
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise damaged(path, error) from None

    def save(self, path: Path) -> None:
        table: dict[str, Any] = {name: getattr(self, name).to_table() for name in _NETS}
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


def _array(values: Any) -> Floats:
    return np.asarray(values, dtype=np.float32)
