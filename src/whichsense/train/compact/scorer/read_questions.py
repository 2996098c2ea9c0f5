"""The exported model reads every question that the scorer is fitted on.

It is the longest of the work without a GPU: processes share it, and results are stored part by part, so that a stopped
fit resumes.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from whichsense.datasets import Question
from whichsense.files import sha256
from whichsense.jobs.parts import Part, PartCodec, Parts
from whichsense.jobs.progress import Progress, silent
from whichsense.jobs.workers import run_forked, usable_processes
from whichsense.models.compact.scene import Compact, Scene
from whichsense.models.compact.scorer.scorer import Judge, Scorer, linear
from whichsense.models.compact.scorer.views import SceneView
from whichsense.train.compact.data.corpora import (
    DEPTH,
    CorpusQuestions,
    contains_answer,
)
from whichsense.train.compact.data.search import can_fork
from whichsense.train.compact.scorer.nets import CorpusKind, ReadQuestion
from whichsense.train.compact.scorer.rewrite_choice import RewriteData
from whichsense.version import __version__

_PROCESSES = 16


class UnfittedCompact(Compact):
    """The model before its scorer is fitted: passages are weighted by a scorer's default settings."""

    @cached_property
    def scorer(self) -> Scorer:
        # Nets without features: every probability is one half.
        nothing = linear()
        judge = Judge(nothing, nothing)
        return Scorer(nothing, nothing, judge, judge)


@dataclass(frozen=True)
class ScorerQuestion:
    """A question, and the corpus that it is asked over."""

    kind: CorpusKind
    corpus: CorpusQuestions
    question: Question


@dataclass
class ScorerData:
    """What the scorer is fitted on."""

    read: list[ReadQuestion] = field(default_factory=list)
    rewrites: RewriteData = field(default_factory=RewriteData)

    def add(self, asked: ScorerQuestion, scene: Scene) -> None:
        question = asked.question
        # The choice of rewrites is learnt over the large corpus alone.
        if asked.kind is CorpusKind.LARGE:
            self.rewrites.add(scene, question)
        elif question.is_answerable:
            context = _context(without_answers(scene, question))
            self.read.append(ReadQuestion(question, context, CorpusKind.EMPTIED))
        self.read.append(ReadQuestion(question, _context(scene), asked.kind))

    def extend(self, other: ScorerData) -> None:
        self.read += other.read
        self.rewrites.extend(other.rewrites)


@dataclass(frozen=True)
class QuestionReader:
    """Reads questions with the model of a folder. Each process loads its own."""

    folder: Path
    processes: int = _PROCESSES

    @cached_property
    def _compact(self) -> Compact:
        # Processes that share the cores need no threads.
        threads = 1 if usable_processes(self.processes) > 1 else 2
        return UnfittedCompact(self.folder, threads=threads)

    def scene(self, asked: ScorerQuestion) -> Scene:
        return read_scene(self._compact, asked.corpus, asked.question)

    def read(self, asked: Sequence[ScorerQuestion]) -> ScorerData:
        data = ScorerData()
        for one in asked:
            data.add(one, self.scene(one))
        return data


def read_questions(
    reader: QuestionReader,
    asked: Sequence[ScorerQuestion],
    folder: Path,
    progress: Progress = silent,
    *,
    part: int = 20,
) -> ScorerData:
    """Read all questions. Parts of `part` questions are stored in `folder`, and read if they are there."""
    fingerprint = _fingerprint(reader.folder, asked, part)
    body = json.dumps(fingerprint).encode()
    digest = hashlib.sha256(body).hexdigest()[:16]
    parts = Parts[ScorerQuestion, ScorerData](
        folder / digest,
        "questions",
        fingerprint,
        size=part,
        codec=PartCodec(".pickle", pickle.dumps, pickle.loads),
    )
    # One index that cannot be searched in a fork is enough to stay here.
    shareable = all(can_fork(one.corpus.index) for one in asked)

    def read_part(items: Part[ScorerQuestion]) -> ScorerData:
        return reader.read(items.items)

    parts.complete(
        asked,
        read_part,
        executor=run_forked(reader.processes if shareable else 1),
        progress=progress,
    )
    data = ScorerData()
    for result in parts:
        data.extend(result)
    return data


def _fingerprint(
    folder: Path, asked: Sequence[ScorerQuestion], part: int
) -> dict[str, object]:
    """The model, the questions, the sizes of their corpora and the version: results of others are not used."""
    questions = []
    for one in asked:
        question = one.question
        questions.append([one.kind.value, question.id, question.text])
    return {
        "version": __version__,
        "part": part,
        "model": [sha256(path) for path in sorted(folder.glob("*.onnx"))],
        "questions": questions,
        "corpora": [len(one.corpus.index) for one in asked],
    }


def read_scene(compact: Compact, corpus: CorpusQuestions, question: Question) -> Scene:
    hits = corpus.index.search(question.text, DEPTH, corpus.method)
    return compact.read_search(question.text, hits)


def without_answers(scene: Scene, question: Question) -> Scene:
    """The scene as if no passage that holds a gold answer had been found."""
    others = []
    for place, passage in enumerate(scene.evidence.passages):
        if not any(contains_answer(passage, names) for names in question.answers):
            others.append(place)
    return replace(scene, evidence=scene.evidence.only(others))


def _context(scene: Scene) -> SceneView:
    """What features are computed from. Encoder states, 25 MB a question, are dropped."""
    nothing = np.zeros(0, np.float32)
    read = []
    for passage in scene.evidence.read:
        read.append(replace(passage, states=nothing, span=nothing))
    evidence = replace(scene.evidence, read=tuple(read))
    return replace(scene.context, evidence=evidence)
