"""Claims that a passage supports or not: of questions, of answers that people judged, of passages."""

from __future__ import annotations

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from whichsense import sample
from whichsense.errors import BadConfig
from whichsense.index import Index
from whichsense.jobs.limits import Progress, silent
from whichsense.lab.compact.questions import DataConfig, contains_answer
from whichsense.lab.compact.topics import Topics, topic_of
from whichsense.lab.compact.verifier_task import BROKEN, EMPTY
from whichsense.lab.datasets import (
    FeedbackQuestion,
    GroundedLongQuestion,
    GroundedQuestion,
    LongQuestion,
    Question,
    load,
    locate_questions,
)
from whichsense.models.compact.support_judge import terms
from whichsense.protocols import Searchable
from whichsense.text.words import sentence_spans, sentences
from whichsense.types import Passage, frozen

# Examples of the support judge: a sentence, a passage, and whether the passage supports it.

_HELD_OUT = 12  # one group in so many is held out


@frozen
class SupportExample:
    """A sentence and a passage."""

    claim: str
    title: str
    text: str
    supported: bool
    source: str
    """What it was made from, and how."""
    group: str
    """The topic, question or article: all its examples are learnt from, or none is."""

    @property
    def passage(self) -> str:
        """The passage as the judge takes it."""
        return f"{self.title}\n{self.text}" if self.title else self.text


