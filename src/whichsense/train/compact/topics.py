"""Topics that were written to learn from: a few passages each, and questions with every answer that these give.

Whoever wrote a question went through its topic's passages: what else stands in them is wrong, and so is a second answer
that was left out. Other datasets know one answer to most questions, whatever a passage says besides.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whichsense.datasets import Annotation, QAPair, Question
from whichsense.datasets.records import AnnotationKind
from whichsense.errors import BadConfig
from whichsense.train.compact.corpora import DEPTH, Source, corpus_of
from whichsense.train.compact.lists import ANSWERS, Cutter, Span
from whichsense.train.compact.pack import Pack
from whichsense.train.compact.questions import Asked, Data
from whichsense.train.recipe import HOMES
from whichsense.types import Passage

PASSAGES, QUESTIONS = "passages.jsonl", "questions.jsonl"
SOURCE = "topics"
_HELD = 5  # every so many-th topic is not learnt from: the scorer is fitted on them
_CORPORA = (30, 60, 100)  # topics of a corpus
_SLOTS = 24  # of a list


@dataclass(frozen=True)
class Topics:
    """Some topics: their passages and questions, each with a topic's name in front of its id."""

    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]

    @classmethod
    def read(cls, folder: Path) -> Topics:
        passages = tuple(Passage(row["id"], row["title"], row["text"]) for row in _rows(folder / PASSAGES))
        return cls(passages, tuple(_question(row) for row in _rows(folder / QUESTIONS)))

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(topic_of(one.id) for one in self.passages))

    def only(self, names: Sequence[str]) -> Topics:
        wanted = set(names)
        return Topics(
            tuple(one for one in self.passages if topic_of(one.id) in wanted),
            tuple(one for one in self.questions if topic_of(one.id) in wanted),
        )

    def corpora(self, folder: Path, seed: int = 5) -> Iterator[Source]:
        """Small corpora of some topics each, with the questions that they answer or do not."""
        folder.mkdir(parents=True, exist_ok=True)
        luck = random.Random(seed)
        names = luck.sample(self.names, len(self.names))
        while names:
            size = luck.choice(_CORPORA)
            some, names = self.only(names[:size]), names[size:]
            yield Source(corpus_of(some.passages, folder / str(len(names))), some.questions)


def topic_of(name: str) -> str:
    """The topic that a passage or a question belongs to.

    >>> topic_of("stanley-cup-q3")
    'stanley-cup'
    """
    return name.rpartition("-")[0]


def is_held(topic: str) -> bool:
    return int(hashlib.md5(topic.encode(), usedforsecurity=False).hexdigest(), 16) % _HELD == 0


def lists_of(sources: Iterable[Source], vocabulary: Sequence[str]) -> Pack:
    """Each question with the first passages of a search; answers stand in those of its own topic alone."""
    cutter = Cutter(vocabulary)
    slots: list[list[int]] = []
    spans: list[list[Span]] = []
    asked: list[Asked] = []
    for source in sources:
        for question in source.questions:
            aliases = [cutter.aliases(names) for names in question.answers[:ANSWERS]]
            found = [hit.passage for hit in source.index.search(question.text, DEPTH)[:_SLOTS]]
            slots.append([cutter.row(one.title, one.text) for one in found])
            for one in found:
                own = topic_of(one.id) == topic_of(question.id)
                spans.append(cutter.spans(one.title, one.text, aliases) if own else [])
            asked.append(Asked(question.text, SOURCE, question.answers, complete=True))
    return cutter.pack(asked, slots, spans)


def parted(data: Data) -> tuple[Topics, Topics]:
    """The topics of `data.topics` to learn from, and those that are held out."""
    every = Topics.read(located(data.topics))
    some = every.only(every.names[: data.limit or None])
    held = [name for name in some.names if is_held(name)]
    return some.only([name for name in some.names if not is_held(name)]), some.only(held)


def located(name: str) -> Path:
    """A folder, or, by its name, one that ships with the recipes."""
    homes = [Path(name), *(home / name for home in HOMES)]
    found = next((home for home in homes if (home / QUESTIONS).is_file()), None)
    if found is None:
        raise BadConfig(f"data.topics: there is no '{Path(name) / QUESTIONS}', nor topics of that name that ship.")
    return found


def _question(row: dict[str, Any]) -> Question:
    pairs = tuple(QAPair(tuple(names)) for names in row["answers"])
    kind: AnnotationKind = "singleAnswer" if len(pairs) == 1 else "multipleQAs"
    return Question(row["id"], row["question"], (Annotation(kind, pairs),) if pairs else ())


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
    except (OSError, ValueError) as error:
        raise BadConfig(f"data.topics: '{path}' cannot be read: {error}") from None
