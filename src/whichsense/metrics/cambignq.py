"""CAmbigNQ's metrics: categories, options, clarified answers, and the whole question by BLEU.

"Released" takes two separate assignments, one that is best for precision and one that is best for recall. The paper
describes a single one: `one_assignment=True` takes the one that is best for both together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from whichsense.metrics.answers import normal_form
from whichsense.text.assignment import best_assignment, best_total

Table = list[list[float]]
_INVALID = "invalid form"


@dataclass(frozen=True, slots=True)
class Overlap:
    """What one question adds to precision and recall: two sums of similarities and the two numbers of strings."""

    precision_sum: float
    recall_sum: float
    predicted: int
    gold: int


@dataclass(frozen=True, slots=True)
class Ratio:
    """Precision, recall and F1, micro-averaged."""

    precision: float
    recall: float
    f1: float


def common_substring(one: str, other: str) -> int:
    """The length of the longest common substring, as `difflib` finds it (the released scorer does).

    >>> common_substring("2002 film", "the film")
    5
    """
    return (
        SequenceMatcher(None, one, other)
        .find_longest_match(0, len(one), 0, len(other))
        .size
    )


def option_overlap(
    gold: Sequence[str], predicted: Sequence[str], one_assignment: bool = False
) -> Overlap:
    """How well predicted options cover gold ones.

    >>> overlap = option_overlap(["ab", "abcdef"], ["abcdefgh", "ab"])
    >>> overlap.precision_sum, overlap.recall_sum
    (1.75, 2.0)
    """
    lengths = [[common_substring(one, other) for other in predicted] for one in gold]
    precision = [
        [_share(n, other) for n, other in zip(row, predicted, strict=True)]
        for row in lengths
    ]
    recall = [
        [_share(n, one) for n in row] for row, one in zip(lengths, gold, strict=True)
    ]
    return _overlap(precision, recall, len(predicted), len(gold), one_assignment)


def answer_overlap(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[str],
    one_assignment: bool = False,
) -> Overlap:
    """The same for clarified answers: normalized, and for each pair the alias with the longest common substring.

    >>> overlap = answer_overlap([["mj", "michael jordan"], ["lebron"]], ["jordan"])
    >>> overlap.precision_sum, round(overlap.recall_sum, 6)
    (1.0, 0.428571)
    """
    guesses = [normal_form(answer) for answer in predicted]
    precision: Table = []
    recall: Table = []
    for aliases in gold:
        names = [normal_form(alias) for alias in aliases]
        best = [
            max(((common_substring(name, guess), -i) for i, name in enumerate(names)))
            for guess in guesses
        ]
        precision.append(
            [_share(n, guess) for (n, _), guess in zip(best, guesses, strict=True)]
        )
        recall.append([_share(n, names[-i]) for n, i in best])
    return _overlap(precision, recall, len(guesses), len(gold), one_assignment)


def _share(length: int, text: str) -> float:
    return length / len(text) if length else 0.0


def _overlap(
    precision: Table, recall: Table, predicted: int, gold: int, one_assignment: bool
) -> Overlap:
    if not predicted or not gold:
        both_empty = float(predicted == gold)
        return Overlap(both_empty, both_empty, max(predicted, 1), max(gold, 1))
    if not one_assignment:
        return Overlap(best_total(precision), best_total(recall), predicted, gold)
    both = [
        [p + r for p, r in zip(*rows, strict=True)]
        for rows in zip(precision, recall, strict=True)
    ]
    pairs = best_assignment(both)
    return Overlap(
        sum(precision[i][j] for i, j in pairs),
        sum(recall[i][j] for i, j in pairs),
        predicted,
        gold,
    )


def ratio(overlaps: Sequence[Overlap]) -> Ratio:
    """The micro average.

    >>> result = ratio([option_overlap(["the film", "the book", "the musical"], ["2002 film", "book"])])
    >>> round(result.precision, 4), round(result.recall, 4), round(result.f1, 4)
    (0.7778, 0.375, 0.506)
    """
    precision = sum(one.precision_sum for one in overlaps) / max(
        sum(one.predicted for one in overlaps), 1
    )
    recall = sum(one.recall_sum for one in overlaps) / max(
        sum(one.gold for one in overlaps), 1
    )
    return Ratio(
        precision,
        recall,
        2 * precision * recall / (precision + recall) if precision + recall else 0.0,
    )


def category_exact_match(gold: str, predicted: str) -> float:
    """Whether two clarification questions have the same category, letter by letter.

    >>> category_exact_match("Which one: a, or b?", "Which one: c, or d?")
    1.0
    """
    return float(parse_released(gold)[0] == parse_released(predicted)[0])


def parse_released(question: str) -> tuple[str, list[str]]:
    """Parse a clarification question as the released scorer does, bugs included; `text.clarification` is correct.

    >>> parse_released("Which one: party, leader, or faction?")
    ('Which one', ['party', 'leader', 'faction'])
    >>> parse_released("Which one: film or book?")
    ('Which one', ['film or book'])
    >>> parse_released("Which herb: basil, oregano?")
    ('Which herb', ['basil', 'egano'])
    >>> parse_released("Could you be more specific?")
    ('invalid form', ['invalid form'])
    """
    category, colon, rest = question.partition(":")
    if not colon:
        return _INVALID, [_INVALID]
    options = []
    for part in rest.split(", or"):
        for option in part.split(","):
            options.append(option.strip(" ?"))
    return category, options
