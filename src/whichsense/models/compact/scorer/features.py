"""The named features of candidates, corpora and questions: the input of the learned scorer.

Each feature is one row of a table, name → function of a view. To add or change one, edit its row and fit the scorer
again: the scorer's file names the features that it was fitted on.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from whichsense.models.compact.scorer.views import (
    ANSWER_KINDS,
    LEAST,
    QUESTION_KINDS,
    AnswerView,
    QuestionView,
    SceneView,
)
from whichsense.text.words import words

_View = TypeVar("_View")
_FEW = 6  # passages: even a small corpus has about this many on a question's topic


def of_answer(place: int, context: SceneView) -> dict[str, float]:
    """The features of the candidate at a place of the context's list."""
    return _evaluate(_ANSWER, AnswerView(place, context))


def of_corpus(context: SceneView) -> dict[str, float]:
    """The features of a corpus, from the passages retrieved for a question, independent of the candidates."""
    return _evaluate(_CORPUS, context)


def of_question(
    context: SceneView,
    probabilities: Sequence[float],
    wording: float = 0.0,
    alone: float = 0.0,
) -> dict[str, float]:
    """The features of a question as a whole. `probabilities` are those of its candidates; `wording` and `alone` are the
    log odds of ambiguity by the n-gram probe and by the state probe."""
    view = QuestionView(context, probabilities, wording, alone)
    return of_corpus(context) | _evaluate(_QUESTION, view)


def _evaluate(
    features: Mapping[str, Callable[[_View], float]], view: _View
) -> dict[str, float]:
    """The value of each feature of a table, in the table's order."""
    values = {}
    for name, feature in features.items():
        values[name] = feature(view)
    return values


def _log(value: float) -> float:
    return math.log(max(value, LEAST))


def _search_score(view: AnswerView) -> float:
    """The best search score of the answer's passages, relative to the best of all passages."""
    top = max((score for _, score in view.evidence.found), default=1.0) or 1.0
    return max(score for _, score in view.searched) / top


def _share_in_question(view: AnswerView) -> float:
    """The share of the answer's words that the question has."""
    shared = 0
    for word in view.words:
        if word in view.question_words:
            shared += 1
    return shared / max(len(view.words), 1)


def _mean_search_score(context: SceneView) -> float:
    """The mean search score relative to the best. It is near 1 in a large corpus, where many passages fit."""
    scores = [score for _, score in context.evidence.found]
    return float(np.mean(scores)) / (max(scores) or 1.0)


def _relevance_drop(context: SceneView) -> float:
    """How far relevance drops from the best passage to the sixth. It drops far where few are about the question."""
    relevance = sorted((one.relevance for one in context.evidence.read), reverse=True)
    last = min(_FEW, len(relevance)) - 1
    return relevance[0] - relevance[last]


def _namesakes(view: QuestionView) -> int:
    """The number of titles that another title equals up to its brackets, such as Dune (1984 film)."""
    counts: Counter[str] = Counter()
    for title in view.context.titles:
        counts[re.sub(r"\s*\(.*\)$", "", title).lower()] += 1
    namesakes = 0
    for count in counts.values():
        if count > 1:
            namesakes += count
    return namesakes


def _has_year(view: QuestionView) -> bool:
    return bool(re.search(r"\b\d{4}\b", view.evidence.question))


def _is_kind(question: str, answer: str, view: AnswerView) -> float:
    return float((question, answer) == (view.question_kind, view.answer_kind))


def _is_question_kind(kind: str, view: QuestionView) -> float:
    return float(kind == view.question_kind)


_ANSWER: dict[str, Callable[[AnswerView], float]] = {
    # Probability that the reader gives the answer, in sum and at its best.
    "mass": lambda view: _log(view.answer.mass),
    "best_mention": lambda view: _log(max(one.mass for one in view.mentions)),
    "best_span": lambda view: _log(max(one.probability for one in view.mentions)),
    "support": lambda view: _log(view.answer.support),
    "verdict": lambda view: view.mentions[0].verdict,
    "best_verdict": lambda view: max(one.verdict for one in view.mentions),
    "left": lambda view: _log(max(one.left for one in view.mentions)),
    # Beside the question's other candidates.
    "overlaps": lambda view: view.answer.overlap(view.better),
    "beside_better": lambda view: float(view.shares_sentence()),
    "share": lambda view: view.answer.mass / view.context.total_mass,
    "beside_best": lambda view: _log(view.answer.mass / view.context.best_mass),
    "rank": lambda view: math.log1p(view.place),
    # The passages that hold it.
    "passages": lambda view: math.log(len(view.passages)),
    "titles": lambda view: math.log(view.count_titles()),
    "best_relevance": lambda view: view.best_relevance(),
    "read_rank": lambda view: math.log1p(view.passages[0]),
    "search_rank": lambda view: math.log1p(min(rank for rank, _ in view.searched)),
    "search_score": _search_score,
    "null": lambda view: _log(view.context.null),
    # Its words.
    "length": lambda view: math.log1p(len(view.words)),
    "in_question": _share_in_question,
    "in_title": lambda view: float(view.mentions[0].in_title),
    # The question, equal for all of its candidates.
    "ambiguity": lambda view: view.context.mean_ambiguity,
    "first_passage": lambda view: _log(float(view.context.shares.max())),
    "found_beside_best": lambda view: _mean_search_score(view.context),
    "relevance_falls": lambda view: _relevance_drop(view.context),
    # The text around it.
    "question_beside": lambda view: view.question_overlap[0],
    "title_asked": lambda view: view.question_overlap[1],
    "holding": lambda view: math.log1p(view.count_holding()),
}
for _asked in QUESTION_KINDS:
    for _kind in ANSWER_KINDS:
        _ANSWER[f"{_asked} asked, {_kind} given"] = partial(_is_kind, _asked, _kind)

_CORPUS: dict[str, Callable[[SceneView], float]] = {
    "null": lambda context: _log(context.null),
    "first_passage": lambda context: _log(float(context.shares.max())),
    "relevance": lambda context: max(one.relevance for one in context.evidence.read),
    "titles": lambda context: math.log(context.count_titles()),
    "found_beside_best": _mean_search_score,
    "relevance_falls": _relevance_drop,
}

_QUESTION: dict[str, Callable[[QuestionView], float]] = {
    "ambiguity": lambda view: view.context.mean_ambiguity,
    "ambiguity_first": lambda view: view.evidence.read[0].ambiguity,
    "wording": lambda view: view.wording,
    "alone": lambda view: view.alone,
    "mass": lambda view: _log(float(view.masses.sum())),
    "entropy": lambda view: view.entropy(),
    # The probabilities of the three best candidates, and of all.
    "first": lambda view: view.ordered[0],
    "second": lambda view: view.ordered[1],
    "third": lambda view: view.ordered[2],
    "expected": lambda view: float(sum(view.ordered)),
    "namesakes": lambda view: math.log1p(_namesakes(view)),
    "words": lambda view: math.log1p(len(words(view.evidence.question))),
    "has_year": lambda view: float(_has_year(view)),
}
for _asked in QUESTION_KINDS:
    _QUESTION[f"{_asked} asked"] = partial(_is_question_kind, _asked)

ANSWER_FEATURES = tuple(_ANSWER)
CORPUS_FEATURES = tuple(_CORPUS)
QUESTION_FEATURES = (*_CORPUS, *_QUESTION)
