"""The last step: the scorer, fitted by what the exported model says of questions that nothing was learnt from."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.models.compact import features
from whichsense.models.compact.candidates import Answer
from whichsense.models.compact.features import Context
from whichsense.models.compact.scorer import Scorer, linear
from whichsense.models.compact.system import Compact, Scene
from whichsense.progress import Progress, silent
from whichsense.text import normalize
from whichsense.train.compact.choice import Judged
from whichsense.train.compact.corpora import DEPTH, Source, half_of_the_sample, small_corpora
from whichsense.train.compact_scorer import cross_fitted, fit

_FEWEST = 10


@dataclass(frozen=True)
class Unfitted(Compact):
    """The model before it has a scorer: passages are weighed by the settings that a scorer has from the start."""

    @cached_property
    def scorer(self) -> Scorer:
        return Scorer(answer=linear(), ambiguous=linear(), answerable=linear())


def fit_scorer(folder: Path, source: Source, progress: Progress = silent) -> Scorer:
    """For a model that has none yet: by questions over their index, over small corpora, and over the sample."""
    if len(source.questions) < _FEWEST:
        raise BadInput(
            f"The scorer needs {_FEWEST} questions that nothing was learnt from; there are {len(source.questions)}. "
            "Lower data.held, which says how many are kept for it, and train again."
        )
    contexts: list[tuple[Question, Context]] = []
    judged = Judged()
    with tempfile.TemporaryDirectory() as corpora:
        sources = [source, half_of_the_sample(), *small_corpora(source, Path(corpora))]
        for place, (question, scene) in enumerate(scenes(Unfitted(folder), sources, progress)):
            if place < len(source.questions):
                judged.add(scene, question)
            if scene.answers:
                contexts.append((question, _kept(scene)))
    found = fitted(contexts)
    return replace(found, rewrite=judged.net() or found.rewrite)


def fitted(contexts: Sequence[tuple[Question, Context]]) -> Scorer:
    """Three nets: whether a candidate is right, a question ambiguous, and whether an answer was found at all."""
    rows, labels, groups = list[dict[str, float]](), list[float](), list[int]()
    for group, (question, context) in enumerate(contexts):
        rows += [features.of_answer(place, context) for place in range(len(context.answers))]
        labels += [float(is_right(answer, question)) for answer in context.answers]
        groups += [group] * len(context.answers)
    right, unseen = cross_fitted(rows, labels, groups)
    chances, about_questions = iter(unseen), list[dict[str, float]]()
    ambiguous, answerable = list[float](), list[float]()
    for question, context in contexts:
        about = features.of_question(context, [next(chances) for _ in context.answers])
        about_questions.append(about)
        ambiguous.append(float(question.is_ambiguous))
        answerable.append(float(any(is_right(answer, question) for answer in context.answers)))
    several, any_ = (fit(about_questions, labels) for labels in (ambiguous, answerable))
    return Scorer(answer=right, ambiguous=several, answerable=any_)


def is_right(answer: Answer, question: Question) -> bool:
    """Whether a candidate, in any of its forms, is a gold answer as the official scripts compare them."""
    gold = {normalize(name) for names in question.answers for name in names}
    return any(normalize(text) in gold for text in (answer.text, *(mention.surface for mention in answer.mentions)))


def scenes(
    compact: Compact, sources: Sequence[Source], progress: Progress = silent
) -> Iterator[tuple[Question, Scene]]:
    """Every question, read."""
    asked = [(source, question) for source in sources for question in source.questions]
    for number, (source, question) in enumerate(asked, 1):
        hits = source.index.search(question.text, DEPTH, source.method)
        yield question, compact.scene(question.text, hits, keep=compact.settings.keep)
        progress(number / len(asked), number)


def _kept(scene: Scene) -> Context:
    """What features are made of. Encoder states are let go: 25 MB a question."""
    nothing = np.zeros(0, np.float32)
    read = tuple(replace(one, states=nothing, span=nothing) for one in scene.evidence.read)
    return replace(scene.context, evidence=replace(scene.evidence, read=read))
