"""Lists of passages as flat arrays: half a million passages as word pieces in a few hundred megabytes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.train.compact.data.conversion import GoldRewrite, TrainingQuestion

Ints = NDArray[Any]
_Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RaggedArray:
    """Rows of different lengths, one after another in one array."""

    values: Ints
    starts: Ints
    """The place of each row's first item, and last the number of items."""

    @classmethod
    def from_rows(
        cls, rows: Sequence[Sequence[Any]], dtype: Any, width: int = 0
    ) -> RaggedArray:
        """`width`: numbers of an item; 0 if items are single numbers."""
        # Row r is values[starts[r]:starts[r + 1]].
        starts = np.zeros(len(rows) + 1, np.int64)
        sizes = [len(row) for row in rows]
        np.cumsum(sizes, out=starts[1:])
        items: list[Any] = []
        for row in rows:
            items += row
        shape = (-1, width) if width else (-1,)
        return cls(np.array(items, dtype).reshape(shape), starts)

    @classmethod
    def concatenate(
        cls, parts: Sequence[RaggedArray], shifts: Sequence[int] | None = None
    ) -> RaggedArray:
        """The rows of all parts; `shifts` are added to the values of each part."""
        values = []
        starts = []
        end = 0
        for part, shift in zip(parts, shifts or [0] * len(parts), strict=True):
            values.append(part.values + shift)
            starts.append(part.starts[:-1] + end)
            end += len(part.values)
        starts.append(np.array([end]))
        return cls(np.concatenate(values), np.concatenate(starts))

    def take(self, rows: Ints) -> RaggedArray:
        """Some rows, in the order given."""
        sizes = self.sizes(rows)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        # For every item of the result, its place in the values.
        shifts = self.starts[rows] - starts[:-1]
        places = np.arange(starts[-1]) + np.repeat(shifts, sizes)
        return RaggedArray(self.values[places], starts)

    def __getitem__(self, row: int) -> Ints:
        first = self.starts[row]
        end = self.starts[row + 1]
        values: Ints = self.values[first:end]
        return values

    def __len__(self) -> int:
        return len(self.starts) - 1

    def sizes(self, rows: Ints) -> Ints:
        sizes: Ints = self.starts[rows + 1] - self.starts[rows]
        return sizes

    def padded(self, rows: Ints, width: int) -> Ints:
        """The first items of some rows side by side (rows × width). Behind a shorter row the values are arbitrary."""
        if not len(self.values):
            shape = (len(rows), width, *self.values.shape[1:])
            return np.zeros(shape, self.values.dtype)
        places = self.starts[rows][:, None] + np.arange(width)
        # The last rows would reach beyond the end.
        places = np.minimum(places, len(self.values) - 1)
        values: Ints = self.values[places]
        return values


@dataclass(frozen=True, slots=True)
class Pack:
    """Lists of passages. Texts are word pieces; a passage is stored once, whatever the number of its lists.

    A slot is a place in a list: slots of all lists are numbered one after another. A span is (answer's number, first
    token, last token), counted from the title's first token on; the text follows the title without a gap.
    """

    questions: RaggedArray
    slots: RaggedArray
    """For each list, the passages in its slots."""
    spans: RaggedArray
    """For each slot of all lists."""
    titles: RaggedArray
    texts: RaggedArray
    asked: tuple[TrainingQuestion, ...]

    def __len__(self) -> int:
        return len(self.asked)

    def slot_range(self, number: int) -> range:
        """The slots of a list."""
        first = int(self.slots.starts[number])
        end = int(self.slots.starts[number + 1])
        return range(first, end)

    def passage(self, row: int) -> tuple[list[int], list[int]]:
        """The title and the text of a passage."""
        return self.titles[row].tolist(), self.texts[row].tolist()

    def passage_of(self, slot: int) -> int:
        """The row of the passage in a slot."""
        return int(self.slots.values[slot])

    @property
    def slot_has_answer(self) -> _Bools:
        """For each slot, whether its passage holds an answer."""
        return np.asarray(np.diff(self.spans.starts) > 0)

    @property
    def has_answer(self) -> _Bools:
        """For each list, whether one of its passages holds an answer."""
        # The number of such slots before each slot.
        counts = np.concatenate([[0], np.cumsum(self.slot_has_answer)])
        return np.asarray(np.diff(counts[self.slots.starts]) > 0)

    def to_bytes(self) -> bytes:
        """An npz archive, which `from_bytes` reads."""
        questions = json.dumps([asdict(one) for one in self.asked])
        # Text is stored as bytes: an array of objects would need pickle.
        asked = np.frombuffer(questions.encode(), np.uint8)
        arrays: dict[str, Ints] = {"asked": asked}
        for name in _ARRAYS:
            array: RaggedArray = getattr(self, name)
            arrays[name] = array.values
            arrays[f"{name}_starts"] = array.starts
        body = io.BytesIO()
        np.savez(body, allow_pickle=False, **arrays)
        return body.getvalue()

    @classmethod
    def from_bytes(cls, body: bytes) -> Pack:
        arrays = {}
        with np.load(io.BytesIO(body), allow_pickle=False) as file:
            for name in _ARRAYS:
                arrays[name] = RaggedArray(file[name], file[f"{name}_starts"])
            tables = json.loads(file["asked"].tobytes())
        return cls(**arrays, asked=tuple(_question(table) for table in tables))

    @classmethod
    def concatenate(cls, packs: Iterable[Pack]) -> Pack:
        """The lists of all packs, each with its own passages."""
        every = list(packs)
        first_passages = [0]
        asked: list[TrainingQuestion] = []
        for pack in every:
            first_passages.append(first_passages[-1] + len(pack.titles))
            asked += pack.asked
        arrays = {}
        for name in _ARRAYS:
            # Slots hold the numbers of passages, which move.
            shifts = first_passages[:-1] if name == "slots" else None
            parts = [getattr(pack, name) for pack in every]
            arrays[name] = RaggedArray.concatenate(parts, shifts)
        return cls(**arrays, asked=tuple(asked))

    def extended_with(self, other: Pack) -> Pack:
        """With further lists over the same passages."""
        arrays = {}
        for name in _LIST_ARRAYS:
            parts = [getattr(self, name), getattr(other, name)]
            arrays[name] = RaggedArray.concatenate(parts)
        return replace(self, **arrays, asked=self.asked + other.asked)


_LIST_ARRAYS = ("questions", "slots", "spans")
_ARRAYS = (*_LIST_ARRAYS, "titles", "texts")


def _question(table: dict[str, Any]) -> TrainingQuestion:
    """What training needs of a question: the passages that came with it are in its list."""
    # JSON has lists where the record has tuples.
    rewritings = []
    for reading in table["rewritings"]:
        rewrites = tuple(reading["rewrites"])
        answers = tuple(reading["answers"])
        others = tuple(reading["others"])
        rewritings.append(GoldRewrite(rewrites, answers, others))
    return TrainingQuestion(
        table["text"],
        table["source"],
        tuple(map(tuple, table["answers"])),
        tuple(rewritings),
        table["ambiguous"],
        complete=table["complete"],
        refuted=table.get("refuted", False),
    )
