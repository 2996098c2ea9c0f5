"""All examples of the support judge, by what a recipe's `[data]` names."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from whichsense import sample
from whichsense.datasets import (
    FeedbackQuestion,
    GroundedLongQuestion,
    GroundedQuestion,
    LongQuestion,
    Question,
    load,
    locate_questions,
)
from whichsense.errors import BadConfig
from whichsense.index import Index
from whichsense.jobs.progress import Progress, silent
from whichsense.train.compact.data.config import DataConfig
from whichsense.train.compact.data.topics import Topics
from whichsense.train.compact.support.examples import (
    SupportExample,
    load_examples,
    save_examples,
)
from whichsense.train.compact.support.from_answers import (
    feedback_examples,
    grounded_answer_examples,
    long_answer_examples,
)
from whichsense.train.compact.support.from_passages import (
    neighbour_examples,
    passage_examples,
)
from whichsense.train.compact.support.from_questions import (
    grounded_examples,
    topic_examples,
)

_QuestionT = TypeVar("_QuestionT", bound=Question)
_SEED = 25


@dataclass(frozen=True, slots=True)
class SupportData:
    """A recipe's `[data]`: what examples are made of."""

    train: str = ""
    """A dataset of long answers with their passages."""
    dev: str = ""
    """A dataset of model answers with people's marks: the nets over the network's output are fitted on it."""
    topics: tuple[str, ...] = ("topics", "documents")
    """Folders with topics, or names of those that ship."""
    grounded: tuple[str, ...] = ()
    """Datasets of questions with the passage that answers them."""
    grounded_answers: str = ""
    """A dataset of long answers that are composed of their passages."""
    index: str = ""
    """The folder of an index whose passages are learnt from; empty: the embedded sample."""
    passages: int = 16_000
    """Passages of the index whose sentences are learnt from."""
    searched: int = 8_000
    """Passages of the index for whose sentences others are searched."""
    without: tuple[str, ...] = ()
    """Datasets whose questions, and near copies of them, must not be learnt from."""
    folder: str = ""
    """The folder of the datasets, if it is not where `whichsense data` looks."""
    examples: str = ""
    """The file that keeps all examples, once they are built; empty: none."""
    limit: int = 0
    """Use only so many records of each kind; 0: all."""
    dev_limit: int = 0

    def paths(self) -> list[Path]:
        """The files whose checksums a run records: all examples if they are kept, else what they are made of."""
        if self.examples:
            file = Path(self.examples)
            kept = [file, file.with_suffix(".npz")]
            return [one for one in kept if one.exists()]
        files = DataConfig(topics=self.topics).topic_files
        names = (*self.grounded, self.train, self.dev, self.grounded_answers)
        for name in filter(None, names):
            files.append(locate_questions(name, self.folder or None))
        manifest = Path(self.index) / "manifest.json"
        return [*files, manifest if self.index else sample.PASSAGES]


def read_examples(
    data: SupportData, progress: Progress = silent
) -> list[SupportExample]:
    """The examples, of their file or built."""
    file = Path(data.examples) if data.examples else None
    if file and file.exists():
        return list(load_examples(file))
    examples = list(_build(data, progress))
    if not examples:
        raise BadConfig(
            "data: nothing to learn from. Name topics, datasets or an index."
        )
    if file:
        save_examples(examples, file)
    return examples


def _build(data: SupportData, progress: Progress) -> Iterator[SupportExample]:
    rng = random.Random(_SEED)
    topics = Topics.read(DataConfig(topics=data.topics).topic_folders)
    if data.limit:
        topics = topics.only(topics.names[: data.limit])
    yield from topic_examples(topics, rng)
    for name in data.grounded:
        questions = _load(name, GroundedQuestion, data)
        yield from grounded_examples(questions, name, rng)
    if data.dev:
        judged = _load(data.dev, FeedbackQuestion, data)
        yield from feedback_examples(judged[: data.dev_limit or None])
    if data.train:
        answers = _load(data.train, LongQuestion, data)
        yield from long_answer_examples(answers, rng)
    if data.grounded_answers:
        composed = _load(data.grounded_answers, GroundedLongQuestion, data)
        yield from grounded_answer_examples(composed, rng)
    yield from _passage_examples(data, rng, progress)


def _load(name: str, kind: type[_QuestionT], data: SupportData) -> list[_QuestionT]:
    questions = load(name, kind, data_dir=data.folder or None, without=data.without)
    return list(questions)[: data.limit or None]


def _passage_examples(
    data: SupportData, rng: random.Random, progress: Progress
) -> Iterator[SupportExample]:
    index = Index.open(Path(data.index)) if data.index else sample.index()
    rows = index.manifest.next_row
    count = min(data.passages, rows, data.limit or rows)
    passages = index.at(sorted(rng.sample(range(rows), count)))
    for number, passage in enumerate(passages):
        yield from passage_examples(passage, rng)
        if number < data.searched:
            yield from neighbour_examples(passage, index, rng)
        progress((number + 1) / count, number + 1)
