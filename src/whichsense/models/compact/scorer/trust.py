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
# Of a model whose trust was never learnt: the reader's own probability, and what asking again gave.
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


IN_SMALL = Standard(answerable_over=0.65)
# A large corpus has all that could be meant, and much else beside it: less is certain there.
IN_LARGE = Standard(answerable_over=0.0, only_over=0.16)


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
            return cls.from_table(table)
        except _UNREADABLE as error:
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
