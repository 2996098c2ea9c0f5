"""What the decoder learns from a list: the edits that make a rewrite of its question, and its answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache

from whichsense.models.compact.inputs import (
    DELETE,
    GAP,
    GAPS,
    MOST_DELETED,
    answer_ids,
    answer_prefix,
    question_words,
    rewrite_prefix,
)
from whichsense.models.compact.tokens import END, Tokenizer
from whichsense.text import normalize
from whichsense.train.compact.batch import Writing
from whichsense.train.compact.lists import ANSWERS
from whichsense.train.compact.questions import Asked, Rewriting

_LONGEST_OUTPUT = 46
_REMEMBERED = 2**18
_normal = lru_cache(_REMEMBERED)(normalize)
_MOST = 3  # rewrites of a list in one batch
_ALIASES = 3  # the first so many of an answer are written


@dataclass(frozen=True)
class Remembering(Tokenizer):
    """Cuts up a text once: the same questions, answers and rewrites come again in every epoch."""

    _texts: dict[tuple[str, int | None], tuple[int, ...]] = field(default_factory=dict)

    def ids(self, text: str, most: int | None = None) -> list[int]:
        found = self._texts.get((text, most))
        if found is None:
            found = self._texts[text, most] = tuple(super().ids(text, most))
        return list(found)


def edit_signs(tokenizer: Tokenizer, prompt: str, rewrite: str) -> list[int]:
    """The edits that make a rewrite of a prompt, as the decoder writes them, up to [SEP]. The reverse of `parsed`."""
    found: list[int] = []
    for start, end, new in _changes(prompt, rewrite):
        if start >= GAPS:
            continue
        found.append(GAP + start)
        if end > start:
            found.append(DELETE + min(end - start, MOST_DELETED))
        found += tokenizer.ids(new)
        for place in range(start + MOST_DELETED, min(end, GAPS), MOST_DELETED):
            found += [GAP + place, DELETE + min(end - place, MOST_DELETED)]
    return [*found[:_LONGEST_OUTPUT], END]


@lru_cache(_REMEMBERED)
def _changes(prompt: str, rewrite: str) -> tuple[tuple[int, int, str], ...]:
    """Where words of the prompt are not those of the rewrite: the first, the one behind the last, the new words."""
    before, after = ([word.lower() for word in question_words(text)] for text in (prompt, rewrite))
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return tuple(
        (start, end, " ".join(after[first:last])) for kind, start, end, first, last in codes if kind != "equal"
    )


def rewrites(
    tokenizer: Tokenizer,
    asked: Asked,
    owner: int,
    dice: random.Random | None,
    *,
    most: int = _MOST,
) -> list[Writing]:
    """Sequences for some readings of a question, or without dice for all of them: prefix, edits.

    Several wordings of one rewrite are equals, unless a model guessed them: then the first is the best, and is drawn
    most often.
    """
    chosen = list(asked.rewritings)
    if dice is not None:
        chosen = dice.sample(chosen, min(most, len(chosen)))
    found = []
    for one in chosen:
        answer, others, rewrite = one.answers[0], one.others, one.rewrites[0]
        if dice is not None:
            answer, rewrite = dice.choice(one.answers[:_ALIASES]), _wording(one.rewrites, dice, ranked=asked.guessed)
            if dice.random() < 0.3:
                others = others[: dice.randrange(len(others) + 1)]
        prefix = rewrite_prefix(tokenizer, asked.text, answer, others)
        output = edit_signs(tokenizer, asked.text, rewrite)
        number = answer_number(asked, one)
        if prefix is not None and len(output) > 1 and number is not None:
            found.append(Writing(prefix, output, owner, number))
    return found


def _wording(rewrites: Sequence[str], dice: random.Random, *, ranked: bool) -> str:
    if not ranked:
        return dice.choice(rewrites)
    return dice.choices(rewrites, [1 / (rank + 1) for rank in range(len(rewrites))])[0]


def answers(tokenizer: Tokenizer, asked: Asked, owner: int, dice: random.Random | None) -> list[Writing]:
    """Answers to rewrites (to half of some of them, or without dice to all); where there are none, to the question."""
    chosen = list(asked.rewritings)
    if dice is not None:
        chosen = [one for one in dice.sample(chosen, min(_MOST, len(chosen))) if dice.random() < 0.5]
    found = []
    for one in chosen:
        answer, rewrite = one.answers[0], one.rewrites[0]
        if dice is not None:
            answer, rewrite = dice.choice(one.answers[:_ALIASES]), dice.choice(one.rewrites)
        number = answer_number(asked, one)
        if number is not None:
            found.append(_answer(tokenizer, rewrite, answer, owner, number))
    if not asked.rewritings and asked.answers:
        number = dice.randrange(min(len(asked.answers), ANSWERS)) if dice is not None else 0
        names: Sequence[str] = [name for name in asked.answers[number] if name.strip()] or asked.answers[number]
        short = dice is None or dice.random() < 0.5
        name = min(names[:4], key=len) if short or dice is None else dice.choice(names)
        found.append(_answer(tokenizer, asked.text, name, owner, number))
    return found


def _answer(tokenizer: Tokenizer, question: str, answer: str, owner: int, number: int) -> Writing:
    return Writing(answer_prefix(tokenizer, question), [*answer_ids(tokenizer, answer), END], owner, number)


def answer_number(asked: Asked, one: Rewriting) -> int | None:
    """Which of the question's distinct answers a reading has."""
    names = {_normal(name) for name in one.answers}
    for number, group in enumerate(asked.answers[:ANSWERS]):
        if any(_normal(name) in names for name in group):
            return number
    return None
