"""Corpora that the scorer is fitted on: an index, small corpora cut out of it, half of the embedded sample.

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
_UNANSWERED = 0.15  # how often a question's answers are left out of a small corpus
_OTHER_PASSAGES = 4  # of a question, at most
_ANSWERS = 6


@dataclass(frozen=True)
class CorpusQuestions:
    """Questions, and the corpus that they are asked over."""

    index: Index
    questions: Sequence[Question]
    method: Method | None = None

    def search(self, text: str, depth: int) -> list[Passage]:
        hits = self.index.search(text, depth, self.method)
        return [hit.passage for hit in hits]


def training_half_of_sample() -> CorpusQuestions:
    """The topics of the embedded sample that may be learnt from; figures are reported on the others."""
    questions = []
    for name in ("questions", "unanswerable"):
        for question in load_questions(f"sample/{name}")[0]:
            if is_trained_on(question.id):
                questions.append(question)
    return CorpusQuestions(sample.index(), questions)


def small_corpora(large: CorpusQuestions, seed: int = 7) -> Iterator[CorpusQuestions]:
    """The same questions over small corpora: a few passages of each question, some without its answers."""
    rng = random.Random(seed)
    chosen = []
    for question in rng.sample(large.questions, len(large.questions)):
        passages = _choose_passages(question, large, rng)
        if passages:
            chosen.append((question, passages))
    for start in range(0, len(chosen), _QUESTIONS):
        part = chosen[start : start + _QUESTIONS]
        corpus: dict[str, Passage] = {}
        questions = []
        for question, passages in part:
            for passage in passages:
                corpus[passage.id] = passage
            questions.append(_restrict_answers(question, passages))
        yield CorpusQuestions(build_corpus(corpus.values()), questions)


def build_corpus(passages: Iterable[Passage]) -> Index:
    """A small index of these passages, in memory."""
    records = []
    for passage in passages:
        record = {"id": passage.id, "title": passage.title, "text": passage.text}
        records.append(record)
    return Index.of(records)


def _choose_passages(
    question: Question, large: CorpusQuestions, rng: random.Random
) -> list[Passage]:
    """Passages with the question's answers and a few others; sometimes only others. None if no answer is found."""
    passages = large.search(question.text, DEPTH)
    by_answer = []
    positive_ids: set[str] = set()
    for names in question.answers:
        holding = []
        for passage in passages:
            if contains_answer(passage, names):
                holding.append(passage)
                positive_ids.add(passage.id)
        if holding:
            by_answer.append(holding)
    if not by_answer:
        return []
    if rng.random() < _UNANSWERED:
        negatives = [one for one in passages if one.id not in positive_ids]
        return negatives[:_OTHER_PASSAGES]
    chosen = passages[: rng.randint(1, _OTHER_PASSAGES)]
    for holding in by_answer[:_ANSWERS]:
        chosen += holding[: rng.randint(1, 2)]
    return chosen


def _restrict_answers(question: Question, passages: Sequence[Passage]) -> Question:
    """The question with only those answers that the passages hold."""
    annotations = []
    for annotation in question.annotations:
        pairs = []
        for pair in annotation.pairs:
            if any(contains_answer(one, pair.answers) for one in passages):
                pairs.append(pair)
        if pairs:
            kind = annotation.kind if len(pairs) > 1 else "singleAnswer"
            annotations.append(Annotation(kind, tuple(pairs)))
    return replace(question, annotations=tuple(annotations))


def contains_answer(passage: Passage, names: Sequence[str]) -> bool:
    """Whether a passage holds an answer, by one of its names."""
    text = f" {normalize(f'{passage.title} {passage.text}')} "
    for name in map(normalize, names):
        if name and f" {name} " in text:
            return True
    return False
