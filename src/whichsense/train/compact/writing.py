"""What the decoder learns from a list: the edits that make a rewrite of its question, and its answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from difflib import SequenceMatcher

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
_MOST = 3  # rewrites of a list in one batch
_ALIASES = 3  # the first so many of an answer are written


def edit_signs(tokenizer: Tokenizer, prompt: str, rewrite: str) -> list[int]:
    """The edits that make a rewrite of a prompt, as the decoder writes them, up to [SEP]. The reverse of `parsed`."""
    before, after = ([word.lower() for word in question_words(text)] for text in (prompt, rewrite))
    found: list[int] = []
    for kind, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal" or start >= GAPS:
            continue
        inserted = tokenizer.ids(" ".join(after[new_start:new_end]))
        found.append(GAP + start)
        if end > start:
            found.append(DELETE + min(end - start, MOST_DELETED))
        found += inserted
        for place in range(start + MOST_DELETED, min(end, GAPS), MOST_DELETED):
            found += [GAP + place, DELETE + min(end - place, MOST_DELETED)]
    return [*found[:_LONGEST_OUTPUT], END]


def rewrites(tokenizer: Tokenizer, asked: Asked, owner: int, dice: random.Random | None) -> list[Writing]:
    """Sequences for some readings of a question, or without dice for all of them: prefix, edits."""
    chosen = list(asked.rewritings)
    if dice is not None:
        chosen = dice.sample(chosen, min(_MOST, len(chosen)))
    found = []
    for one in chosen:
        answer, others, rewrite = one.answers[0], one.others, one.rewrites[0]
        if dice is not None:
            answer, rewrite = dice.choice(one.answers[:_ALIASES]), dice.choice(one.rewrites)
            if dice.random() < 0.3:
                others = others[: dice.randrange(len(others) + 1)]
        prefix = rewrite_prefix(tokenizer, asked.text, answer, others)
        output = edit_signs(tokenizer, asked.text, rewrite)
        number = answer_number(asked, one)
        if prefix is not None and len(output) > 1 and number is not None:
            found.append(Writing(prefix, output, owner, number))
    return found


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
    names = {normalize(name) for name in one.answers}
    for number, group in enumerate(asked.answers[:ANSWERS]):
        if names & {normalize(name) for name in group}:
            return number
    return None
