"""Votes of several readers: the answers of a majority, the answers with most votes, and which readers vote best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from whichsense.datasets import Question
from whichsense.metrics.ambignq import f1_answers
from whichsense.stages.read import SeqReader
from whichsense.text.words import normalize
from whichsense.train.tasks.seq2seq.answer_prediction import AnswerPredictionOptions
from whichsense.train.tasks.seq2seq.generation import mean, read_answers


def majority_answers(
    known: Sequence[str], predictions: Sequence[Sequence[str]]
) -> list[str]:
    """The answers besides the known one (any of its aliases) that more than half of the models give.

    >>> majority_answers(["1962"], [["1962", "1964"], ["1962", "1964", "1965"], ["1962"]])
    ['1964']
    """
    known_forms = set(map(normalize, known))
    votes: Counter[str] = Counter()
    written: dict[str, str] = {}  # normal form → the answer as it was written first
    for answers in predictions:
        # Of answers with one form the last is kept: a model has one vote for each.
        own = {}
        for answer in answers:
            own[normalize(answer)] = answer
        for form, answer in own.items():
            if form and form not in known_forms:
                votes[form] += 1
                written.setdefault(form, answer)
    majority = []
    for form, count in votes.items():
        if count > len(predictions) / 2:
            majority.append(written[form])
    return majority


def _voted_answers(predictions: Sequence[Sequence[str]]) -> list[str]:
    """The answers that the highest number of models gives, in the order in which they first come up.

    >>> _voted_answers([["a", "b"], ["b"], ["B", "c"]])
    ['b']
    """
    votes: Counter[str] = Counter()
    written: dict[str, str] = {}  # normal form → the answer as it was written first
    for answers in predictions:
        # Of answers with one form the first is kept.
        own = {}
        for answer in reversed(answers):
            own[normalize(answer)] = answer
        for form, answer in own.items():
            votes[form] += 1
            written.setdefault(form, answer)
    most = max(votes.values(), default=0)
    voted = []
    for form, answer in written.items():
        if votes[form] == most:
            voted.append(answer)
    return voted


def best_ensemble(
    sizes: Sequence[int], options: AnswerPredictionOptions, models: Sequence[Path]
) -> tuple[tuple[int, ...], float]:
    """The combination of models whose vote scores best on the development questions (appendix D), and its F1ans."""
    questions = options.data.development()
    evidence = options.data.evidence(options.form.passages)
    texts = [question.text for question in questions]
    evidence.search(texts)
    predictions = []  # by model, then by question
    for model in models:
        reader = SeqReader(model, beams=options.model.beams)
        predictions.append(read_answers(reader, texts, evidence))
    possible = [size for size in sizes if size <= len(models)]
    best: tuple[int, ...] = ()
    best_score = -1.0
    for size in possible or [len(models)]:
        for members in combinations(range(len(models)), size):
            ballots = [predictions[member] for member in members]
            score = _voted_f1(ballots, questions)
            # Of equally good ones the first.
            if score > best_score:
                best, best_score = members, score
    return best, best_score


def _voted_f1(
    predictions: Sequence[Sequence[Sequence[str]]], questions: Sequence[Question]
) -> float:
    scores = []
    for place, question in enumerate(questions):
        ballots = [own[place] for own in predictions]
        answers = _voted_answers(ballots) or [""]
        # Of several annotations the one that fits best counts.
        best = max(f1_answers(gold, answers) for gold in question.answer_sets)
        scores.append(best)
    return mean(scores)
