"""What the model is given, as token numbers: (question, passage) pairs for the encoder, tasks for the decoder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.tokens import BEGIN, END, Tokenizer

# BERT's unused tokens serve as signs: gap markers, "delete n words", and what the decoder is to do.
GAP, GAPS = 1, 48
DELETE, MOST_DELETED = 48, 12
REWRITE, ANSWER, CLARIFY, SUMMARIZE, BETWEEN = 61, 62, 63, 64, 65
LAST_SIGN = 65
LONGEST_QUESTION, LONGEST_TITLE, LONGEST_PAIR = 48, 24, 224
LONGEST_ANSWER, LONGEST_REWRITE = 24, 60
_MOST_OTHERS = 5
_LONGEST_PREFIX = 150  # leaves room for the edits among the decoder's places
_ARTICLE = re.compile(r"^(?:a|an|the)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pair:
    """`[CLS] question [SEP] title [SEP] text [SEP]` with where the tokens of title and text stand in the passage.

    `title` and `text` are (first, last + 1) among the tokens; `starts` and `ends` are characters of the title or the
    text, 0 elsewhere.
    """

    ids: list[int]
    types: list[int]
    title: tuple[int, int]
    text: tuple[int, int]
    starts: list[int]
    ends: list[int]

    def __len__(self) -> int:
        return len(self.ids)


def pair(tokenizer: Tokenizer, question: Sequence[int], title: str, text: str, longest: int = LONGEST_PAIR) -> Pair:
    """A pair of a question (as tokens, cut already) and a passage; the text is cut where the pair would be too long."""
    named = tokenizer.pieces(title, LONGEST_TITLE)
    head = [BEGIN, *question, END]
    first = len(head)
    text_at = first + len(named) + 1
    body = tokenizer.pieces(text, max(longest - text_at - 1, 0))
    blank = [0] * first
    return Pair(
        [*head, *named.ids, END, *body.ids, END],
        [0] * first + [1] * (len(named) + len(body) + 2),
        (first, first + len(named)),
        (text_at, text_at + len(body)),
        [*blank, *named.starts, 0, *body.starts, 0],
        [*blank, *named.ends, 0, *body.ends, 0],
    )


def question_words(question: str) -> list[str]:
    """The words between which a rewrite may insert: parted at white space, without the final question mark."""
    return question.strip().rstrip("?").split()


def rewrite_prefix(tokenizer: Tokenizer, question: str, answer: str, others: Sequence[str]) -> list[int] | None:
    """`REWRITE P0 w1 P1 … wn Pn [SEP] answer [SEP] other ; other [SEP]`; None where the question is too long for it."""
    words = question_words(question)
    pieces = [tokenizer.ids(word) for word in words]
    if not words or len(words) >= GAPS or sum(map(len, pieces)) > LONGEST_QUESTION:
        return None
    prefix = [REWRITE, GAP]
    for place, found in enumerate(pieces, 1):
        prefix += [*found, GAP + place]
    prefix += [END, *answer_ids(tokenizer, answer), END]
    for place, other in enumerate(others[:_MOST_OTHERS]):
        prefix += ([BETWEEN] if place else []) + answer_ids(tokenizer, other)
    return [*prefix, END] if len(prefix) < _LONGEST_PREFIX else None


def answer_ids(tokenizer: Tokenizer, answer: str) -> list[int]:
    """An answer as the decoder knows it: without an article in front, unless it is nothing else."""
    return tokenizer.ids(_ARTICLE.sub("", answer.strip()) or answer, LONGEST_ANSWER)


def answer_prefix(tokenizer: Tokenizer, question: str) -> list[int]:
    """`ANSWER question [SEP]`, to which the answer is the continuation."""
    return [ANSWER, *tokenizer.ids(question, LONGEST_REWRITE), END]
