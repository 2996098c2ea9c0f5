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
from whichsense.models.compact.features import Context
from whichsense.models.compact.scorer import Judge, Scorer, linear
from whichsense.models.compact.system import Compact, Scene
from whichsense.progress import Progress, silent
from whichsense.train.compact.choice import Judged
from whichsense.train.compact.corpora import DEPTH, Source, half_of_the_sample, holds, small_corpora
from whichsense.train.compact.impression import fit_impression
from whichsense.train.compact.judging import Heard, Kind, Read, fitted
from whichsense.train.compact.topics import Topics
from whichsense.train.compact.wording import fit_wording

_FEWEST = 10


@dataclass(frozen=True)
class Unfitted(Compact):
    """The model before it has a scorer: passages are weighed by the settings that a scorer has from the start."""

    @cached_property
    def scorer(self) -> Scorer:
        nothing = linear()
        judge = Judge(nothing, nothing)
        return Scorer(nothing, nothing, judge, judge)


def fit_scorer(
    folder: Path,
    source: Source,
    progress: Progress = silent,
    *,
    learnt: Sequence[Question] = (),
    topics: Topics | None = None,
) -> Scorer:
    """For a model that has none yet: by questions over their index, over small corpora, the sample and topics.

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
        small = list(small_corpora(source, Path(corpora)))
        written = list(topics.corpora(Path(corpora, "topics"))) if topics else []
        kinds = [Kind.LARGE, Kind.SAMPLE, *([Kind.SMALL] * len(small)), *([Kind.TOPICS] * len(written))]
        sources = [source, half_of_the_sample(), *small, *written]
        each = [kind for kind, one in zip(kinds, sources, strict=True) for _ in one.questions]
        for kind, (question, scene) in zip(each, scenes(compact, sources, progress), strict=True):
            if kind is Kind.LARGE:
                judged.add(scene, question)
            elif question.is_answerable:
                read.append(Read(question, _kept(without_answers(scene, question)), Kind.EMPTIED))
            read.append(Read(question, _kept(scene), kind))
    found = fitted([one for one in read if one.context.answers], heard)
    return replace(found, rewrite=judged.net() or found.rewrite)


def without_answers(scene: Scene, question: Question) -> Scene:
    """What would have been read had no passage held a gold answer."""
    held = [any(holds(one, names) for names in question.answers) for one in scene.evidence.passages]
    return replace(scene, evidence=scene.evidence.only([place for place, holding in enumerate(held) if not holding]))


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
