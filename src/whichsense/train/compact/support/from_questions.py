"""Examples from questions with answers: a statement for each answer, true or false by the passage."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whichsense.datasets import Context, GroundedQuestion
from whichsense.train.compact.data.corpora import contains_answer
from whichsense.train.compact.data.topics import Topics, topic_of
from whichsense.train.compact.support.examples import SupportExample
from whichsense.train.compact.support.rewording import join_sentences
from whichsense.train.compact.support.statements import state
from whichsense.train.compact.verifier.rewrite_lists import BROKEN, EMPTY
from whichsense.types import Passage

_AS_STATEMENT = (
    0.75  # how often a question is made a statement; else it is asked, and answered
)
_MOST_PASSAGES = 3  # of a topic, that hold an answer


def _claim(question: str, answer: str, rng: random.Random) -> str:
    if rng.random() < _AS_STATEMENT:
        return state(question, answer)
    return f"{question.rstrip('? ')}? {answer}."


@dataclass(frozen=True)
class _Topic:
    """The passages of a topic, and the answers to all its questions."""

    name: str
    passages: list[Passage]
    strings: list[str]

    def example(
        self, claim: str, names: Sequence[str], source: str, *, supported: bool
    ) -> Iterator[SupportExample]:
        """The claim beside all passages that hold its answer; none where they are none or too many."""
        holding = [one for one in self.passages if contains_answer(one, names)]
        if not holding or len(holding) > _MOST_PASSAGES:
            return
        first = holding[0]
        text = first.text
        for other in holding[1:]:
            text += f"\n{other.title}\n{other.text}"
        group = f"topic {self.name}"
        yield SupportExample(claim, first.title, text, supported, source, group)

    def beside(self, claim: str, names: Sequence[str]) -> Iterator[SupportExample]:
        """A true claim beside a passage of the topic that does not hold its answer."""
        for passage in self.passages:
            if not contains_answer(passage, names):
                group = f"topic {self.name}"
                yield SupportExample(
                    claim, passage.title, passage.text, False, "beside", group
                )
                return


def topic_examples(topics: Topics, rng: random.Random) -> Iterator[SupportExample]:
    """Statements of topics' questions and rewrites: true ones, false rewrites, and answers to other questions."""
    by_name = _read_topics(topics)
    for question in topics.questions:
        topic = by_name[topic_of(question.id)]
        answers = question.annotations[0].answers if question.annotations else ()
        for names in answers:
            claim = _claim(question.text, rng.choice(names), rng)
            yield from topic.example(claim, names, "question", supported=True)
            yield from topic.beside(claim, names)
        wrong = _wrong_answer(topic.strings, answers, rng)
        if wrong:
            claim = _claim(question.text, wrong, rng)
            yield from topic.example(claim, [wrong], "other answer", supported=False)
        for rewrite in topics.rewrites.get(question.id, ()):
            if rewrite.kind in (EMPTY, BROKEN):
                continue
            names = answers[rewrite.answer]
            claim = _claim(rewrite.question, names[0], rng)
            is_true = not rewrite.kind
            yield from topic.example(claim, names, "rewrite", supported=is_true)


def _read_topics(topics: Topics) -> dict[str, _Topic]:
    by_name: dict[str, _Topic] = {}
    for passage in topics.passages:
        name = topic_of(passage.id)
        by_name.setdefault(name, _Topic(name, [], [])).passages.append(passage)
    for question in topics.questions:
        for names in question.answers:
            by_name[topic_of(question.id)].strings.append(names[0])
    return by_name


def _wrong_answer(
    strings: Sequence[str], answers: Sequence[Sequence[str]], rng: random.Random
) -> str | None:
    """An answer to another question about the same that looks like the right one."""
    right = {name.lower() for names in answers for name in names}
    others = []
    for string in sorted(set(strings)):
        lower = string.lower()
        if any(lower in name or name in lower for name in right):
            continue
        if not answers or _has_digit(string) == _has_digit(answers[0][0]):
            others.append(string)
    return rng.choice(others) if others else None


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def grounded_examples(
    questions: Sequence[GroundedQuestion], source: str, rng: random.Random
) -> Iterator[SupportExample]:
    """Statements of questions with a passage, one by one and two joined.

    A false one has the answer to another question about the passage, or stands beside another passage about the same.
    """
    by_passage: defaultdict[Context, list[GroundedQuestion]] = defaultdict(list)
    by_title: defaultdict[str, list[Context]] = defaultdict(list)
    for question in questions:
        gold = [one for one in question.passages if one.gold][:1]
        for passage in gold:
            if passage not in by_passage:
                by_title[passage.title].append(passage)
            by_passage[passage].append(question)
    for passage, own in by_passage.items():
        page = _Page(passage, source, by_title[passage.title])
        yield from page.examples(own, rng)


@dataclass(frozen=True)
class _Page:
    """A passage, and all passages of the same title."""

    passage: Context
    source: str
    same_title: Sequence[Context]

    def examples(
        self, questions: Sequence[GroundedQuestion], rng: random.Random
    ) -> Iterator[SupportExample]:
        strings = [names[0] for one in questions for names in one.answers]
        true, false = [], []
        for question in questions:
            answers = question.answers
            if answers:
                right = min(answers[0], key=len)
                true.append(_claim(question.text, right, rng))
                yield self._example(true[-1], self.passage, supported=True)
                yield from self._elsewhere(true[-1], answers[0], rng)
            wrong = _wrong_answer(strings, answers, rng)
            if wrong:
                false.append(_claim(question.text, wrong, rng))
                yield self._example(false[-1], self.passage, supported=False)
        if len(true) > 1:
            first, second = rng.sample(true, 2)
            claim = join_sentences(first, second, rng)
            yield self._example(claim, self.passage, supported=True)
        if true and false:
            claim = join_sentences(rng.choice(true), rng.choice(false), rng)
            yield self._example(claim, self.passage, supported=False)

    def _elsewhere(
        self, claim: str, names: Sequence[str], rng: random.Random
    ) -> Iterator[SupportExample]:
        """A true claim beside another passage about the same that does not hold its answer."""
        other = rng.choice(self.same_title)
        lowered = other.text.lower()
        if other != self.passage and not any(n.lower() in lowered for n in names):
            yield self._example(claim, other, supported=False)

    def _example(
        self, claim: str, passage: Context, *, supported: bool
    ) -> SupportExample:
        text = " ".join(passage.text.split())
        group = f"page {passage.title}"
        return SupportExample(claim, passage.title, text, supported, self.source, group)
