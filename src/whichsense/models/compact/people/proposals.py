"""Rewrites that may be given for each answer: its label in the likeliest frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.label.frames import put_into
from whichsense.models.compact.label.labeller import Label
from whichsense.models.compact.scorer.choosing import key

_FRAMES = 3  # of a label


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rewrite that may be given for an answer."""

    question: str
    promise: float = 0.0
    """How promising it is before it is asked again."""


def propose_rewrites(
    question: str, labels: Sequence[Label | None]
) -> list[list[Proposal]]:
    """Different rewrites for each answer, the most promising first."""
    proposals = []
    for label in labels:
        by_key: dict[str, Proposal] = {}
        if label is not None:
            for frame, chance in label.frames_by_worth[:_FRAMES]:
                rewrite = put_into(question, label.text, frame)
                by_key.setdefault(key(rewrite), Proposal(rewrite, chance))
        by_key.pop(key(question), None)
        proposals.append(list(by_key.values()))
    return proposals
