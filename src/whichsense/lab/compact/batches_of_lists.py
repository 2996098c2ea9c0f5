"""Batches of lists, and lists with synthetic questions."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.errors import BadConfig
from whichsense.files import write_atomically
from whichsense.lab.compact.lists import (
    MAX_ANSWERS,
    MAX_SPANS,
    Ints,
    Pack,
    PairTensors,
    RaggedArray,
    Span,
    build_pairs,
    continuations,
    find_in_passage,
    to_pair_places,
)
from whichsense.lab.compact.questions import TrainingQuestion
from whichsense.models.compact.encoder import joined
from whichsense.types import frozen

# Batches of lists: pairs of a question and a passage as tensors, with gold spans and the teacher's
# soft labels.

TEACHER_TOKENS = 6  # likeliest first and last tokens of a passage that have soft labels
_POSITIVE_BONUS = 0.6  # of a passage that holds an answer, when slots are drawn
_NO_SLOT = -1


class SoftLabels(NamedTuple):
    """The teacher's scores of the passages of a batch."""

    relevance: Tensor
    """Lists × slots."""
    places: Tensor
    """Pairs × 2 × tokens: likely first and last tokens of an answer, as places in the pair."""
    chances: Tensor
    """Pairs × 2 × tokens: their probabilities."""


class ListBatch(NamedTuple):
    """Lists × slots. Gold spans are places in the pairs (lists × slots × spans)."""

    pairs: PairTensors
    valid: Tensor
    """Lists × slots: whether a slot holds a passage."""
    held: Tensor
    """Lists × slots × answers: which passage holds which answer."""
    first: Tensor
    last: Tensor
    answer: Tensor
    """The number of the span's answer; -1 where there is no span."""
    complete: Tensor
    """Lists: whether the answers are all that the passages give."""
    refuted: Tensor
    """Lists: whether the answers are wrong."""
    ambiguous: Tensor
    """Lists: 1 if the question has several readings, 0 if it has not, -1 without a label."""
    taught: SoftLabels | None = None
    alone: bool = False
    """Whether the last slot of each list, which is never valid, holds its question without a passage."""


class TeacherScores(NamedTuple):
    """The teacher's scores of every slot of a pack."""

    relevance: NDArray[Any]
    """Slots."""
    places: NDArray[Any]
    """Slots × 2 × tokens: likely first and last tokens, counted from the title's first token."""
    chances: NDArray[Any]
    """Slots × 2 × tokens: their log probabilities."""

    @classmethod
    def zeros(cls, slots: int) -> TeacherScores:
        tokens = (slots, 2, TEACHER_TOKENS)
        return cls(
            np.zeros(slots, np.float16), np.zeros(tokens, np.uint8), np.zeros(tokens, np.float16)
        )

    @classmethod
    def concatenate(cls, parts: Sequence[TeacherScores]) -> TeacherScores:
        relevance, places, chances = zip(*parts, strict=True)
        return cls(np.concatenate(relevance), np.concatenate(places), np.concatenate(chances))


def sample_slots(pack: Pack, number: int, count: int, rng: np.random.Generator) -> list[int]:
    """Some slots of a list in their order; slots that hold an answer are more likely."""
    slots = pack.slot_range(number)
    if len(slots) <= count:
        return list(slots)
    # A slot is positive if it has spans.
    positive = np.diff(pack.spans.starts[slots.start : slots.stop + 1]) > 0
    keys = rng.random(len(slots)) + _POSITIVE_BONUS * positive
    return sorted((np.argpartition(-keys, count)[:count] + slots.start).tolist())


def build_list_batch(
    pack: Pack,
    numbers: Sequence[int],
    slots: Sequence[Sequence[int]],
    longest: int,
    scores: TeacherScores | None = None,
    *,
    alone: bool = False,
) -> ListBatch:
    """Lists with some of their slots, all of one width. No loop runs over pairs: the GPU would wait for it.

    `longest`: tokens of a pair. `alone`: a last slot of each list holds the question without a passage.
    """
    table = _slot_table(slots, alone=alone)  # lists × slots
    flat = table.reshape(-1)
    bare = np.zeros(table.shape, bool)  # pairs without a passage
    bare[:, -1] = alone
    pair_lists = np.repeat(np.array(numbers), table.shape[1])
    # A slot without a passage reads as the first slot, and is masked by `valid`.
    rows = pack.slots.values[np.maximum(flat, 0)].astype(np.int64)
    pairs, sizes = build_pairs(pack, pair_lists, rows, longest, bare.reshape(-1))
    heads = pairs.heads.numpy()
    taught = None
    if scores is not None:
        taught = _soft_labels(scores, table, heads, longest)
    questions = [pack.asked[number] for number in numbers]
    return ListBatch(
        pairs,
        torch.from_numpy(table >= 0),
        *_gold_spans(pack, table, heads, sizes),
        complete=torch.tensor([one.complete for one in questions]),
        refuted=torch.tensor([one.refuted for one in questions]),
        ambiguous=torch.tensor([float(one.ambiguous) for one in questions]),
        taught=taught,
        alone=alone,
    )


