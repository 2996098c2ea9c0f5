"""What the writer learns from: prompts with the text to be written after each.

There are four kinds: questions to be rewritten for an answer, questions and sentences to be restored after words were
taken out, and answers to be found in windows of the evidence.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import pairwise

from whichsense.models.compact.encoder.inputs import answer_ids, question_words
from whichsense.models.compact.encoder.tokens import END, Tokenizer
from whichsense.models.compact.writer.prompts import (
    RESTORE,
    REWRITE,
    SITUATE,
    Prompt,
    Window,
    answering,
    rewriting,
)
from whichsense.text.words import normalize
from whichsense.train.compact.data.conversion import GoldRewrite, TrainingQuestion
from whichsense.train.compact.data.list_builder import MAX_ANSWERS
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.writer.corruption import cut_words

_CACHE_SIZE = 2**18
_ALIASES = 3  # of an answer, the first ones
_ANSWER_WINDOWS = 3  # of passages that hold an answer
_MAX_WINDOWS = 5  # that an answer is searched in
_SITUATED = "situatedqa"  # adds a date or a place to every question, so its prompts have a sign of their own
_SENTENCE_SIZES = range(6, 27)  # tokens, with the stop
_CONTEXT = 30  # tokens on either side of a sentence
_normal = lru_cache(_CACHE_SIZE)(normalize)


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt, what is written after it up to its end, and the weight of each of these tokens."""

    prompt: Prompt
    output: list[int]
    weights: list[float]


@dataclass(frozen=True, slots=True)
class ListReading:
    """One reading of a list's question, and the number of its answer in the list."""

    number: int
    rewriting: GoldRewrite
    answer: int


