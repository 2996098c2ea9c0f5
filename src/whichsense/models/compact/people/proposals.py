"""Rewrites that may be given for each answer: its label in the frame that fits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.label.frames import FRAMES, put_into
from whichsense.models.compact.label.labeller import Label
from whichsense.text.function_words import PHRASE_OPENERS
from whichsense.text.words import words

_ARTICLES = frozenset("a an the".split())
_FITS_OVER = 0.6  # a frame that fits less probably is not tried: of the others nine in ten are the written one


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rewrite that may be given for an answer."""

    question: str
    promise: float = 0.0
    """How promising it is before it is asked again."""


def propose_rewrites(
    question: str, labels: Sequence[Label | None]
) -> list[list[Proposal]]:
    """The rewrite of each answer that has a label with a frame; others may be added."""
    proposals: list[list[Proposal]] = []
    for label in labels:
        proposals.append([])
        if label is not None and label.fits >= _FITS_OVER and _is_whole(label):
            rewrite = put_into(question, label.text, label.frame)
            proposals[-1].append(Proposal(rewrite, label.fits))
    return proposals


def _is_whole(label: Label) -> bool:
    """Whether a label has just one preposition that joins it to a question, its own or its frame's, and one article."""
    frame = FRAMES[label.frame].split()
    first = words(label.text)[:1]
    if _ARTICLES.issuperset(first):
        return bool(frame) and frame[-1] not in _ARTICLES
    return PHRASE_OPENERS.issuperset(first) != bool(frame)
