"""Topics whose gold answers are complete, as corpora and as lists."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from whichsense.errors import BadConfig, BadInput
from whichsense.files import read_bytes
from whichsense.lab.compact.lists import ListBuilder, Pack
from whichsense.lab.compact.questions import (
    REWRITE_FILES,
    TOPICS_FIX,
    CorpusQuestions,
    DataConfig,
    GoldRewrite,
    TrainingQuestion,
    build_corpus,
    find_copies,
    is_held_out,
)
from whichsense.lab.datasets import Annotation, QAPair, Question
from whichsense.types import Passage, frozen

SOURCE = "topics"
_HELD_OUT = 5  # one topic in so many is held out: the scorer is fitted on them
_CORPUS_SIZES = (30, 60, 100)  # topics
_SLOTS = 24  # of a list
Row = TypeVar("Row")


@frozen
class TopicRewrite:
    """A rewrite of a topic's question for one of its answers."""

    question: str
    answer: int
    """The number of the answer, from 0 on."""
    kind: str = ""
    """The way in which it is false; empty: it is true."""
    passage: str = ""
    support: str = ""
    """What the passage says of it."""


@frozen
class JudgedRewrite:
    """A rewrite that a model proposed for an answer, and a reader's marks."""

    id: str
    """Of the question."""
    question: str
    answer: str
    rewrite: str
    true: bool
    """Whether the answer is right, and the rewrite is true of it and of no other."""
    fluent: bool


@dataclass(frozen=True)
class Topics:
    """Passages and questions, whose ids are a topic's name, a dash, and anything without a dash."""

    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]
    rewrites: Mapping[str, tuple[TopicRewrite, ...]] = field(default_factory=dict)
    """By the question's id: true ones and false ones."""
    judged: tuple[JudgedRewrite, ...] = ()

    @classmethod
    def read(cls, folders: Iterable[Path]) -> Topics:
        """Return all topics of some folders. Questions about relations and rewrites are read where there are any."""
        passages: list[Passage] = []
        questions: list[Question] = []
        rewrites: dict[str, tuple[TopicRewrite, ...]] = {}
        judged: list[JudgedRewrite] = []
        for folder in folders:
            passages += _read(folder / "passages.jsonl", _parse_passage)
            questions += _read(folder / "questions.jsonl", _parse_question)
            if (folder / "relations.jsonl").exists():
                questions += _read(folder / "relations.jsonl", _parse_question)
            for name in REWRITE_FILES:
                if (folder / name).exists():
                    rewrites |= dict(_read(folder / name, _parse_rewrites))
            if (folder / "judged.jsonl").exists():
                judged += _read(folder / "judged.jsonl", _parse_judged)
        return cls(tuple(passages), tuple(questions), rewrites, tuple(judged))

    @property
    def names(self) -> list[str]:
        """Each once, in the order of the passages."""
        names: dict[str, None] = {topic_of(passage.id): None for passage in self.passages}
        return list(names)

    def passages_of(self, question_id: str) -> list[Passage]:
        """Return all passages of a question's topic."""
        topic = topic_of(question_id)
        return [one for one in self.passages if topic_of(one.id) == topic]

    def only(self, names: Collection[str]) -> Topics:
        names = set(names)
        passages = [passage for passage in self.passages if topic_of(passage.id) in names]
        questions = [question for question in self.questions if topic_of(question.id) in names]
        judged = [rewrite for rewrite in self.judged if topic_of(rewrite.id) in names]
        return Topics(tuple(passages), tuple(questions), self.rewrites, tuple(judged))

    def corpora(self, seed: int = 5) -> Iterator[CorpusQuestions]:
        """Yield small corpora of some topics each, with the questions of these topics."""
        rng = random.Random(seed)
        # Shuffled: topics that were written one after another may be alike.
        names = rng.sample(self.names, len(self.names))
        while True:
            size = rng.choice(_CORPUS_SIZES)
            topics, names = self.only(names[:size]), names[size:]
            if not topics.passages:
                return
            yield CorpusQuestions(build_corpus(topics.passages), topics.questions)


def topic_of(name: str) -> str:
    """Return the topic that a passage or a question belongs to.

    >>> topic_of("stanley-cup-q3")
    'stanley-cup'
    """
    return name.rpartition("-")[0]


