"""Topics that were written to learn from: a few passages each, and questions with every answer that these give.

Those that ship were written by a language model, which went through a topic's passages for each question: what else
stands in them is wrong. Other datasets know one answer to most questions, whatever a passage says besides.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from whichsense.datasets import Annotation, AnnotationKind, QAPair, Question
from whichsense.errors import BadConfig
from whichsense.train.compact.data.corpora import Source, corpus_of
from whichsense.train.compact.data.lists import ANSWERS, Cutter, Span
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.questions import (
    TOPICS_FIX,
    Asked,
    Data,
    copies,
    is_held,
)
from whichsense.types import Passage

SOURCE = "topics"
_HELD = 5  # every so many-th topic is not learnt from: the scorer is fitted on them
_CORPORA = (30, 60, 100)  # topics of a corpus
_SLOTS = 24  # of a list
Record = TypeVar("Record")


@dataclass(frozen=True)
class Topics:
    """Some topics: their passages and questions, whose ids are a topic's name, a dash, and anything without one."""

    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]

    @classmethod
    def read(cls, passages: Path, questions: Path) -> Topics:
        return cls(tuple(_read(passages, _passage)), tuple(_read(questions, _question)))

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(topic_of(one.id) for one in self.passages))

    def only(self, names: Sequence[str]) -> Topics:
        wanted = set(names)
        return Topics(
            tuple(one for one in self.passages if topic_of(one.id) in wanted),
            tuple(one for one in self.questions if topic_of(one.id) in wanted),
        )

    def corpora(self, seed: int = 5) -> Iterator[Source]:
        """Small corpora of some topics each, with the questions that they answer or do not."""
        luck = random.Random(seed)
        names = luck.sample(self.names, len(self.names))
        while True:
            size = luck.choice(_CORPORA)
            some, names = self.only(names[:size]), names[size:]
            if not some.passages:
                return
            yield Source(corpus_of(some.passages), some.questions)


def topic_of(name: str) -> str:
    """The topic that a passage or a question belongs to.

    >>> topic_of("stanley-cup-q3")
    'stanley-cup'
    """
    return name.rpartition("-")[0]


def lists_of(sources: Iterable[Source], vocabulary: Sequence[str]) -> Pack:
    """Each question with the first passages of a search; answers stand in those of its own topic alone."""
    cutter = Cutter(vocabulary)
    slots: list[list[int]] = []
    spans: list[list[Span]] = []
    asked: list[Asked] = []
    for source in sources:
        for question in source.questions:
            aliases = [cutter.aliases(names) for names in question.answers[:ANSWERS]]
            found = [
                hit.passage
                for hit in source.index.search(question.text, _SLOTS, source.method)
            ]
            slots.append([cutter.row(one.title, one.text) for one in found])
            for one in found:
                own = topic_of(one.id) == topic_of(question.id)
                spans.append(cutter.spans(one.title, one.text, aliases) if own else [])
            asked.append(Asked(question.text, SOURCE, question.answers, complete=True))
    return cutter.pack(asked, slots, spans)


def parted(data: Data) -> tuple[Topics, Topics]:
    """The topics of `data.topics` to learn from, and those held out; questions kept for measuring are left out."""
    every = Topics.read(*data.topic_files)
    repeated = copies([one.text for one in every.questions], data)
    asked = tuple(
        one for number, one in enumerate(every.questions) if number not in repeated
    )
    every = replace(every, questions=asked)
    names = every.names[: data.limit or None]
    held = [name for name in names if is_held(name, _HELD)]
    learnt = every.only([name for name in names if not is_held(name, _HELD)])
    if not learnt.questions:
        raise BadConfig(
            f"data.topics: '{data.topics}' has no topic to learn from: one in {_HELD}, by a hash of its name, is held "
            "out for the scorer. Write more topics. An id is a topic's name, a dash, and a number."
        )
    return learnt, every.only(held)


def _passage(row: dict[str, Any]) -> Passage:
    return Passage(row["id"], row["title"], row["text"])


def _question(row: dict[str, Any]) -> Question:
    pairs = tuple(QAPair(tuple(names)) for names in row["answers"])
    kind: AnnotationKind = "singleAnswer" if len(pairs) == 1 else "multipleQAs"
    return Question(
        row["id"], row["question"], (Annotation(kind, pairs),) if pairs else ()
    )


def _read(path: Path, record: Callable[[dict[str, Any]], Record]) -> Iterator[Record]:
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                yield record(json.loads(line))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadConfig(
            f"data.topics: '{path}' cannot be read ({error!r}). {TOPICS_FIX}"
        ) from None
