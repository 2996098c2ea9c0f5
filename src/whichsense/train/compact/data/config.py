"""What the recipes of the compact model say of their data: `[data]` and `[lists]`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from whichsense import sample
from whichsense.datasets import Question, load_questions, locate_questions
from whichsense.errors import BadConfig
from whichsense.train.recipes.files import HOMES
from whichsense.types import Method

TOPICS_FIX = "Give a folder with both files as recipes/topics has them, or 'topics' or 'documents', which ship."
_TOPIC_FILES = ("passages.jsonl", "questions.jsonl")
REWRITE_FILES = ("rewrites.jsonl", "rewrites.jsonl.xz")
_MORE_TOPIC_FILES = ("relations.jsonl", *REWRITE_FILES, "judged.jsonl", "trust.jsonl")


@dataclass(frozen=True, slots=True)
class DataConfig:
    """A recipe's `[data]`: the questions, and the index whose passages they are read with."""

    train: str = "ambignq/train"
    """Questions with rewrites: a dataset by name, or a file in AmbigNQ's form; so is `dev`."""
    more: tuple[str, ...] = ()
    """Other datasets, the preferred ones first: a question that an earlier one has is left out."""
    dev: str = "ambignq/val"
    without: tuple[str, ...] = ()
    """Datasets whose questions and rewrites, and near copies of them, must not be learnt from."""
    held: int = 0
    """Every so many-th question of `train`, by a hash of its id, is held out: the scorer is fitted on them."""
    weights: dict[str, float] = field(default_factory=dict)
    """How often questions are drawn, by a prefix of the dataset's name; 1 for all others. Rewrites that are asked as
    questions have the prefix `rewrites of `."""
    topics: str | tuple[str, ...] = ()
    """Folders with topics whose gold answers are complete (`topics.py`), or names of those that ship with the
    recipes: compact-topics learns from most topics, and the scorer is fitted on the others, too."""
    index: str = ""
    """The folder of an index; empty: the embedded sample."""
    hits: str | tuple[str, ...] = ()
    """In place of an index: a file, or several, with the hits of all questions (`whichsense retrieve`)."""
    method: Method | None = None
    folder: str = ""
    """The folder of the datasets, if it is not where `whichsense data` looks."""
    limit: int = 0
    """Use only so many questions of each dataset, and so many topics; 0: all."""
    dev_limit: int = 0

    def paths(self) -> list[Path]:
        """The files whose checksums a run records: the questions, and the hits or the index's manifest."""
        # A dataset may serve twice; its checksum is recorded once.
        names = dict.fromkeys([self.train, *self.more, self.dev])
        files = []
        for name in names:
            files.append(locate_questions(name, self.folder or None))
        # Hits take the place of an index.
        if self.hit_files:
            return files + self.hit_files
        if self.index:
            return [*files, Path(self.index) / "manifest.json"]
        return [*files, sample.PASSAGES]

    @property
    def topic_folders(self) -> list[Path]:
        """The folders of `topics`. Raise BadConfig for one without passages and questions."""
        names = [self.topics] if isinstance(self.topics, str) else self.topics
        return [_find_topics(name) for name in names if name]

    @property
    def topic_files(self) -> list[Path]:
        """All files of `topics`."""
        files = []
        for folder in self.topic_folders:
            for name in (*_TOPIC_FILES, *_MORE_TOPIC_FILES):
                if (folder / name).is_file():
                    files.append(folder / name)
        return files

    @property
    def hit_files(self) -> list[Path]:
        names = [self.hits] if isinstance(self.hits, str) else self.hits
        return [Path(name) for name in names if name]

    def read(self, name: str) -> list[Question]:
        """The questions of a dataset or a file."""
        return load_questions(name, self.folder or None)[0]


def _find_topics(name: str) -> Path:
    # A folder of one's own comes first, then those of the recipes.
    for home in (Path(), *HOMES):
        folder = home / name
        if all((folder / file).is_file() for file in _TOPIC_FILES):
            return folder
    raise BadConfig(
        f"data.topics: '{name}' lacks {' or '.join(_TOPIC_FILES)}. {TOPICS_FIX}"
    )


@dataclass(frozen=True, slots=True)
class ListConfig:
    """A recipe's `[lists]`: the passages of each question."""

    folder: str = ""
    """Where lists are stored, for all recipes that learn from them; empty: nowhere."""
    depth: int = 64
    """Hits that passages are chosen from."""
    passages: int = 20
    """Passages of a list to train on."""
    measured: int = 24
    """Passages of a list to evaluate on: the first hits."""
    processes: int = 16
    """Processes that build lists which are stored in a folder: at most one a core, on Linux."""
    part: int = 1000
    """Questions in one file of the folder: what a stop loses at most."""
