"""What the writer learns from: prompts, each with what is to be written after it, and how much every token counts.

Four kinds: questions to be rewritten for an answer, questions and sentences to be restored from which words were taken,
and answers to be found in windows of the evidence.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
from whichsense.train.compact.data.lists import ANSWERS
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.questions import Asked, Rewriting

_REMEMBERED = 2**18
_normal = lru_cache(_REMEMBERED)(normalize)
_ALIASES = 3  # the first so many of an answer are written
_OF_EACH, _TOGETHER = (
    3,
    5,
)  # windows to choose from, and those that an answer is looked for in
_SITUATED = "situatedqa"  # adds a date or a place to every question: a way of writing of its own
_RESTORED = 1.5  # what a restored token counts beyond the others
_SENTENCE = range(6, 27)  # tokens


@dataclass(frozen=True)
class Remembering(Tokenizer):
    """Cuts up a text once: the same questions, answers and rewrites come again in every epoch."""

    _texts: dict[tuple[str, int | None], tuple[int, ...]] = field(default_factory=dict)

    def ids(self, text: str, most: int | None = None) -> list[int]:
        found = self._texts.get((text, most))
        if found is None:
            found = self._texts[text, most] = tuple(super().ids(text, most))
        return list(found)


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt, what is written after it with its end, and the weight of each of these tokens."""

    prompt: Prompt
    output: list[int]
    weights: list[float]


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a list's question, and which of the list's answers it has."""

    number: int
    rewriting: Rewriting
    answer: int


@dataclass(frozen=True)
class Examples:
    """Makes them of lists. `inserted`: what an inserted token of a rewrite counts beyond the others."""

    pack: Pack
    tokenizer: Tokenizer
    inserted: float = 1.5

    @cached_property
    def readings(self) -> list[Reading]:
        return [
            reading
            for number in range(len(self.pack))
            for reading in self.readings_of(number)
        ]

    def readings_of(self, number: int) -> Iterator[Reading]:
        asked = self.pack.asked[number]
        for one in asked.rewritings:
            answer = answer_number(asked, one)
            if answer is not None:
                yield Reading(number, one, answer)

    def rewritten(self, reading: Reading, dice: random.Random | None) -> Example | None:
        """A rewrite; without dice the first, for the first name of the answer."""
        asked, one = self.pack.asked[reading.number], reading.rewriting
        answer, rewrite, others = one.answers[0], one.rewrites[0], list(one.others)
        windows = self.windows(reading.number, reading.answer)
        if dice is not None:
            answer, rewrite = (
                dice.choice(one.answers[:_ALIASES]),
                dice.choice(one.rewrites),
            )
            dice.shuffle(others)
            others = (
                others[: dice.randrange(len(others) + 1)]
                if dice.random() < 0.2
                else others
            )
            windows = _shaken(windows, dice)
        question, wanted = self.question(asked.text), self.question(rewrite)
        names = [answer_ids(self.tokenizer, other) for other in others]
        sign = SITUATE if asked.source.startswith(_SITUATED) else REWRITE
        prompt = rewriting(
            question, answer_ids(self.tokenizer, answer), names, windows, sign
        )
        weights = [
            1.0 + self.inserted * new for new in _new(tuple(question), tuple(wanted))
        ]
        return Example(prompt, [*wanted, END], [*weights, 1.0]) if wanted else None

    def restored(self, number: int, dice: random.Random) -> Example | None:
        """A question of which some words were taken out, or nearly all."""
        asked = self.pack.asked[number]
        question = self.question(asked.text)
        taken = _taken(question, dice, nearly_all=0.2)
        if taken is None:
            return None
        answer = (
            answer_ids(self.tokenizer, min(asked.answers[0], key=len))
            if asked.answers
            else []
        )
        prompt = rewriting(
            taken.left,
            answer if dice.random() < 0.85 else [],
            [],
            self.windows(number, 0)[:2],
            RESTORE,
        )
        return Example(prompt, [*question, END], taken.weights)

    def sentence(self, row: int, dice: random.Random) -> Example | None:
        """A sentence of a passage, restored beside what stands around it."""
        text, stop = self.pack.texts[row].tolist(), self.tokenizer.vocabulary["."]
        ends = [-1, *(place for place, piece in enumerate(text) if piece == stop)]
        fitting = [
            (one + 1, other)
            for one, other in pairwise(ends)
            if other - one in _SENTENCE
        ]
        if not fitting:
            return None
        first, end = dice.choice(fitting)
        taken = _taken(text[first:end], dice, nearly_all=0.05)
        if taken is None:
            return None
        around = Window(
            self.pack.titles[row].tolist(),
            [*text[max(0, first - 30) : first], *text[end + 1 : end + 30]],
        )
        prompt = rewriting(taken.left, [], [], [around], RESTORE)
        return Example(prompt, [*text[first:end], END], taken.weights)

    def answered(self, number: int, dice: random.Random) -> Example | None:
        """The answer to one of a question's rewrites, or to a question that has none."""
        asked, readings = self.pack.asked[number], list(self.readings_of(number))
        if readings:
            one = dice.choice(readings)
            text = (
                dice.choice(one.rewriting.rewrites)
                if dice.random() < 0.8
                else asked.text
            )
            answer, windows = (
                dice.choice(one.rewriting.answers[:_ALIASES]),
                self.windows(number, one.answer),
            )
            mates = dice.sample(
                [other for other in readings if other is not one],
                min(4, len(readings) - 1),
            )
            others = [
                window
                for other in mates
                for window in self.windows(number, other.answer)[:1]
            ]
            windows = [*windows[:1], *others, *(windows[1:] if len(others) < 2 else [])]
        elif asked.answers:
            text, answer, windows = (
                asked.text,
                min(asked.answers[0], key=len),
                self.windows(number, 0),
            )
        else:
            return None
        told = windows[:_TOGETHER]
        dice.shuffle(told)
        wanted = answer_ids(self.tokenizer, answer)
        if not told or not wanted:
            return None
        return Example(
            answering(self.question(text), told),
            [*wanted, END],
            [1.0] * (len(wanted) + 1),
        )

    def question(self, text: str) -> list[int]:
        return self.tokenizer.ids(" ".join(question_words(text)))

    def windows(self, number: int, answer: int) -> list[Window]:
        """Of passages that hold the answer, then of the list's first."""
        own: list[Window] = []
        rest: list[Window] = []
        for slot in self.pack.slots_of(number):
            row = int(self.pack.slots.values[slot])
            title, text = self.pack.titles[row].tolist(), self.pack.texts[row].tolist()
            spans = [
                span for span in self.pack.spans[slot].tolist() if span[0] == answer
            ]
            inside = [span for span in spans if span[1] >= len(title)]
            first, end = (
                (inside[0][1] - len(title), inside[0][2] + 1 - len(title))
                if inside
                else (0, 0)
            )
            (own if spans else rest).append(Window(title, text, first, end))
            if len(own) == _OF_EACH:
                break
        return [*own, *rest[: max(0, 2 - len(own))]]


