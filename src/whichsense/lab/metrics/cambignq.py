"""CAmbigNQ's metrics: clarifications and their options, matched by BLEU or by BERTScore."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import starmap
from operator import add
from typing import TYPE_CHECKING, Any

from whichsense.errors import BadInput
from whichsense.lab.metrics.exact_match import normal_form
from whichsense.text.overlap import best_assignment, best_total
from whichsense.types import frozen

if TYPE_CHECKING:
    import numpy as np


# CAmbigNQ's metrics: the categories, options and clarified answers of a clarification question; how
# often different options have the same answer ("collapse").
#
# "Released" takes two separate assignments, one that is best for precision and one that is best for
# recall. The paper describes a single one: `one_assignment=True` takes the one that is best for both
# together.

_INVALID = "invalid form"


@frozen
class Overlap:
    """What one question adds to precision and recall: two sums of similarities and the two numbers of strings."""

    precision_sum: float
    recall_sum: float
    predicted: int
    gold: int


@frozen
class MicroAverage:
    """Precision, recall and F1, micro-averaged."""

    precision: float
    recall: float
    f1: float


def option_overlap(
    gold: Sequence[str], predicted: Sequence[str], one_assignment: bool = False
) -> Overlap:
    """Return how well predicted options cover gold ones.

    >>> overlap = option_overlap(["ab", "abcdef"], ["abcdefgh", "ab"])
    >>> overlap.precision_sum, overlap.recall_sum
    (1.75, 2.0)
    """
    return _overlap([[option] for option in gold], predicted, one_assignment)


def answer_overlap(
    gold: Sequence[Sequence[str]], predicted: Sequence[str], one_assignment: bool = False
) -> Overlap:
    """Do the same for clarified answers: normalized, and for each pair the alias with the longest common substring.

    >>> overlap = answer_overlap([["mj", "michael jordan"], ["lebron"]], ["jordan"])
    >>> overlap.precision_sum, round(overlap.recall_sum, 6)
    (1.0, 0.428571)
    """
    names = [list(map(normal_form, aliases)) for aliases in gold]
    return _overlap(names, list(map(normal_form, predicted)), one_assignment)


def _common_substring(one: str, other: str) -> int:
    """Return the length of the longest common substring, as `difflib` finds it (the released scorer does).

    >>> _common_substring("2002 film", "the film")
    5
    """
    matcher = SequenceMatcher(None, one, other)
    return matcher.find_longest_match(0, len(one), 0, len(other)).size


def _shares(names: Sequence[str], predicted: str) -> tuple[float, float]:
    """Return the shares of a predicted string and of a gold name that both have: the first name that shares most."""
    sizes = [_common_substring(name, predicted) for name in names]
    size = max(sizes)
    return _share(size, predicted), _share(size, names[sizes.index(size)])


def _share(length: int, text: str) -> float:
    return length / len(text) if length else 0.0


def _overlap(
    gold: Sequence[Sequence[str]], predicted: Sequence[str], one_assignment: bool
) -> Overlap:
    sizes = max(len(predicted), 1), max(len(gold), 1)  # a size of 0 counts as 1
    if not predicted or not gold:
        # Two empty lists agree; one empty list scores zero.
        score = float(len(predicted) == len(gold))
        return Overlap(score, score, *sizes)
    shares = [[_shares(names, other) for other in predicted] for names in gold]
    return Overlap(*_best_sums(shares, one_assignment), *sizes)


def _best_sums(
    shares: Sequence[Sequence[tuple[float, float]]], one_assignment: bool
) -> tuple[float, float]:
    """Sum the shares of the strings that fit together best, of predicted and of gold ones."""
    precision, recall = ([[pair[part] for pair in row] for row in shares] for part in range(2))
    if not one_assignment:
        return best_total(precision), best_total(recall)
    pairs = best_assignment([list(starmap(add, row)) for row in shares])
    return sum(precision[i][j] for i, j in pairs), sum(recall[i][j] for i, j in pairs)


def ratio(overlaps: Sequence[Overlap]) -> MicroAverage:
    """Return the micro average.

    >>> result = ratio([option_overlap(["the film", "the book", "the musical"], ["2002 film", "book"])])
    >>> round(result.precision, 4), round(result.recall, 4), round(result.f1, 4)
    (0.7778, 0.375, 0.506)
    """
    predicted = 0
    gold = 0
    for overlap in overlaps:
        predicted += overlap.predicted
        gold += overlap.gold
    # `sum` compensates for rounding since Python 3.12; a loop would give another last bit.
    precision_sum = sum(overlap.precision_sum for overlap in overlaps)
    recall_sum = sum(overlap.recall_sum for overlap in overlaps)
    precision = precision_sum / max(predicted, 1)
    recall = recall_sum / max(gold, 1)
    f1 = 0.0
    if precision + recall:
        f1 = 2 * precision * recall / (precision + recall)
    return MicroAverage(precision, recall, f1)


def distinct_answers_released(answers: Sequence[Sequence[str]]) -> float:
    """Return CAmbigNQ's "# Ans." as released: distinct answers over the whole set, divided by the number of questions.

    An answer that two questions share counts once.

    >>> distinct_answers_released([["Ann", "ann"], ["Bo", "Ann"]])
    1.0
    """
    distinct: set[str] = set()
    for own in answers:
        distinct.update(map(normal_form, own))
    return len(distinct - {""}) / len(answers) if answers else 0.0


def distinct_answers(answers: Sequence[str]) -> int:
    """Return the distinct answers of one question's options.

    >>> distinct_answers(["The Beatles", "beatles", "", "Queen"])
    2
    """
    return len(set(map(normal_form, answers)) - {""})


def category_exact_match(gold: str, predicted: str) -> float:
    """Tell whether two clarification questions have the same category, letter by letter.

    >>> category_exact_match("Which one: a, or b?", "Which one: c, or d?")
    1.0
    """
    gold_category, _ = parse_released(gold)
    predicted_category, _ = parse_released(predicted)
    return float(gold_category == predicted_category)


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
    options = [option.strip(" ?") for part in rest.split(", or") for option in part.split(",")]
    return category, options


# BERTScore F1: each token's best partner by cosine, in both directions, over the vectors of a given
# function.

if TYPE_CHECKING:
    Array = np.ndarray[Any, np.dtype[np.float32]]


# For each text a matrix of shape (tokens, dimensions) with rows of unit length; `models.token_vectors` has one.
_Embed = Callable[[Sequence[str]], Sequence["Array"]]


def bert_score(
    references: Sequence[str], predictions: Sequence[str], embed: _Embed, batch: int = 32
) -> list[float]:
    """Return F1 for each pair. CAmbigNQ's figure is the mean, with roberta-large and its 17th layer, not rescaled.

    >>> import numpy as np
    >>> def embed(texts):  # a direction for each letter
    ...     return [np.eye(26)[[ord(letter) - 97 for letter in text]] for text in texts]
    >>> bert_score(["abc", "abc"], ["cab", "ax"], embed)
    [1.0, 0.4]
    """
    if len(references) != len(predictions):
        raise BadInput(
            f"BERTScore needs pairs: {len(references)} references, {len(predictions)} predictions."
        )
    scores: list[float] = []
    for start in range(0, len(references), batch):
        end = start + batch
        gold = embed(references[start:end])
        predicted = embed(predictions[start:end])
        scores += map(_f1, gold, predicted)
    return scores


def _f1(gold: Array, predicted: Array) -> float:
    if not len(gold) or not len(predicted):
        return 0.0
    similarity = predicted @ gold.T  # (predicted tokens, gold tokens)
    precision = float(similarity.max(axis=1).mean())
    recall = float(similarity.max(axis=0).mean())
    if not precision + recall:
        return 0.0
    return 2 * precision * recall / (precision + recall)
