"""The encoder's inputs: (question, passage) pairs as token numbers. The writer's are in `writer/prompts.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from whichsense.models.compact.encoder.tokens import BEGIN, END, Tokenizer

# All in tokens.
LONGEST_QUESTION = 48
LONGEST_TITLE = 24
_LONGEST_PAIR = 224
LONGEST_ANSWER = 24
_ARTICLE = re.compile(r"^(?:a|an|the)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pair:
    """`[CLS] question [SEP] title [SEP] text [SEP]` with the character offsets of the passage's tokens.

    `title` and `text` are (first, last + 1) among the tokens; `starts` and `ends` are offsets in the title or in the
    text, and 0 for all other tokens.
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
    longest: int = _LONGEST_PAIR,
) -> Pair:
    """Build the input for a question (tokens, truncated already) and a passage. The text is truncated to fit."""
    title_pieces = tokenizer.pieces(title, LONGEST_TITLE)
    question_part = [BEGIN, *question, END]
    title_at = len(question_part)
    title_end = title_at + len(title_pieces)
    text_at = title_end + 1  # behind a [SEP]
    text_pieces = tokenizer.pieces(text, max(longest - text_at - 1, 0))
    text_end = text_at + len(text_pieces)
    no_offsets = [0] * title_at
    return Pair(
        ids=[*question_part, *title_pieces.ids, END, *text_pieces.ids, END],
        types=[0] * title_at + [1] * (text_end + 1 - title_at),
        title=(title_at, title_end),
        text=(text_at, text_end),
        starts=[*no_offsets, *title_pieces.starts, 0, *text_pieces.starts, 0],
        ends=[*no_offsets, *title_pieces.ends, 0, *text_pieces.ends, 0],
    )


def question_words(question: str) -> list[str]:
    """Split a question at white space, without the final question mark. A rewrite inserts between these words."""
    return question.strip().rstrip("?").split()


def answer_ids(tokenizer: Tokenizer, answer: str) -> list[int]:
    """The tokens of an answer without its leading article, unless the article is all of it."""
    bare = _ARTICLE.sub("", answer.strip())
    return tokenizer.ids(bare or answer, LONGEST_ANSWER)
