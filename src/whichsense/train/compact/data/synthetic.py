"""Synthetic questions: what compact-asker wrote for passages of the lists, and lists of such questions."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadConfig
from whichsense.files import write_atomically
from whichsense.models.compact.encoder.tokens import joined
from whichsense.train.compact.data.conversion import TrainingQuestion
from whichsense.train.compact.data.list_builder import MAX_SPANS, Span
from whichsense.train.compact.data.pack import Ints, Pack, RaggedArray
from whichsense.train.compact.data.tokenizer import continuations, find_in_passage

SYNTHETIC_FILE = "made.npz"
_SOURCE = "made"
_UNREADABLE = (OSError, ValueError, KeyError, BadZipFile)


@dataclass(frozen=True, slots=True)
class SyntheticQuestions:
    """Questions with their answers, both as word pieces, and the passages that they were written for."""

    lists: Ints
    """The number of the list that a question's passage belongs to."""
    slots: Ints
    """The place of the passage in that list."""
    answers: RaggedArray
    questions: RaggedArray

    @classmethod
    def from_rows(
        cls,
        rows: Sequence[tuple[int, int, Sequence[int], Sequence[int]]],
        dtype: object,
    ) -> SyntheticQuestions:
        """Rows of list, slot, answer and question."""
        lists = []
        slots = []
        answers = []
        questions = []
        for number, slot, answer, question in rows:
            lists.append(number)
            slots.append(slot)
            answers.append(answer)
            questions.append(question)
        return cls(
            np.array(lists, np.int32),
            np.array(slots, np.int32),
            RaggedArray.from_rows(answers, dtype),
            RaggedArray.from_rows(questions, dtype),
        )

    def __len__(self) -> int:
        return len(self.lists)

    def take(self, rows: Ints) -> SyntheticQuestions:
        """Some of the questions, in the order given."""
        return SyntheticQuestions(
            self.lists[rows],
            self.slots[rows],
            self.answers.take(rows),
            self.questions.take(rows),
        )

    def texts(self, vocabulary: Sequence[str]) -> list[str]:
        return _decode(self.questions, vocabulary)

    def save(self, folder: Path, pack: Pack) -> None:
        """Write the questions with a checksum of the lists that they belong to."""
        arrays: dict[str, Ints] = {
            "lists": self.lists,
            "slots": self.slots,
            "of": np.array(_checksum(pack)),
            "answers": self.answers.values,
            "answers_starts": self.answers.starts,
            "questions": self.questions.values,
            "questions_starts": self.questions.starts,
        }
        body = io.BytesIO()
        np.savez(body, allow_pickle=False, **arrays)
        write_atomically(folder / SYNTHETIC_FILE, body.getvalue())

    @classmethod
    def load(cls, folder: Path, pack: Pack) -> SyntheticQuestions:
        """Read what `save` wrote for the same lists."""
        path = folder / SYNTHETIC_FILE
        try:
            questions, checksum = cls._read(path)
        except FileNotFoundError:
            raise BadConfig(
                f"made.folder: there is no '{path}'. compact-asker writes it."
            ) from None
        except _UNREADABLE:
            raise BadConfig(
                f"made.folder: '{path}' cannot be read. Remove it, and run compact-asker: it writes it again."
            ) from None
        # Lists and slots are numbers, which mean other passages in other lists.
        if checksum != _checksum(pack):
            raise BadConfig(
                f"made.folder: the questions of '{folder}' were written for other lists. "
                "Give both recipes the same [data] and [lists]."
            )
        return questions

    @classmethod
    def _read(cls, path: Path) -> tuple[SyntheticQuestions, str]:
        with np.load(path, allow_pickle=False) as file:
            arrays: dict[str, Any] = dict(file)
        questions = cls(
            arrays["lists"],
            arrays["slots"],
            RaggedArray(arrays["answers"], arrays["answers_starts"]),
            RaggedArray(arrays["questions"], arrays["questions_starts"]),
        )
        return questions, str(arrays["of"])


def _checksum(pack: Pack) -> str:
    """Differs for other questions, and for other passages in their lists."""
    digest = hashlib.sha256()
    # Titles come with texts, and spans follow from both.
    for part in (pack.questions, pack.slots, pack.texts):
        digest.update(np.ascontiguousarray(part.values).tobytes())
        digest.update(part.starts.astype(np.int64).tobytes())
    return digest.hexdigest()


def _decode(rows: RaggedArray, vocabulary: Sequence[str]) -> list[str]:
    texts = []
    for row in range(len(rows)):
        pieces = [vocabulary[piece] for piece in rows[row].tolist()]
        texts.append(joined(pieces))
    return texts


def build_synthetic_lists(
    pack: Pack, synthetic: SyntheticQuestions, vocabulary: Sequence[str]
) -> Pack:
    """Each question with the passages of the list that its own comes from. Gold is every occurrence of its answer."""
    # An answer must not end inside a word.
    inside = continuations(vocabulary)
    slots = pack.slots.take(synthetic.lists)
    spans: list[list[Span]] = []
    for number in range(len(synthetic)):
        answer = synthetic.answers[number]
        for row in slots[number].tolist():
            spans.append(_find_spans(pack, row, answer, inside))
    texts = synthetic.texts(vocabulary)
    answers = _decode(synthetic.answers, vocabulary)
    asked = []
    for text, answer_text in zip(texts, answers, strict=True):
        asked.append(TrainingQuestion(text, _SOURCE, ((answer_text,),)))
    return Pack(
        synthetic.questions,
        slots,
        RaggedArray.from_rows(spans, np.int16, width=3),
        pack.titles,
        pack.texts,
        tuple(asked),
    )


def _find_spans(
    pack: Pack, row: int, answer: Ints, inside: NDArray[np.bool_]
) -> list[Span]:
    title = pack.titles[row]
    text = pack.texts[row]
    # Most passages lack even the first piece, which is found out much faster.
    if answer[0] not in title and answer[0] not in text:
        return []
    places = find_in_passage(title.tolist(), text.tolist(), answer.tolist(), inside)
    return [(0, first, last) for first, last in places[:MAX_SPANS]]


def own_slots(lists: Pack, synthetic: SyntheticQuestions) -> Ints:
    """For each list of a synthetic question, the slot of the passage that it was written for."""
    slots: Ints = lists.slots.starts[:-1] + synthetic.slots
    return slots
