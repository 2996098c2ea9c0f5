"""AmbigQA's metrics: F1 over answers, and over answers with their questions (BLEU, EDIT-F1).

`released` is what the official script computes and published numbers mean; `paper` is the formula as printed, which
lets two predictions match one gold answer; `in_order` is REFUEL's wording: each prediction, in order, takes the
first free gold answer that it matches, and brings that pair's question score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from whichsense.errors import BadInput
from whichsense.metrics.answers import normal_form
from whichsense.text.bleu import sentence_bleu
from whichsense.text.edit_f1 import edit_f1
from whichsense.text.ptb import question_words

Variant = Literal["released", "paper", "in_order"]
QUESTION_METRICS = ("f1_bleu1", "f1_bleu2", "f1_bleu3", "f1_bleu4", "f1_edit")
METRICS = ("f1_ans", *QUESTION_METRICS)

Aliases = Sequence[str]
Words = tuple[str, ...]
Pair = tuple[
    int, int, Sequence[float]
]  # gold index, prediction index, scores of that pair


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotator's view: one answer (no questions), or several answers with a question each."""

    answers: tuple[tuple[str, ...], ...]
    questions: tuple[str, ...] = ()

    @property
    def single(self) -> bool:
        return not self.questions


@dataclass(frozen=True, slots=True)
class Prediction:
    """A system's answers to a question, and, if it rewrote it, the question that each one answers."""

    answers: tuple[str, ...]
    questions: tuple[str, ...] = ()


def f1_answers(
    gold: Sequence[Aliases], predicted: Sequence[str], variant: Variant = "released"
) -> float:
    """F1 between gold answers, each a list of aliases, and predicted ones.

    >>> f1_answers([["S5"], ["S7"]], ["S5", "S5", "S7"])
    0.8
    >>> f1_answers([["a", "b"], ["a"]], ["a", "b"]), f1_answers([["a"], ["a", "b"]], ["a", "b"])
    (0.5, 1.0)
    """
    pairs = [(i, j, (1.0,)) for i, j in _matching(gold, predicted)]
    return _TAKE[variant](pairs, 0, len(gold), len(predicted))


def _matching(
    gold: Sequence[Aliases], predicted: Sequence[str]
) -> list[tuple[int, int]]:
    if not gold or not predicted:
        raise BadInput(
            "F1 over answers needs at least one gold and one predicted answer."
        )
    forms = [normal_form(answer) for answer in predicted]
    pairs = []
    for i, aliases in enumerate(gold):
        names = {normal_form(alias) for alias in aliases}
        pairs += [(i, j) for j, form in enumerate(forms) if form in names]
    return pairs


def _take_best(
    pairs: Sequence[Pair], metric: int, n_gold: int, n_predicted: int
) -> float:
    """Greedy 1:1 matching, best score first; among equals the gold order, then the predicted order."""
    return _greedy(
        sorted(pairs, key=lambda pair: pair[2][metric], reverse=True),
        metric,
        n_gold + n_predicted,
    )


def _take_in_order(
    pairs: Sequence[Pair], metric: int, n_gold: int, n_predicted: int
) -> float:
    return _greedy(
        sorted(pairs, key=lambda pair: pair[1]), metric, n_gold + n_predicted
    )


def _greedy(pairs: Sequence[Pair], metric: int, size: int) -> float:
    if len(pairs) == 1:
        return 2 * pairs[0][2][metric] / size
    golds: set[int] = set()
    predictions: set[int] = set()
    total = 0.0
    for i, j, scores in pairs:
        if i not in golds and j not in predictions:
            golds.add(i)
            predictions.add(j)
            total += scores[metric]
    return 2 * total / size


def _take_all(
    pairs: Sequence[Pair], metric: int, n_gold: int, n_predicted: int
) -> float:
    best: dict[int, float] = {}
    for _, j, scores in pairs:
        best[j] = max(best.get(j, 0.0), scores[metric])
    return 2 * sum(best.values()) / (n_gold + n_predicted)


_TAKE: dict[Variant, Callable[[Sequence[Pair], int, int, int], float]] = {
    "released": _take_best,
    "paper": _take_all,
    "in_order": _take_in_order,
}


def references(question: str) -> tuple[Words, ...]:
    """The words of each way to write a gold question; several are separated by a bar.

    >>> references("Who was king?|Who was the ruler?")
    (('who', 'was', 'king'), ('who', 'was', 'ruler'))
    """
    return tuple(
        question_words(part.strip()) for part in question.split("|") if part.strip()
    ) or ((),)


def question_scores(prompt: str, gold: str, predicted: str) -> tuple[float, ...]:
    """BLEU-1 to BLEU-4 and EDIT-F1 of a predicted question against a gold one.

    >>> prompt, gold = "Who made the play the crucible?", "Who wrote the play the crucible?"
    >>> [round(score, 6) for score in question_scores(prompt, gold, "Who wrote the play crucible in 1953?")]
    [0.666667, 0.632456, 0.584804, 0.508133, 0.666667]
    """
    golds, ours, before = (
        references(gold),
        question_words(predicted),
        question_words(prompt),
    )
    return (
        *sentence_bleu(golds, ours),
        max(edit_f1(before, reference, ours) for reference in golds),
    )


def score_question(
    prompt: str,
    annotations: Sequence[Annotation],
    prediction: Prediction,
    variant: Variant = "released",
) -> dict[str, float]:
    """Every metric of one question: for each the best over the annotations. Without questions: F1 over answers only.

    >>> annotation = Annotation((("1962",), ("1964",)), ("When did Dr. No come out?", "When did Goldfinger come out?"))
    >>> score_question("When did it come out?", [annotation], Prediction(("1962",)))
    {'f1_ans': 0.6666666666666666}
    """
    names = METRICS if prediction.questions else METRICS[:1]
    best = dict.fromkeys(names, 0.0)
    for annotation in annotations:
        pairs = _scored_pairs(prompt, annotation, prediction)
        if not pairs:
            continue
        sizes = len(annotation.answers), len(prediction.answers)
        for metric, name in enumerate(names):
            # With a single answer there is no question to compare: every metric is F1 over answers.
            score = _TAKE[variant](pairs, 0 if annotation.single else metric, *sizes)
            best[name] = max(best[name], score)
    return best


def _scored_pairs(
    prompt: str, annotation: Annotation, prediction: Prediction
) -> list[Pair]:
    pairs: list[Pair] = []
    for i, j in _matching(annotation.answers, prediction.answers):
        scores: tuple[float, ...] = (1.0,)
        if prediction.questions and not annotation.single:
            scores += question_scores(
                prompt, annotation.questions[i], prediction.questions[j]
            )
        pairs.append((i, j, scores))
    return pairs