def _slot_table(slots: Sequence[Sequence[int]], *, alone: bool) -> NDArray[np.int64]:
    """Slots side by side, filled up with -1 (lists × slots)."""
    width = max(1, *map(len, slots))
    if alone:
        width += 1
    table = np.full((len(slots), width), _NO_SLOT, np.int64)
    for row, own in enumerate(slots):
        table[row, : len(own)] = own
    return table


def _gold_spans(
    pack: Pack, table: NDArray[np.int64], heads: Ints, sizes: Ints
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Which answers each passage holds (lists × slots × answers); first tokens, last tokens and answers of the spans
    (lists × slots × spans)."""
    flat = table.reshape(-1)
    slots = np.maximum(flat, 0)
    spans = pack.spans.padded(slots, MAX_SPANS).astype(np.int64)  # pairs × spans × 3
    answers = spans[..., 0]
    places = to_pair_places(spans[..., 1:], heads[:, :1, None], heads[:, 1:, None])
    first = places[..., 0]
    last = places[..., 1]
    # Padding is not a span, nor is what was cut off at the end of a pair.
    counts = pack.spans.sizes(slots)
    exists = np.arange(MAX_SPANS) < counts[:, None]
    exists &= (flat >= 0)[:, None]
    exists &= last < sizes[:, None] - 1
    held = np.zeros((len(flat), MAX_ANSWERS), bool)
    held[np.nonzero(exists)[0], answers[exists]] = True
    arrays = (
        held,
        np.where(exists, first, 0),
        np.where(exists, last, 0),
        np.where(exists, answers, -1),
    )
    shape = (*table.shape, -1)
    tensors = [torch.from_numpy(array.reshape(shape)) for array in arrays]
    return tensors[0], tensors[1], tensors[2], tensors[3]


def _soft_labels(
    scores: TeacherScores, table: NDArray[np.int64], heads: Ints, longest: int
) -> SoftLabels:
    slots = np.maximum(table.reshape(-1), 0)
    places = scores.places[slots].astype(np.int64)
    places = to_pair_places(places, heads[:, :1, None], heads[:, 1:, None])
    relevance = scores.relevance[slots].reshape(table.shape)
    chances = np.exp(scores.chances[slots].astype(np.float32))
    return SoftLabels(
        torch.from_numpy(relevance.astype(np.float32)),
        torch.from_numpy(np.minimum(places, longest - 1)),
        torch.from_numpy(chances),
    )


# Synthetic questions: what compact-asker wrote for passages of the lists, and lists of such
# questions.

SYNTHETIC_FILE = "made.npz"
_SOURCE = "made"
_UNREADABLE = (OSError, ValueError, KeyError, BadZipFile)


@frozen
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
        cls, rows: Sequence[tuple[int, int, Sequence[int], Sequence[int]]], dtype: object
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
            self.lists[rows], self.slots[rows], self.answers.take(rows), self.questions.take(rows)
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
    return [joined([vocabulary[piece] for piece in rows[row].tolist()]) for row in range(len(rows))]


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
        spans.extend(_find_spans(pack, row, answer, inside) for row in slots[number].tolist())
    texts = synthetic.texts(vocabulary)
    answers = _decode(synthetic.answers, vocabulary)
    asked = [
        TrainingQuestion(text, _SOURCE, ((answer_text,),))
        for text, answer_text in zip(texts, answers, strict=True)
    ]
    return Pack(
        synthetic.questions,
        slots,
        RaggedArray.from_rows(spans, np.int16, width=3),
        pack.titles,
        pack.texts,
        tuple(asked),
    )


def _find_spans(pack: Pack, row: int, answer: Ints, inside: NDArray[np.bool_]) -> list[Span]:
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
