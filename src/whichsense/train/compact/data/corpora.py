"""What the scorer is fitted on: questions over the index, over small corpora cut out of it, half of the sample, topics.

Answers are likelier in a few clear documents than in a large corpus, and a question without an answer looks different.
A scorer that has seen only one kind is wrong about the other.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from whichsense import sample
from whichsense.datasets import Annotation, Question, load_questions
from whichsense.index import Index
from whichsense.text.words import normalize
from whichsense.train.compact.data.questions import is_trained_on
from whichsense.types import Method, Passage

DEPTH = 40  # hits of a question, as when it is asked
_QUESTIONS = 90  # of a small corpus
_UNANSWERED = 0.15  # how often a question's answers are left out
_BESIDE = 4  # of its other passages, at most
_ANSWERS = 6


@dataclass(frozen=True)
class Source:
    """Questions, and the corpus that they are asked over."""

    index: Index
    questions: Sequence[Question]
    method: Method | None = None


def half_of_the_sample() -> Source:
    """The topics of the embedded sample that are learnt from; figures are of the others."""
    asked = [
        one
        for name in ("questions", "unanswerable")
        for one in load_questions(f"sample/{name}")[0]
    ]
    return Source(sample.index(), [one for one in asked if is_trained_on(one.id)])


def small_corpora(source: Source, seed: int = 7) -> Iterator[Source]:
    """The source's questions, each with a few passages of its own, among those of others; some without an answer."""
    luck = random.Random(seed)
    drawn = (
        (one, _own(one, source, luck))
        for one in luck.sample(source.questions, len(source.questions))
    )
    chosen = [(question, own) for question, own in drawn if own]
    for start in range(0, len(chosen), _QUESTIONS):
        some = chosen[start : start + _QUESTIONS]
        passages = {passage.id: passage for _, own in some for passage in own}
        asked = [_answered_by(question, own) for question, own in some]
        yield Source(corpus_of(passages.values()), asked)


def corpus_of(passages: Iterable[Passage]) -> Index:
    """A small index of its own, which is gone when nobody holds it."""
    records = []
    for passage in passages:
        record = {"id": passage.id, "title": passage.title, "text": passage.text}
        records.append(record)
    return Index.of(records)


def _own(question: Question, source: Source, luck: random.Random) -> list[Passage]:
    """Passages with its answers and a few others; only the others, if it is to be without an answer."""
    found = [
        hit.passage for hit in source.index.search(question.text, DEPTH, source.method)
    ]
    holding = [
        [one for one in found if holds(one, names)] for names in question.answers
    ]
    with_answers = {one.id for some in holding for one in some}
    if not with_answers:
        return []
    if luck.random() < _UNANSWERED:
        return [one for one in found if one.id not in with_answers][:_BESIDE]
    own = found[: luck.randint(1, _BESIDE)]
    for some in [some for some in holding if some][:_ANSWERS]:
        own += some[: luck.randint(1, 2)]
    return own


def _answered_by(question: Question, passages: Sequence[Passage]) -> Question:
    """With those of its answers alone that stand in the passages."""
    notes = []
    for note in question.annotations:
        pairs = tuple(
            pair
            for pair in note.pairs
            if any(holds(one, pair.answers) for one in passages)
        )
        if pairs:
            notes.append(
                Annotation(note.kind if len(pairs) > 1 else "singleAnswer", pairs)
            )
    return replace(question, annotations=tuple(notes))


def holds(passage: Passage, names: Sequence[str]) -> bool:
    """Whether an answer, by one of its names, stands in a passage."""
    text = f" {normalize(f'{passage.title} {passage.text}')} "
    return any(f" {name} " in text for name in map(normalize, names) if name)
