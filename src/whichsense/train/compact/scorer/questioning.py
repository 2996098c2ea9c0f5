"""The exported model is asked what it reads of every question that the scorer is fitted on.

It takes the longest of what is done without a GPU: processes share it, and what is told is kept part by part, so that a
stopped fit goes on.
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
from whichsense.errors import WhichsenseError
from whichsense.files import sha256, write_atomically
from whichsense.jobs.progress import Progress, silent
from whichsense.jobs.workers import run_forked, usable_processes
from whichsense.models.compact.scene import Compact, Scene
from whichsense.models.compact.scorer.scorer import Judge, Scorer, linear
from whichsense.models.compact.scorer.views import Context
from whichsense.train.compact.data.corpora import DEPTH, Source, holds
from whichsense.train.compact.data.lists import shareable
from whichsense.train.compact.scorer.choice import Judged
from whichsense.train.compact.scorer.judging import Kind, Read
from whichsense.version import __version__

_PART = 20  # questions in one file: what a stop loses at most, of each process
_PROCESSES = 16


@dataclass(frozen=True)
class Unfitted(Compact):
    """The model before it has a scorer: passages are weighed by the settings that a scorer has from the start."""

    @cached_property
    def scorer(self) -> Scorer:
        nothing = linear()
        judge = Judge(nothing, nothing)
        return Scorer(nothing, nothing, judge, judge)


@dataclass(frozen=True)
class Occasion:
    """A question, and the corpus that it is asked over."""

    kind: Kind
    source: Source
    question: Question


@dataclass
class Told:
    """What is kept of questions that were read."""

    read: list[Read] = field(default_factory=list)
    judged: Judged = field(default_factory=Judged)

    def add(self, one: Occasion, scene: Scene) -> None:
        if one.kind is Kind.LARGE:
            self.judged.add(scene, one.question)
        elif one.question.is_answerable:
            self.read.append(
                Read(
                    one.question,
                    _kept(without_answers(scene, one.question)),
                    Kind.EMPTIED,
                )
            )
        self.read.append(Read(one.question, _kept(scene), one.kind))

    def join(self, other: Told) -> None:
        self.read += other.read
        self.judged.join(other.judged)


def questioned(
    folder: Path, asked: Sequence[Occasion], place: Path, progress: Progress = silent
) -> Told:
    """What the model in `folder` reads of all of them. Parts are kept in `place`, and read if they are there."""
    work = _Questioning(folder, asked, place / _sign(folder, asked))
    work.place.mkdir(parents=True, exist_ok=True)
    count = -(-len(asked) // _PART)
    missing = [number for number in range(count) if not work.path(number).exists()]
    several = _PROCESSES if all(shareable(one.source.index) for one in asked) else 1
    for done, _ in enumerate(
        run_forked(several)(work.write, missing), count - len(missing) + 1
    ):
        progress(done / count, min(len(asked), done * _PART))
    found = Told()
    for number in range(count):
        found.join(_read(work.path(number)))
    return found


def _read(path: Path) -> Told:
    try:
        found = pickle.loads(path.read_bytes())
    except Exception as error:  # what is damaged may fail in any way
        path.unlink()
        raise WhichsenseError(
            f"'{path}' was damaged and is removed ({type(error).__name__}). Run the same command again: only the "
            f"{_PART} questions in it are read anew."
        ) from None
    assert isinstance(found, Told)
    return found


def _sign(folder: Path, asked: Sequence[Occasion]) -> str:
    """Of the model, the questions, the sizes of their corpora and the version: what was told of others is not read."""
    files = [sha256(path) for path in sorted(folder.glob("*.onnx"))]
    questions = [(one.kind.value, one.question.id, one.question.text) for one in asked]
    about = [
        __version__,
        _PART,
        files,
        questions,
        [len(one.source.index) for one in asked],
    ]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _Questioning:
    folder: Path
    asked: Sequence[Occasion]
    place: Path

    @cached_property
    def compact(self) -> Compact:
        """Of a process: each opens its own."""
        return Unfitted(
            self.folder, threads=1 if usable_processes(_PROCESSES) > 1 else 2
        )

    def path(self, number: int) -> Path:
        return self.place / f"{number:05d}.pickle"

    def write(self, number: int) -> None:
        found = Told()
        for one in self.asked[number * _PART : (number + 1) * _PART]:
            found.add(one, scene_of(self.compact, one.source, one.question))
        write_atomically(self.path(number), pickle.dumps(found))


def scene_of(compact: Compact, source: Source, question: Question) -> Scene:
    hits = source.index.search(question.text, DEPTH, source.method)
    return compact.read_search(question.text, hits)


def without_answers(scene: Scene, question: Question) -> Scene:
    """What would have been read had no passage held a gold answer."""
    held = [
        any(holds(one, names) for names in question.answers)
        for one in scene.evidence.passages
    ]
    return replace(
        scene,
        evidence=scene.evidence.only(
            [place for place, holding in enumerate(held) if not holding]
        ),
    )


def _kept(scene: Scene) -> Context:
    """What features are made of. Encoder states are let go: 25 MB a question."""
    nothing = np.zeros(0, np.float32)
    read = tuple(
        replace(one, states=nothing, span=nothing) for one in scene.evidence.read
    )
    return replace(scene.context, evidence=replace(scene.evidence, read=read))
