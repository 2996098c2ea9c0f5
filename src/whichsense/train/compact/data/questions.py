"""Which questions are trained on, which are for evaluation, and which are held out for the scorer."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from whichsense.datasets import Question, find_near_duplicates
from whichsense.errors import BadInput
from whichsense.text.words import words
from whichsense.train.compact.data.config import DataConfig
from whichsense.train.compact.data.conversion import (
    TrainingQuestion,
    convert,
    convert_ambiguous,
    convert_rewrites,
)

_FEWEST_WORDS = 3


def training_questions(data: DataConfig) -> list[TrainingQuestion]:
    """All questions to train on, each once, without near copies of those that are reserved for measuring."""
    learnable, reserved = _split_train(data)
    by_words: dict[str, TrainingQuestion] = {}
    for question in _convert_all(data, learnable):
        question_words = words(question.text)
        # One or two words are not a question.
        if len(question_words) >= _FEWEST_WORDS:
            # The first dataset that asks a question keeps it.
            by_words.setdefault(" ".join(question_words), question)
    unique = list(by_words.values())
    copies = _find_copies([one.text for one in unique], reserved)
    usable = []
    for number, question in enumerate(unique):
        if number not in copies:
            usable.append(question)
    if not usable:
        raise BadInput(f"'{data.train}' has no question that could be learnt from.")
    return usable


def _convert_all(
    data: DataConfig, learnable: Sequence[Question]
) -> Iterator[TrainingQuestion]:
    """The preferred datasets first; rewrites are questions too."""
    train = learnable[: data.limit or None]
    for question in train:
        yield convert_ambiguous(question, data.train)
    yield from convert_rewrites(train, data.train)
    for name in data.more:
        yield from convert(data.read(name)[: data.limit or None], name)


def _split_train(data: DataConfig) -> tuple[list[Question], list[Question]]:
    """What of `train` may be learnt, and what is reserved: held-out questions and the datasets of `without`."""
    reserved = []
    for name in data.without:
        reserved += data.read(name)
    # `train` is read whole: which questions are held out depends on their ids alone.
    learnable = []
    for question in data.read(data.train):
        if is_held_out(question.id, data.held):
            reserved.append(question)
        else:
            learnable.append(question)
    return learnable, reserved


def _find_copies(texts: Sequence[str], reserved: Sequence[Question]) -> Collection[int]:
    reserved_texts = []
    for question in reserved:
        reserved_texts += wordings(question)
    return find_near_duplicates(texts, reserved_texts)


def find_copies(texts: Sequence[str], data: DataConfig) -> Collection[int]:
    """Which of these texts repeat, or nearly repeat, a question that is reserved for measuring."""
    return _find_copies(texts, _split_train(data)[1])


def dev_questions(data: DataConfig) -> list[TrainingQuestion]:
    """The answerable questions of `dev`."""
    questions = []
    for question in data.read(data.dev):
        if question.is_answerable:
            questions.append(convert_ambiguous(question, data.dev))
    return questions[: data.dev_limit or None]


def held_out_questions(data: DataConfig) -> list[Question]:
    """Those of `train` that nothing was learnt from: the scorer is fitted on them."""
    held_out = []
    for question in data.read(data.train):
        if is_held_out(question.id, data.held):
            held_out.append(question)
    return held_out


def labelled_questions(data: DataConfig) -> list[Question]:
    """Those of `train` that are learnt from: annotators labelled which of them are ambiguous."""
    used = training_questions(replace(data, more=()))
    texts = {question.text for question in used}
    learnable, _ = _split_train(data)
    return [question for question in learnable if question.text in texts]


def is_held_out(name: str, every: int) -> bool:
    """Whether a hash of the name falls on one in `every`; never for 0."""
    if not every:
        return False
    # A hash of the id is stable when a dataset gets more questions.
    digest = hashlib.md5(name.encode(), usedforsecurity=False)
    return int(digest.hexdigest(), 16) % every == 0


def is_trained_on(sample_id: str) -> bool:
    """Whether a question of the embedded sample is trained on: half of its topics, by a hash. Results use the others.

    >>> is_trained_on("dune-q1") == is_trained_on("dune-q2")
    True
    """
    topic = sample_id.rpartition("-")[0]
    return is_held_out(topic, 2)


def wordings(question: Question) -> list[str]:
    """A question and all its rewrites."""
    rewrites: dict[str, None] = {}
    for annotation in question.annotations:
        for pair in annotation.pairs:
            rewrites.update(dict.fromkeys(pair.questions))
    return [question.text, *rewrites]