def build_topic_lists(topics: Topics, vocabulary: Sequence[str]) -> Pack:
    """Build a list of each question with the first passages of a search; answers are marked only in passages of its own
    topic."""
    builder = ListBuilder(vocabulary)
    for corpus in topics.corpora():
        for question in corpus.questions:
            asked = TrainingQuestion(
                question.text,
                SOURCE,
                question.answers,
                tuple(_gold_rewrites(question, topics.rewrites.get(question.id, ()))),
                complete=True,
            )
            own = {passage.id for passage in topics.passages_of(question.id)}
            builder.add_marked(asked, corpus.search(question.text, _SLOTS), own)
    return builder.build()


def _gold_rewrites(question: Question, rewrites: Sequence[TopicRewrite]) -> Iterator[GoldRewrite]:
    """Yield the true rewrites of a question, each beside the question's other answers."""
    if not question.annotations:
        return
    answers = question.annotations[0].answers
    for rewrite in rewrites:
        if rewrite.kind:
            continue
        others = [aliases[0] for number, aliases in enumerate(answers) if number != rewrite.answer]
        yield GoldRewrite((rewrite.question,), answers[rewrite.answer], tuple(others))


def split_topics(data: DataConfig) -> tuple[Topics, Topics]:
    """Return the topics of `data.topics` to train on, and those held out; without questions reserved for measuring."""
    topics = Topics.read(data.topic_folders)
    copies = find_copies([one.text for one in topics.questions], data)
    questions = [
        question for number, question in enumerate(topics.questions) if number not in copies
    ]
    topics = replace(topics, questions=tuple(questions))
    # What readers judged is learnt from: a model that had learnt a topic would have proposed nothing new for it.
    judged = {topic_of(rewrite.id) for rewrite in topics.judged}
    learnt = []
    held_out = []
    for name in topics.names:
        if is_held_out(name, _HELD_OUT) and name not in judged:
            held_out.append(name)
        else:
            learnt.append(name)
    # Of a few topics one in five is held out, too.
    if data.limit:
        few = max(1, data.limit // _HELD_OUT)
        learnt = learnt[: data.limit - few]
        held_out = held_out[:few]
    train = topics.only(learnt)
    if not train.questions:
        raise BadConfig(
            f"data.topics: '{data.topics}' has no topic to learn from: one in {_HELD_OUT}, by a hash of its name, is "
            "held out for the scorer. Write more topics. An id is a topic's name, a dash, and a number."
        )
    return train, topics.only(held_out)


def _parse_passage(row: dict[str, Any]) -> Passage:
    return Passage(row["id"], row["title"], row["text"])


def _parse_question(row: dict[str, Any]) -> Question:
    pairs = tuple(QAPair(tuple(names)) for names in row["answers"])
    annotations: tuple[Annotation, ...] = ()
    if len(pairs) == 1:
        annotations = (Annotation("singleAnswer", pairs),)
    elif pairs:
        annotations = (Annotation("multipleQAs", pairs),)
    return Question(row["id"], row["question"], annotations)


def _parse_rewrites(row: dict[str, Any]) -> tuple[str, tuple[TopicRewrite, ...]]:
    rewrites = [
        TopicRewrite(
            line["question"],
            line["answer"],
            line.get("kind", ""),
            line.get("passage", ""),
            line.get("support", ""),
        )
        for line in (*row["true"], *row["false"])
    ]
    return row["id"], tuple(rewrites)


def _parse_judged(row: dict[str, Any]) -> JudgedRewrite:
    marks = [bool(row[name]) for name in ("right", "true", "apart")]
    return JudgedRewrite(
        row["id"],
        row["question"],
        row["answer"],
        row["rewrite"],
        true=all(marks),
        fluent=bool(row["fluent"]),
    )


def _read(path: Path, parse: Callable[[dict[str, Any]], Row]) -> Iterator[Row]:
    try:
        for line in read_bytes(path).splitlines():
            yield parse(json.loads(line))
    except (OSError, ValueError, KeyError, TypeError, BadInput) as error:
        raise BadConfig(f"data.topics: '{path}' cannot be read ({error!r}). {TOPICS_FIX}") from None
