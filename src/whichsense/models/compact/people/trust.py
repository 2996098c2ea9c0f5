"""How far an answer and a rewrite can be trusted: linear nets over what asking again gave, and the thresholds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense.models.compact.encoder.runtime import damaged
from whichsense.models.compact.scorer.scorer import Net, linear

_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)
_NETS = ("answer_in_large", "answer_in_small", "answerable", "true", "fluent")
_SETTINGS = (
    "answerable_over",
    "considered_over",
    "probable_over",
    "only_over",
    "true_over",
)
# Of a model whose trust was never learnt: the reader's own probability, and what asking again gave.
_ANSWER = linear(probability=1.0)
_ANSWERABLE = linear(answerable=1.0)
_TRUE = linear(own=0.6, margin=0.3)
_FLUENT = linear(is_title=1.0, is_condition=0.5, drawn=1.0)


@dataclass(frozen=True)
class Trust:
    """Probabilities of answers and rewrites, and how probable what is shown must be."""

    answer_in_large: Net = _ANSWER
    """Whether an answer is right, in a large corpus."""
    answer_in_small: Net = _ANSWER
    answerable: Net = _ANSWERABLE
    """Whether there is an answer at all, from the features of the best one."""
    true: Net = _TRUE
    """Whether a rewrite is true of its answer and of no other, if the answer is right."""
    fluent: Net = _FLUENT
    """Whether a person could have written a rewrite."""
    answerable_over: float = 0.25
    """Where an answer is less probable to be there, none is given."""
    considered_over: float = 0.15
    """The least probability of an answer that is rewritten."""
    probable_over: float = 0.5
    """The least probability of one among several readings that are shown."""
    only_over: float = 0.2
    """The least probability of an only answer that is shown."""
    true_over: float = 0.3
    """A rewrite that is less probable to be true is not given."""

    def answer(self, *, small: bool) -> Net:
        return self.answer_in_small if small else self.answer_in_large

    @classmethod
    def load(cls, path: Path) -> Trust:
        """Read a file. A folder without one has the defaults."""
        if not path.exists():
            return cls()
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            return cls.from_table(table)
        except _UNREADABLE as error:
            raise damaged(path, error) from None

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Trust:
        values: dict[str, Any] = {}
        for name in _NETS:
            values[name] = Net.from_table(table[name])
        for name in _SETTINGS:
            values[name] = float(table["settings"][name])
        return cls(**values)

    def to_table(self) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for name in _NETS:
            table[name] = getattr(self, name).to_table()
        table["settings"] = {name: getattr(self, name) for name in _SETTINGS}
        return table

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.to_table()) + "\n", encoding="utf-8")


def probability(net: Net, features: Sequence[Mapping[str, float]]) -> list[float]:
    """The probability of each item; none for no items."""
    return net.probabilities(features) if features else []
