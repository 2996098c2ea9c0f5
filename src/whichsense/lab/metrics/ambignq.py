"""AmbigQA's metrics: F1 over answers, and over answers with their questions (BLEU, EDIT-F1).

`released` is what the official script computes and published numbers mean. `paper` is the formula as printed, which
lets two predictions match one gold answer. `in_order` is REFUEL's wording: each prediction, in order, takes the
first free gold answer that it matches, with that pair's question score.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from whichsense.errors import BadInput
from whichsense.lab.metrics.exact_match import normal_form
from whichsense.text.overlap import edit_f1, sentence_bleu
from whichsense.text.ptb import tokenize_question
from whichsense.types import frozen

Variant = Literal["released", "paper", "in_order"]
QUESTION_METRICS = ("f1_bleu1", "f1_bleu2", "f1_bleu3", "f1_bleu4", "f1_edit")
METRICS = ("f1_ans", *QUESTION_METRICS)

# A matching pair: gold index, prediction index, and the pair's score by each metric.
_Match = tuple[int, int, Sequence[float]]
# From matches, the metric's number and the sizes of gold and prediction to F1.
_F1 = Callable[[Sequence[_Match], int, int, int], float]


@frozen
class Annotation:
    """One annotator's view: one answer (no questions), or several answers with a question each."""

    answers: tuple[tuple[str, ...], ...]
    questions: tuple[str, ...] = ()

    @property
    def single(self) -> bool:
        return not self.questions


@frozen
class Prediction:
    """A system's answers to a question and, if it rewrites the question, the rewrite for each answer."""

    answers: tuple[str, ...]
    questions: tuple[str, ...] = ()


def best_f1(answer_sets: Iterable[Sequence[Sequence[str]]], answers: Sequence[str]) -> float:
    """F1ans: of several annotations the one that fits best counts; 0 without an answer."""
    return max(f1_answers(gold, answers) for gold in answer_sets) if answers else 0.0


def f1_answers(
    gold: Sequence[Sequence[str]], predicted: Sequence[str], variant: Variant = "released"
) -> float:
    """Return F1 between gold answers, each a list of aliases, and predicted ones.

    >>> f1_answers([["S5"], ["S7"]], ["S5", "S5", "S7"])
    0.8
    >>> f1_answers([["a", "b"], ["a"]], ["a", "b"]), f1_answers([["a"], ["a", "b"]], ["a", "b"])
    (0.5, 1.0)
    """
    matches: list[_Match] = [(i, j, (1.0,)) for i, j in _matching_answers(gold, predicted)]
    return _F1_BY_VARIANT[variant](matches, 0, len(gold), len(predicted))


def _matching_answers(
    gold: Sequence[Sequence[str]], predicted: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the indices of every gold and predicted answer that are equal after normalization."""
    if not gold or not predicted:
        raise BadInput("F1 over answers needs at least one gold and one predicted answer.")
    forms = list(map(normal_form, predicted))
    pairs = []
    for i, aliases in enumerate(gold):
        gold_forms = set(map(normal_form, aliases))
        for j, form in enumerate(forms):
            if form in gold_forms:
                pairs.append((i, j))
    return pairs


def _released_f1(matches: Sequence[_Match], metric: int, n_gold: int, n_predicted: int) -> float:
    """Greedy 1:1 matching, best score first; ties by gold order, then by predicted order."""
    ordered = sorted(matches, key=lambda match: match[2][metric], reverse=True)
    return _greedy_f1(ordered, metric, n_gold + n_predicted)


def _in_order_f1(matches: Sequence[_Match], metric: int, n_gold: int, n_predicted: int) -> float:
    """Greedy 1:1 matching in the order of the predictions."""
    ordered = sorted(matches, key=operator.itemgetter(1))
    return _greedy_f1(ordered, metric, n_gold + n_predicted)


def _greedy_f1(matches: Sequence[_Match], metric: int, size: int) -> float:
    if len(matches) == 1:  # the common case
        return 2 * matches[0][2][metric] / size
    used_gold: set[int] = set()
    used_predictions: set[int] = set()
    total = 0.0
    for i, j, scores in matches:
        if i not in used_gold and j not in used_predictions:
            used_gold.add(i)
            used_predictions.add(j)
            total += scores[metric]
    return 2 * total / size


def _paper_f1(matches: Sequence[_Match], metric: int, n_gold: int, n_predicted: int) -> float:
    """Give every prediction its best gold answer, whether another has taken it or not."""
    best: dict[int, float] = {}
    for _, j, scores in matches:
        best[j] = max(best.get(j, 0.0), scores[metric])
    return 2 * sum(best.values()) / (n_gold + n_predicted)


_F1_BY_VARIANT: dict[Variant, _F1] = {
    "released": _released_f1,
    "paper": _paper_f1,
    "in_order": _in_order_f1,
}


def references(question: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each wording of a gold question; wordings are separated by "|".

    >>> references("Who was king?|Who was the ruler?")
    (('who', 'was', 'king'), ('who', 'was', 'ruler'))
    """
    wordings = [
        tokenize_question(wording) for part in question.split("|") if (wording := part.strip())
    ]
    # An empty gold question counts as one wording without words.
    return tuple(wordings) or ((),)


def question_scores(prompt: str, gold: str, predicted: str) -> tuple[float, ...]:
    """Return BLEU-1 to BLEU-4 and EDIT-F1 of a predicted question against a gold one.

    >>> prompt, gold = "Who made the play the crucible?", "Who wrote the play the crucible?"
    >>> [round(score, 6) for score in question_scores(prompt, gold, "Who wrote the play crucible in 1953?")]
    [0.666667, 0.632456, 0.584804, 0.508133, 0.666667]
    """
    golds = references(gold)
    predicted_words = tokenize_question(predicted)
    prompt_words = tokenize_question(prompt)
    bleu = sentence_bleu(golds, predicted_words)
    edits = [edit_f1(prompt_words, words, predicted_words) for words in golds]
    return *bleu, max(edits)


def score_question(
    prompt: str,
    annotations: Sequence[Annotation],
    prediction: Prediction,
    variant: Variant = "released",
) -> dict[str, float]:
    """Every metric of one question, for each the best over the annotations. Without questions: F1 over answers only.

    >>> annotation = Annotation((("1962",), ("1964",)), ("When did Dr. No come out?", "When did Goldfinger come out?"))
    >>> score_question("When did it come out?", [annotation], Prediction(("1962",)))
    {'f1_ans': 0.6666666666666666}
    """
    names = METRICS if prediction.questions else METRICS[:1]
    f1 = _F1_BY_VARIANT[variant]
    best = dict.fromkeys(names, 0.0)
    for annotation in annotations:
        matches = _score_matches(prompt, annotation, prediction)
        if not matches:
            continue
        n_gold = len(annotation.answers)
        n_predicted = len(prediction.answers)
        for number, name in enumerate(names):
            # With a single answer there is no question to compare: every metric is F1 over answers.
            metric = 0 if annotation.single else number
            best[name] = max(best[name], f1(matches, metric, n_gold, n_predicted))
    return best


def _score_matches(prompt: str, annotation: Annotation, prediction: Prediction) -> list[_Match]:
    with_questions = bool(prediction.questions) and not annotation.single
    matches: list[_Match] = []
    for i, j in _matching_answers(annotation.answers, prediction.answers):
        scores: tuple[float, ...] = (1.0,)
        if with_questions:
            gold, predicted = annotation.questions[i], prediction.questions[j]
            scores += question_scores(prompt, gold, predicted)
        matches.append((i, j, scores))
    return matches