@dataclass(frozen=True, slots=True)
class _Taken:
    """What is left of a text, and the weights of the whole: what was taken out counts more."""

    left: list[int]
    weights: list[float]


def _taken(
    text: Sequence[int], dice: random.Random, *, nearly_all: float
) -> _Taken | None:
    if len(text) < 4:
        return None
    stays = [True] * len(text)
    if dice.random() < nearly_all:
        begin = dice.randint(1, 3)
        stays = [place < begin for place in range(len(text))]
    else:
        for _ in range(dice.choice((1, 1, 1, 2, 2, 3))):
            length = dice.randint(1, 5)
            first = dice.randrange(1, max(2, len(text) - length + 1))
            stays[first : first + length] = [False] * len(stays[first : first + length])
    left = [piece for piece, kept in zip(text, stays, strict=True) if kept]
    if not left or len(left) == len(text):
        return None
    if dice.random() < 0.25:  # and a word too many, which has to go
        left.insert(dice.randrange(len(left) + 1), dice.choice(left))
    return _Taken(left, [*(1.0 if kept else 1.0 + _RESTORED for kept in stays), 1.0])


def _shaken(windows: list[Window], dice: random.Random) -> list[Window]:
    """Sometimes none, sometimes in another order: the writer must not rely on the first."""
    luck = dice.random()
    if luck < 0.15:
        return []
    return dice.sample(windows, len(windows)) if luck < 0.4 else windows


@lru_cache(_REMEMBERED)
def _new(question: tuple[int, ...], rewrite: tuple[int, ...]) -> tuple[bool, ...]:
    """Which tokens of a rewrite do not stand in the question, in its order."""
    found = [True] * len(rewrite)
    for _, first, size in SequenceMatcher(
        None, question, rewrite, autojunk=False
    ).get_matching_blocks():
        found[first : first + size] = [False] * size
    return tuple(found)


def answer_number(asked: Asked, one: Rewriting) -> int | None:
    """Which of the question's distinct answers a reading has."""
    names = {_normal(name) for name in one.answers}
    for number, group in enumerate(asked.answers[:ANSWERS]):
        if any(_normal(name) in names for name in group):
            return number
    return None