def is_held_out(example: SupportExample) -> bool:
    """Return whether an example is kept to evaluate on."""
    digest = hashlib.sha256(f"support {example.group}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % _HELD_OUT == 0


# Examples from questions with answers: a claim for each answer, true or false by the passages.

_MOST_PASSAGES = 3  # that hold an answer
_Answers = Sequence[Sequence[str]]
_Claim = tuple[str, Sequence[str]]
"""With the names of the answer that it gives."""


def _claim(question: str, answer: str) -> str:
    return f"{question.rstrip('? ')}? {answer}."


@dataclass(frozen=True)
class _Subject:
    """Passages about one thing, of which something is claimed."""

    group: str
    source: str
    passages: Sequence[Passage]

    def example(
        self, claim: str, names: Sequence[str], *, supported: bool
    ) -> Iterator[SupportExample]:
        """Yield the claim with the passages that hold its answer; nothing if these are none or too many."""
        holding = [one for one in self.passages if contains_answer(one, names)]
        if 0 < len(holding) <= _MOST_PASSAGES:
            yield self._beside(claim, holding, supported=supported)

    def _beside(
        self, claim: str, passages: Sequence[Passage], *, supported: bool
    ) -> SupportExample:
        every = "\n".join(f"{one.title}\n{' '.join(one.text.split())}" for one in passages)
        title, _, text = every.partition("\n")
        return SupportExample(claim, title, text, supported, self.source, self.group)

    def examples(
        self, asked: Sequence[tuple[str, _Answers]], rng: random.Random
    ) -> Iterator[SupportExample]:
        """Yield claims of questions with their answers, one by one and two joined. A false one has the answer to
        another of the questions, or is beside a passage without its answer."""
        true, false = _claims(asked, rng)
        for claim, names in true:
            yield from self.example(claim, names, supported=True)
            lacking = [one for one in self.passages if not contains_answer(one, names)]
            if lacking:
                yield self._beside(claim, lacking[:1], supported=False)
        for claim, names in false:
            yield from self.example(claim, names, supported=False)
        for others in (true, false):
            if true and others:
                (first, names), (second, more) = rng.choice(true), rng.choice(others)
                claim = f"{first} {second}"
                yield from self.example(claim, [*names, *more], supported=others is true)


def _claims(
    asked: Sequence[tuple[str, _Answers]], rng: random.Random
) -> tuple[list[_Claim], list[_Claim]]:
    """Return true claims and false ones."""
    strings = sorted({names[0] for _, answers in asked for names in answers})
    true: list[_Claim] = []
    false: list[_Claim] = []
    for question, answers in asked:
        for names in answers:
            true.append((_claim(question, rng.choice(names)), names))
        wrong = _wrong_answer(strings, answers, rng)
        if wrong:
            false.append((_claim(question, wrong), [wrong]))
    return true, false


def topic_examples(topics: Topics, rng: random.Random) -> Iterator[SupportExample]:
    """Yield claims of topics' questions and of their rewrites, true and false ones."""
    asked: defaultdict[str, list[Question]] = defaultdict(list)
    passages: defaultdict[str, list[Passage]] = defaultdict(list)
    for question in topics.questions:
        asked[topic_of(question.id)].append(question)
    for passage in topics.passages:
        passages[topic_of(passage.id)].append(passage)
    for name, own in asked.items():
        subject = _Subject(f"topic {name}", "topics", passages[name])
        yield from subject.examples([(one.text, one.answers) for one in own], rng)
        for question in own:
            for rewrite in topics.rewrites.get(question.id, ()):
                if rewrite.kind not in (EMPTY, BROKEN):
                    names = question.annotations[0].answers[rewrite.answer]
                    claim = _claim(rewrite.question, names[0])
                    yield from subject.example(claim, names, supported=not rewrite.kind)


def _wrong_answer(strings: Sequence[str], answers: _Answers, rng: random.Random) -> str | None:
    """Return an answer to another question about the same that looks like the right one."""
    right = {name.lower() for names in answers for name in names}
    others = []
    for string in strings:
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
    """Yield claims of questions about a passage, beside it and beside another passage about the same."""
    asked: defaultdict[Passage, list[tuple[str, _Answers]]] = defaultdict(list)
    by_title: defaultdict[str, list[Passage]] = defaultdict(list)
    for question in questions:
        for gold in [one for one in question.passages if one.gold][:1]:
            passage = Passage("", gold.title, gold.text)
            if passage not in asked:
                by_title[passage.title].append(passage)
            asked[passage].append((question.text, question.answers[:1]))
    for passage, own in asked.items():
        every = dict.fromkeys((passage, rng.choice(by_title[passage.title])))
        yield from _Subject(f"page {passage.title}", source, list(every)).examples(own, rng)


# Examples from long answers: sentences that people wrote or judged, beside the passages that they
# were given.

FEEDBACK = "feedback"
_UNSUPPORTED = ("Wrong-Grounding", "Unverifiable")
_FEWEST_WORDS = 5
# The share of a sentence's terms that its passages must have, beside all numbers and names.
_SILVER_TRUE = 0.6


def feedback_examples(questions: Sequence[FeedbackQuestion]) -> Iterator[SupportExample]:
    """Sentences of a model's answer, unsupported where people marked an error of grounding; and of its correction."""
    for question in questions:
        text = "\n".join(
            f"{passage.title}\n{' '.join(passage.sentences)}" for passage in question.passages
        )
        title, _, text = text.partition("\n")
        group = f"question {question.text}"
        prediction = question.predictions[0]
        claims: dict[str, bool] = {}
        for start, end in sentence_spans(prediction):
            wrong = False
            for error in question.errors:
                overlaps = error.start < end and error.end > start
                wrong |= overlaps and error.kind in _UNSUPPORTED
            claims[prediction[start:end]] = not wrong
        for claim in sentences(question.corrected):
            claims.setdefault(claim, True)
        for claim, supported in claims.items():
            if len(claim.split()) >= _FEWEST_WORDS:
                yield SupportExample(claim, title, text, supported, FEEDBACK, group)


def long_answer_examples(
    questions: Sequence[LongQuestion], rng: random.Random
) -> Iterator[SupportExample]:
    """Sentences of people's long answers whose numbers and names the passages have; and false ones made of these."""
    for question in questions:
        text = "\n".join(passage.text for passage in question.passages)
        group = f"question {question.text}"
        for answer in question.long_answers:
            for claim in sentences(answer.text):
                if not _is_said(claim, text):
                    continue
                yield SupportExample(claim, "", text, True, "long answer", group)
                changed = falsify(claim, text, rng)
                if changed:
                    yield SupportExample(changed, "", text, False, "long answer", group)


def _is_said(claim: str, text: str) -> bool:
    said = {term.form for term in terms(text)}
    own = terms(claim)
    if len(claim.split()) < _FEWEST_WORDS or not own:
        return False
    for term in own:
        if term.kind != "word" and term.form not in said:
            return False
    return sum(term.form in said for term in own) / len(own) >= _SILVER_TRUE


def grounded_answer_examples(
    questions: Sequence[GroundedLongQuestion], rng: random.Random
) -> Iterator[SupportExample]:
    """Sentences of answers that were composed of a passage's; beside the passage without these they are unsupported."""
    for question in questions:
        passage = question.passages[0]
        group = f"question {question.text}"
        for answer in question.long_answers:
            used = set(answer.sentences)
            others = [one for one in question.sentences[0] if one not in used]
            for claim in sentences(answer.text):
                if len(claim.split()) < _FEWEST_WORDS:
                    continue
                pairs = [(claim, " ".join(question.sentences[0]), True)]
                if others:
                    pairs.append((claim, " ".join(others), False))
                changed = falsify(claim, passage.text, rng)
                if changed:
                    pairs.append((changed, " ".join(question.sentences[0]), False))
                for text, beside, supported in pairs:
                    yield SupportExample(text, passage.title, beside, supported, "grounded", group)


# Examples from passages alone: their own sentences, said, made false or taken out of the passage.

_EXAMPLES = 4  # of a passage
_JOINED = 0.3  # how often another sentence of the passage is claimed, too
_FEWEST_CLAIMED, _MOST_CLAIMED = 7, 45  # words
_NUMBER = re.compile(r"\b\d+(?:[.,]\d+)*\b")
# A run of capitalized words that does not begin a sentence.
_NAME = re.compile(
    r"(?<=[a-z,;)] )(?:[A-Z][\w'’.-]*\w(?: (?:of|the|de|and) (?=[A-Z])| (?=[A-Z]))?)+"
)
_VERB = re.compile(r"\b(?:was|is|were|are|had|has|have|can|could|will|would|did|does)\b( not)?")
_NEIGHBOURS = 12  # passages that are looked at for a sentence
# Of the terms of a sentence: from which share on a neighbour supports it, and from which to which it does not.
_FROM_PASSAGES_SILVER_TRUE = 0.95
_SILVER_FALSE = (0.3, 0.8)


def falsify(sentence: str, passage: str, rng: random.Random) -> str | None:
    """Put another number or name of the passage in the place of one, or negate a verb; return None where neither can be
    done."""
    for pattern in rng.sample((_NUMBER, _NAME, _VERB), 3):
        matches = list(pattern.finditer(sentence))
        if not matches:
            continue
        match = rng.choice(matches)
        if pattern is _VERB:
            verb, _, denied = match[0].partition(" ")
            choices = [verb if denied else f"{verb} not"]
        else:
            said = set(sentence.split())
            found = {other[0] for other in pattern.finditer(passage)}
            choices = sorted(one for one in found if not said & set(one.split()))
        if choices:
            changed = sentence[: match.start()] + rng.choice(choices) + sentence[match.end() :]
            if changed not in passage:
                return changed
    return None


def passage_examples(
    passage: Passage, rng: random.Random, most: int = _EXAMPLES
) -> Iterator[SupportExample]:
    """Yield examples of a passage's sentences, unsupported and supported ones in turn."""
    every = sentences(" ".join(passage.text.split()))
    claims = list(filter(_is_claim, every))
    if not claims or len(every) < 2:
        return
    for number in range(most):
        claim = rng.choice(claims)
        text, changed, source = " ".join(every), claim, "said"
        if number % 2 == 0:
            text, changed, source = _unsupported(claim, every, passage.title, rng)
        if changed:
            others = [one for one in every if one != claim]
            joined = rng.choice(others) + " " if rng.random() < _JOINED else ""
            changed = joined + changed
            group = f"page {passage.title}"
            is_said = source == "said"
            yield SupportExample(changed, passage.title, text, is_said, source, group)


def _unsupported(
    claim: str, every: Sequence[str], title: str, rng: random.Random
) -> tuple[str, str, str]:
    """Make a passage's sentence false, or take it out of the passage: return the text, the claim, empty where that
    cannot be done, and which it is."""
    if rng.random() < 0.5:
        text = " ".join(every)
        return text, falsify(claim, text, rng) or "", "made false"
    text = " ".join(one for one in every if one != claim)
    return text, claim if _adds(claim, f"{title} {text}") else "", "unsaid"


def _is_claim(sentence: str) -> bool:
    """Return whether a sentence is whole, of a usual length, and names or counts something."""
    is_whole = sentence[:1].isupper() and sentence.endswith(".")
    count = len(sentence.split())
    return is_whole and _FEWEST_CLAIMED <= count <= _MOST_CLAIMED and _adds(sentence, "")


def _adds(sentence: str, text: str) -> bool:
    """Return whether a sentence has a number or a name that a text lacks."""
    said = {term.form for term in terms(text)}
    return any(term.kind != "word" and term.form not in said for term in terms(sentence))


def neighbour_examples(
    passage: Passage, index: Searchable, rng: random.Random
) -> Iterator[SupportExample]:
    """Yield a sentence beside passages that a search finds for it: silver labels, by what of it they say.

    At most one neighbour that supports it and one that does not, though it is about the same.
    """
    claims = [one for one in sentences(passage.text) if _is_claim(one)]
    if not claims:
        return
    claim = rng.choice(claims)
    group = f"page {passage.title}"
    wanted = {True, False}
    for hit in index.search_many([claim], _NEIGHBOURS, "bm25")[0]:
        neighbour = hit.passage
        if neighbour.id == passage.id or claim in neighbour.text:
            continue
        supported = _silver_label(claim, neighbour)
        if supported is not None and supported in wanted:
            wanted.discard(supported)
            yield SupportExample(
                claim, neighbour.title, neighbour.text, supported, "neighbour", group
            )


def _silver_label(claim: str, passage: Passage) -> bool | None:
    """Return whether a passage says nearly all of a sentence, or lacks a good part of it; None in between."""
    own = terms(claim)
    said = {term.form for term in terms(f"{passage.title}. {passage.text}")}
    share = sum(term.form in said for term in own) / len(own)
    if all(term.form in said for term in own if term.kind != "word"):
        return True if share >= _FROM_PASSAGES_SILVER_TRUE else None
    return False if _SILVER_FALSE[0] <= share <= _SILVER_FALSE[1] else None


# All examples of the support judge, by what a recipe's `[data]` names.

_QuestionT = TypeVar("_QuestionT", bound=Question)
_SEED = 25


@frozen
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
    limit: int = 0
    """Use only so many records of each kind; 0: all."""
    dev_limit: int = 0

    def paths(self) -> list[Path]:
        """Return the files whose checksums a run records: what the examples are made of."""
        files = DataConfig(topics=self.topics).topic_files
        names = (*self.grounded, self.train, self.dev, self.grounded_answers)
        for name in filter(None, names):
            files.append(locate_questions(name, self.folder or None))
        manifest = Path(self.index) / "manifest.json"
        return [*files, manifest if self.index else sample.PASSAGES]


def read_examples(data: SupportData, progress: Progress = silent) -> list[SupportExample]:
    """Build all examples that the data give."""
    examples = list(_build(data, progress))
    if not examples:
        raise BadConfig("data: nothing to learn from. Name topics, datasets or an index.")
    return examples


def _build(data: SupportData, progress: Progress) -> Iterator[SupportExample]:
    rng = random.Random(_SEED)
    topics = Topics.read(DataConfig(topics=data.topics).topic_folders)
    if data.limit:
        topics = topics.only(topics.names[: data.limit])
    yield from topic_examples(topics, rng)
    for name in data.grounded:
        yield from grounded_examples(_load(name, GroundedQuestion, data), name, rng)
    if data.dev:
        judged = _load(data.dev, FeedbackQuestion, data)
        yield from feedback_examples(judged[: data.dev_limit or None])
    if data.train:
        yield from long_answer_examples(_load(data.train, LongQuestion, data), rng)
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
