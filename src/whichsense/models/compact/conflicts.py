"""Documents that disagree: which of their answers can stand beside each other.

Answers of documents about different things may all be right. Documents that share most of their words are about the
same thing: if their answers differ, one of them is false, and what more documents say wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.text.answers import same_answer
from whichsense.text.words import SUMMARY_STOP_WORDS, words


@dataclass(frozen=True, slots=True)
class Statement:
    """What one document answers, and how sure its reader is."""

    answer: str
    confidence: float
    document: str


def settle(statements: Sequence[Statement], similar: float) -> list[list[Statement]]:
    """The answers that stand, each with the statements that give it: those of most documents first.

    Two documents are about the same thing where they share at least `similar` of the shorter one's content words.

    >>> tower, wall = "The tower in Ghent, of grey stone, was built in {}.", "The long wall of York dates from {}."
    >>> said = [Statement("1313", 0.8, tower.format(1313)), Statement("1900", 0.9, tower.format(1900)),
    ...         Statement("1313", 0.7, "Ghent began its tower in 1313."), Statement("71", 0.6, wall.format(71))]
    >>> [group[0].answer for group in settle(said, similar=0.8)]
    ['1313', '71']
    """
    groups = _group_by_answer(statements)
    groups.sort(key=lambda group: (-len(group), -group[0].confidence))
    standing: list[list[Statement]] = []
    for group in groups:
        if not any(_conflict(group, other, similar) for other in standing):
            standing.append(group)
    return standing


def _group_by_answer(statements: Sequence[Statement]) -> list[list[Statement]]:
    """Statements of the same answer together, the surest first."""
    groups: list[list[Statement]] = []
    for statement in sorted(statements, key=lambda one: -one.confidence):
        for group in groups:
            if same_answer(statement.answer, group[0].answer):
                group.append(statement)
                break
        else:
            groups.append([statement])
    return groups


def _conflict(one: Sequence[Statement], other: Sequence[Statement], similar: float) -> bool:
    for statement in one:
        for opposed in other:
            if document_similarity(statement.document, opposed.document) >= similar:
                return True
    return False


def document_similarity(one: str, other: str) -> float:
    """The share of the shorter document's content words that the other one has, too.

    >>> document_similarity("The film opened in 1977.", "A film opened in 1996 in Rome.")
    0.6666666666666666
    """
    sets = []
    for text in (one, other):
        sets.append(set(words(text)) - SUMMARY_STOP_WORDS)
    short, long = sorted(sets, key=len)
    return len(short & long) / len(short) if short else 0.0
