"""The last step: the scorer, fitted by what the exported model says of questions that nothing was learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.index import Index
from whichsense.models.compact import features
from whichsense.models.compact.candidates import Answer
from whichsense.models.compact.features import Context
from whichsense.models.compact.scorer import Net, Scorer
from whichsense.models.compact.system import Compact
from whichsense.progress import Progress, silent
from whichsense.text import normalize
from whichsense.train.compact_scorer import fit
from whichsense.types import Method

_FEWEST = 10
DEPTH = 40  # hits of a question, as when it is asked


@dataclass
class _Examples:
    """Rows of features with labels, and which question each is of."""

    rows: list[dict[str, float]] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)

    def add(self, row: dict[str, float], label: bool, group: int) -> None:
        self.rows.append(row)
        self.labels.append(float(label))
        self.groups.append(group)


@dataclass(frozen=True)
class Unfitted(Compact):
    """The model before it has a scorer: passages are weighed by the settings that a scorer has from the start."""

    @cached_property
    def scorer(self) -> Scorer:
        nothing = np.zeros(0, np.float32)
        flat = Net((), nothing, nothing, ((np.zeros((1, 0), np.float32), np.zeros(1, np.float32)),))
        return Scorer(answer=flat, ambiguous=flat, answerable=flat)


def fit_scorer(
    folder: Path, questions: Sequence[Question], index: Index, method: Method | None, progress: Progress = silent
) -> Scorer:
    """Three nets: whether a candidate is right, a question ambiguous, and whether an answer was found at all."""
    contexts = _contexts(Unfitted(folder), questions, index, method, progress)
    if len(contexts) < _FEWEST:
        raise BadInput(
            f"The scorer needs {_FEWEST} questions with candidates that nothing was learnt from; there are "
            f"{len(contexts)}. Lower data.held, which says how many are kept for it, and train again."
        )
    answers, ambiguous, answerable = _Examples(), _Examples(), _Examples()
    for group, (question, context) in enumerate(contexts):
        for place, answer in enumerate(context.answers):
            answers.add(features.of_answer(place, context), is_right(answer, question), group)
    right = fit(answers.rows, answers.labels, answers.groups)
    for group, (question, context) in enumerate(contexts):
        rows = [features.of_answer(place, context) for place in range(len(context.answers))]
        about = features.of_question(context, right.probabilities(rows))
        ambiguous.add(about, question.is_ambiguous, group)
        answerable.add(about, any(is_right(answer, question) for answer in context.answers), group)
    several, any_ = (fit(one.rows, one.labels, one.groups) for one in (ambiguous, answerable))
    return Scorer(answer=right, ambiguous=several, answerable=any_)


def is_right(answer: Answer, question: Question) -> bool:
    """Whether a candidate, in any of its forms, is a gold answer as the official scripts compare them."""
    gold = {normalize(name) for names in question.answers for name in names}
    return any(normalize(text) in gold for text in (answer.text, *(mention.surface for mention in answer.mentions)))


def _contexts(
    compact: Compact, questions: Sequence[Question], index: Index, method: Method | None, progress: Progress
) -> list[tuple[Question, Context]]:
    """What the features are made of, for every question with candidates. Encoder states are let go: 25 MB each."""
    found = []
    for number, question in enumerate(questions, 1):
        hits = index.search(question.text, DEPTH, method)
        scene = compact.scene(question.text, hits, keep=compact.settings.keep)
        if scene.answers:
            nothing = np.zeros(0, np.float32)
            read = tuple(replace(one, states=nothing, span=nothing) for one in scene.evidence.read)
            found.append((question, replace(scene.context, evidence=replace(scene.evidence, read=read))))
        progress(number / len(questions), number)
    return found
