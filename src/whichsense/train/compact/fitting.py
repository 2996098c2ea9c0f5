"""The last step: the scorer, fitted by what the exported model says of questions that nothing was learnt from."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from whichsense.datasets import Question
from whichsense.errors import BadInput
from whichsense.models.compact import features
from whichsense.models.compact.candidates import Answer
from whichsense.models.compact.features import Context
from whichsense.models.compact.impression import Impression
from whichsense.models.compact.scorer import Judge, Net, Scorer, linear
from whichsense.models.compact.system import Compact, Scene
from whichsense.models.compact.wording import Wording
from whichsense.progress import Progress, silent
from whichsense.text import normalize
from whichsense.train.compact.choice import Judged
from whichsense.train.compact.corpora import DEPTH, Source, half_of_the_sample, small_corpora
from whichsense.train.compact.impression import fit_impression
from whichsense.train.compact.wording import fit_wording
from whichsense.train.compact_scorer import cross_fitted, fit

_FEWEST = 10
_HEARD = ("wording", "alone")  # features that come from the question, not from what was found
# In small corpora, chosen on the half of the sample that is learnt from; in large ones a judge's defaults, on val.
_SINGLE_UNDER, _MISSING = 0.4, 2.5


@dataclass(frozen=True)
class Unfitted(Compact):
    """The model before it has a scorer: passages are weighed by the settings that a scorer has from the start."""

    @cached_property
    def scorer(self) -> Scorer:
        nothing, judge = linear(), Judge(linear())
        return Scorer(nothing, nothing, nothing, judge, judge)


def fit_scorer(folder: Path, source: Source, progress: Progress = silent, *, learnt: Sequence[Question] = ()) -> Scorer:
    """For a model that has none yet: by questions over their index, over small corpora, and over the sample.

    What a question alone says of its ambiguity is taken from others, `learnt`, of which there are more.
    """
    if len(source.questions) < _FEWEST:
        raise BadInput(
            f"The scorer needs {_FEWEST} questions that nothing was learnt from; there are {len(source.questions)}. "
            "Lower data.held, which says how many are kept for it, and train again."
        )
    compact = Unfitted(folder)
    heard = Heard(fit_wording(learnt), fit_impression(compact, learnt, progress)) if learnt else Heard()
    read: list[Read] = []
    judged = Judged()
    with tempfile.TemporaryDirectory() as corpora:
        sources = [source, half_of_the_sample(), *small_corpora(source, Path(corpora))]
        for place, (question, scene) in enumerate(scenes(compact, sources, progress)):
            large = place < len(source.questions)
            if large:
                judged.add(scene, question)
            if scene.answers:
                read.append(Read(question, _kept(scene), large))
    found = fitted(read, heard)
    return replace(found, rewrite=judged.net() or found.rewrite)


@dataclass(frozen=True)
class Read:
    """A question, what was read of it, and whether in a large corpus."""

    question: Question
    context: Context
    large: bool


@dataclass(frozen=True)
class Heard:
    """What a question says of its ambiguity, whatever the evidence."""

    wording: Wording = field(default_factory=Wording)
    impression: Impression = field(default_factory=Impression)

    def __call__(self, one: Read) -> tuple[float, float]:
        return self.wording(one.question.text), self.impression(one.context.evidence.alone)


def fitted(read: Sequence[Read], heard: Heard) -> Scorer:
    """Nets for what a corpus is, whether a candidate is right, a question ambiguous, and an answer there at all.

    What tells right answers from wrong ones is the same everywhere. What is ambiguous in a large corpus is heard from
    the question: evidence adds nothing there that holds in another one. A small corpus answers what it happens to hold.
    """
    large = [one for one in read if one.large]
    right, about = _judged(read, heard)
    silent = [{name: value for name, value in row.items() if name not in _HEARD} for row in about]
    there = fit(silent, [float(any(is_right(answer, one.question) for answer in one.context.answers)) for one in read])
    return Scorer(
        right,
        there,
        fit([features.of_corpus(one.context) for one in read], [float(one.large) for one in read]),
        Judge(fit([dict(zip(_HEARD, heard(one), strict=True)) for one in large], _ambiguous(large))),
        Judge(fit(silent, _ambiguous(read)), _SINGLE_UNDER, _MISSING),
        wording=heard.wording,
        impression=heard.impression,
    )


def _judged(read: Sequence[Read], heard: Heard) -> tuple[Net, list[dict[str, float]]]:
    """A net for answers, and what is known of each question by such nets that have not seen it."""
    rows, labels, groups = list[dict[str, float]](), list[float](), list[int]()
    for group, one in enumerate(read):
        rows += [features.of_answer(place, one.context) for place in range(len(one.context.answers))]
        labels += [float(is_right(answer, one.question)) for answer in one.context.answers]
        groups += [group] * len(one.context.answers)
    right, unseen = cross_fitted(rows, labels, groups)
    chances, about = iter(unseen), list[dict[str, float]]()
    for one in read:
        own = [next(chances) for _ in one.context.answers]
        about.append(features.of_question(one.context, own, *heard(one)))
    return right, about


def _ambiguous(read: Sequence[Read]) -> list[float]:
    return [float(one.question.is_ambiguous) for one in read]


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
