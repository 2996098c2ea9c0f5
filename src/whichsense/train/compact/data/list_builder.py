"""Questions and passages become a pack: both as word pieces, each passage once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from whichsense.models.compact.encoder.inputs import (
    LONGEST_ANSWER,
    LONGEST_QUESTION,
    LONGEST_TITLE,
    answer_ids,
)
from whichsense.models.compact.encoder.tokens import Tokenizer
from whichsense.train.compact.data.conversion import TrainingQuestion
from whichsense.train.compact.data.pack import Pack, RaggedArray
from whichsense.train.compact.data.tokenizer import continuations, find_in_passage

MAX_ANSWERS = 12  # of a question
MAX_SPANS = 12  # of a slot
_LONGEST_TEXT = 210  # word pieces
Ids = tuple[int, ...]
TitledText = tuple[str, str]
Span = tuple[int, int, int]
"""The answer's number, the first and the last token."""


class ListBuilder:
    """Collects lists of passages."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        pieces = {piece: number for number, piece in enumerate(vocabulary)}
        self._tokenizer = Tokenizer(pieces)
        self._continues = continuations(vocabulary)
        self._tokens: dict[TitledText, tuple[list[int], list[int]]] = {}
        self._rows: dict[TitledText, int] = {}  # a passage's place in the pack
        self._questions: list[TrainingQuestion] = []
        self._slots: list[list[int]] = []
        self._spans: list[Sequence[Span]] = []

    def answers(self, question: TrainingQuestion) -> list[list[Ids]]:
        """The word pieces of each answer's aliases, without those that are too long to be found."""
        answers = []
        for names in question.answers[:MAX_ANSWERS]:
            aliases: dict[Ids, None] = {}
            for name in names:
                if not name.strip():
                    continue
                ids = tuple(answer_ids(self._tokenizer, name))
                if 0 < len(ids) < LONGEST_ANSWER:
                    aliases[ids] = None
            answers.append(list(aliases))
        return answers

    def find_spans(
        self, passage: TitledText, answers: Sequence[Sequence[Ids]]
    ) -> list[Span]:
        """Where answers occur in a passage."""
        title, text = self._tokenize(passage)
        spans = []
        for number, aliases in enumerate(answers):
            for alias in aliases:
                places = find_in_passage(title, text, alias, self._continues)
                spans += [(number, first, last) for first, last in places]
        return spans

    def add(
        self,
        question: TrainingQuestion,
        passages: Sequence[TitledText],
        spans: Sequence[Sequence[Span]],
    ) -> None:
        """Add a list: a question, its passages, and the spans of answers in each."""
        # A passage gets a row when a list first holds it.
        rows = []
        for passage in passages:
            rows.append(self._rows.setdefault(passage, len(self._rows)))
        self._questions.append(replace(question, passages=()))
        self._slots.append(rows)
        self._spans += spans

    def build(self) -> Pack:
        questions = []
        titles = []
        texts = []
        for question in self._questions:
            questions.append(self._tokenizer.ids(question.text, LONGEST_QUESTION))
        for passage in self._rows:
            title, text = self._tokenize(passage)
            titles.append(title)
            texts.append(text)
        spans = [own[:MAX_SPANS] for own in self._spans]
        # Half the memory, where ids fit.
        dtype = np.uint16 if len(self._continues) < 2**16 else np.int32
        return Pack(
            RaggedArray.from_rows(questions, dtype),
            RaggedArray.from_rows(self._slots, np.int32),
            RaggedArray.from_rows(spans, np.int16, width=3),
            RaggedArray.from_rows(titles, dtype),
            RaggedArray.from_rows(texts, dtype),
            tuple(self._questions),
        )

    def _tokenize(self, passage: TitledText) -> tuple[list[int], list[int]]:
        tokens = self._tokens.get(passage)
        if tokens is None:
            title, text = passage
            tokens = (
                self._tokenizer.ids(title, LONGEST_TITLE),
                self._tokenizer.ids(text, _LONGEST_TEXT),
            )
            self._tokens[passage] = tokens
        return tokens
