"""What the encoder is given, as token numbers: (question, passage) pairs. What the writer is: `writer/prompts.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.encoder.tokens import BEGIN, END, Tokenizer

LONGEST_QUESTION, LONGEST_TITLE, LONGEST_PAIR = 48, 24, 224
LONGEST_ANSWER = 24
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


def pair(
    tokenizer: Tokenizer,
    question: Sequence[int],
    title: str,
    text: str,
    longest: int = LONGEST_PAIR,
) -> Pair:
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


def answer_ids(tokenizer: Tokenizer, answer: str) -> list[int]:
    """An answer as the writer knows it: without an article in front, unless it is nothing else."""
    return tokenizer.ids(_ARTICLE.sub("", answer.strip()) or answer, LONGEST_ANSWER)