@dataclass(frozen=True)
class RewriteExamples:
    """Builds examples of lists. `inserted`: the weight of an inserted token of a rewrite beyond the others."""

    pack: Pack
    tokenizer: Tokenizer
    inserted: float = 1.5

    @cached_property
    def readings(self) -> list[ListReading]:
        readings: list[ListReading] = []
        for number in range(len(self.pack)):
            readings += self._readings_of(number)
        return readings

    def _readings_of(self, number: int) -> Iterator[ListReading]:
        question = self.pack.asked[number]
        for reading in question.rewritings:
            answer = _answer_number(question, reading)
            if answer is not None:
                yield ListReading(number, reading, answer)

    def rewrite(
        self, reading: ListReading, rng: random.Random | None
    ) -> Example | None:
        """A rewrite. Without `rng`: the first, for the first alias of the answer."""
        asked = self.pack.asked[reading.number]
        gold = reading.rewriting
        answer = gold.answers[0]
        text = gold.rewrites[0]
        others = list(gold.others)
        windows = self.windows(reading.number, reading.answer)
        if rng is not None:
            answer = rng.choice(gold.answers[:_ALIASES])
            text = rng.choice(gold.rewrites)
            rng.shuffle(others)
            # The writer must manage with fewer of the other answers.
            if rng.random() < 0.2:
                others = others[: rng.randrange(len(others) + 1)]
            windows = _vary_windows(windows, rng)
        question = self.question(asked.text)
        output = self.question(text)
        if not output:
            return None
        prompt = rewriting(
            question,
            answer_ids(self.tokenizer, answer),
            [answer_ids(self.tokenizer, other) for other in others],
            windows,
            SITUATE if asked.source.startswith(_SITUATED) else REWRITE,
        )
        weights = []
        for inserted in _inserted_tokens(tuple(question), tuple(output)):
            weights.append(1.0 + self.inserted * inserted)
        return Example(prompt, [*output, END], [*weights, 1.0])

    def restored_question(self, number: int, rng: random.Random) -> Example | None:
        """A question of which some words were taken out, or nearly all."""
        asked = self.pack.asked[number]
        question = self.question(asked.text)
        cut = cut_words(question, rng, nearly_all=0.2)
        if cut is None:
            return None
        answer: list[int] = []
        if asked.answers:
            shortest = min(asked.answers[0], key=len)
            answer = answer_ids(self.tokenizer, shortest)
        # The writer must manage without an answer, too.
        if rng.random() >= 0.85:
            answer = []
        windows = self.windows(number, 0)[:2]
        prompt = rewriting(cut.remaining, answer, [], windows, RESTORE)
        return Example(prompt, [*question, END], cut.weights)

    def restored_sentence(self, row: int, rng: random.Random) -> Example | None:
        """A sentence of a passage, to be restored beside its context."""
        title, text = self.pack.passage(row)
        stop = self.tokenizer.vocabulary["."]
        stops = [-1]  # the first sentence begins after it
        for place, piece in enumerate(text):
            if piece == stop:
                stops.append(place)
        sentences = []
        for before, end in pairwise(stops):
            if end - before in _SENTENCE_SIZES:
                sentences.append((before + 1, end))
        if not sentences:
            return None
        first, end = rng.choice(sentences)
        sentence = text[first:end]
        cut = cut_words(sentence, rng, nearly_all=0.05)
        if cut is None:
            return None
        left = text[max(0, first - _CONTEXT) : first]
        right = text[end + 1 : end + _CONTEXT]
        context = Window(title, [*left, *right])
        prompt = rewriting(cut.remaining, [], [], [context], RESTORE)
        return Example(prompt, [*sentence, END], cut.weights)

    def answer(self, number: int, rng: random.Random) -> Example | None:
        """The answer to one of a question's rewrites, or to a question that has no rewrites."""
        asked = self.pack.asked[number]
        readings = list(self._readings_of(number))
        if readings:
            reading = rng.choice(readings)
            text = asked.text
            # Else the ambiguous question itself.
            if rng.random() < 0.8:
                text = rng.choice(reading.rewriting.rewrites)
            answer = rng.choice(reading.rewriting.answers[:_ALIASES])
            windows = self._contrasting_windows(reading, readings, rng)
        elif asked.answers:
            text = asked.text
            answer = min(asked.answers[0], key=len)
            windows = self.windows(number, 0)
        else:
            return None
        windows = windows[:_MAX_WINDOWS]
        rng.shuffle(windows)
        output = answer_ids(self.tokenizer, answer)
        if not windows or not output:
            return None
        prompt = answering(self.question(text), windows)
        output = [*output, END]
        return Example(prompt, output, [1.0] * len(output))

    def _contrasting_windows(
        self, reading: ListReading, readings: Sequence[ListReading], rng: random.Random
    ) -> list[Window]:
        """A window of the reading's answer, one of each of some other readings, then the rest of its own."""
        others = [other for other in readings if other is not reading]
        own = self.windows(reading.number, reading.answer)
        contrasting = []
        for other in rng.sample(others, min(4, len(others))):
            contrasting += self.windows(other.number, other.answer)[:1]
        rest = own[1:] if len(contrasting) < 2 else []
        return [*own[:1], *contrasting, *rest]

    def question(self, text: str) -> list[int]:
        return self.tokenizer.ids(" ".join(question_words(text)))

    def windows(self, number: int, answer: int) -> list[Window]:
        """Windows of passages that hold the answer, then of the list's first passages."""
        own: list[Window] = []
        others: list[Window] = []
        for slot in self.pack.slot_range(number):
            title, text = self.pack.passage(self.pack.passage_of(slot))
            spans = self.pack.spans[slot].tolist()
            spans = [span for span in spans if span[0] == answer]
            # The first occurrence in the text, counted from the text's first token.
            begin = 0
            end = 0
            for _, first, last in spans:
                if first >= len(title):
                    begin = first - len(title)
                    end = last + 1 - len(title)
                    break
            (own if spans else others).append(Window(title, text, begin, end))
            # Slots are in the order of the search: the best passages come first.
            if len(own) == _ANSWER_WINDOWS:
                break
        return [*own, *others[: max(0, 2 - len(own))]]


def _vary_windows(windows: list[Window], rng: random.Random) -> list[Window]:
    """Sometimes none, sometimes in another order: the writer must not rely on the first."""
    number = rng.random()
    if number < 0.15:
        return []
    return rng.sample(windows, len(windows)) if number < 0.4 else windows


@lru_cache(_CACHE_SIZE)
def _inserted_tokens(
    question: tuple[int, ...], rewrite: tuple[int, ...]
) -> tuple[bool, ...]:
    """Which tokens of a rewrite are not in the question, in the question's order."""
    inserted = [True] * len(rewrite)
    matcher = SequenceMatcher(None, question, rewrite, autojunk=False)
    for _, first, size in matcher.get_matching_blocks():
        inserted[first : first + size] = [False] * size
    return tuple(inserted)


def _answer_number(question: TrainingQuestion, reading: GoldRewrite) -> int | None:
    """Which of the question's distinct answers a reading has."""
    names = {_normal(name) for name in reading.answers}
    for number, aliases in enumerate(question.answers[:MAX_ANSWERS]):
        if any(_normal(alias) in names for alias in aliases):
            return number
    return None
