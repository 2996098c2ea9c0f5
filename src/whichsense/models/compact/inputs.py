"""What the model is given, as token numbers: (question, passage) pairs for the encoder, tasks for the decoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.tokens import BEGIN, END, Tokenizer

# BERT's unused tokens serve as signs: gap markers, "delete n words", and what the decoder is to do.
GAP, GAPS = 1, 48
DELETE, MOST_DELETED = 48, 12
REWRITE, ANSWER, CLARIFY, SUMMARIZE, BETWEEN = 61, 62, 63, 64, 65
LAST_SIGN = 65
LONGEST_QUESTION, LONGEST_TITLE, LONGEST_PAIR = 48, 24, 256
LONGEST_ANSWER = 24
_LONGEST_OTHERS = 48


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
    prefix += [END, *tokenizer.ids(answer, LONGEST_ANSWER), END]
    listed: list[int] = []
    for other in others:
        found = ([BETWEEN] if listed else []) + tokenizer.ids(other, LONGEST_ANSWER)
        if len(listed) + len(found) > _LONGEST_OTHERS:
            break
        listed += found
    return [*prefix, *listed, END]


def answer_prefix(tokenizer: Tokenizer, question: str) -> list[int]:
    """`ANSWER question [SEP]`, to which the answer is the continuation."""
    return [ANSWER, *tokenizer.ids(question, 2 * LONGEST_QUESTION), END]
