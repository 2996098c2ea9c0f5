"""Lists of passages as flat arrays: half a million passages as word pieces in a few hundred megabytes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whichsense.files import write_atomically
from whichsense.train.compact.data.questions import Asked, Rewriting

Ints = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of different lengths, one after another in one array."""

    values: Ints
    starts: Ints

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]], dtype: Any, width: int = 0) -> Ragged:
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=starts[1:])
        flat = [item for row in rows for item in row]
        shape = (-1, width) if width else (-1,)
        return cls(np.array(flat, dtype).reshape(shape), starts)

    def chosen(self, rows: Ints) -> Ragged:
        """Some rows, in the order given."""
        sizes = self.sizes(rows)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(starts[-1]) + np.repeat(
            self.starts[rows] - starts[:-1], sizes
        )
        return Ragged(self.values[places], starts)

    @classmethod
    def joined(
        cls, parts: Sequence[Ragged], shifts: Sequence[int] | None = None
    ) -> Ragged:
        """One after another; `shifts` are added to the values of each."""
        moved = [
            part.values + shift
            for part, shift in zip(parts, shifts or [0] * len(parts), strict=True)
        ]
        ends = np.cumsum([0, *(len(part.values) for part in parts)])
        starts = [
            part.starts[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)
        ]
        return cls(np.concatenate(moved), np.concatenate([*starts, ends[-1:]]))

    def __getitem__(self, row: int) -> Ints:
        found: Ints = self.values[self.starts[row] : self.starts[row + 1]]
        return found

    def __len__(self) -> int:
        return len(self.starts) - 1

    def sizes(self, rows: Ints) -> Ints:
        found: Ints = self.starts[rows + 1] - self.starts[rows]
        return found

    def padded(self, rows: Ints, width: int) -> Ints:
        """The first items of some rows side by side (rows × width); what stands behind a shorter one is anything."""
        if not len(self.values):
            return np.zeros(
                (len(rows), width, *self.values.shape[1:]), self.values.dtype
            )
        places = self.starts[rows][:, None] + np.arange(width)
        found: Ints = self.values[np.minimum(places, len(self.values) - 1)]
        return found


@dataclass(frozen=True, slots=True)
class Pack:
    """Lists: a question each, and slots, each of which holds a passage and the spans of answers in it.

    A span is (answer's number, first token, last token), counted from the title's first token on; the text follows the
    title without a gap.
    """

    questions: Ragged
    slots: Ragged
    """For each list the passages in its slots."""
    spans: Ragged
    """For each slot of all lists."""
    titles: Ragged
    texts: Ragged
    asked: tuple[Asked, ...]

    def __len__(self) -> int:
        return len(self.asked)

    def slots_of(self, number: int) -> range:
        return range(int(self.slots.starts[number]), int(self.slots.starts[number + 1]))

    @property
    def holds(self) -> NDArray[np.bool_]:
        """For each slot whether an answer stands in its passage."""
        found: NDArray[np.bool_] = np.diff(self.spans.starts) > 0
        return found

    @property
    def answered(self) -> NDArray[np.bool_]:
        """For each list the same."""
        counts = np.concatenate([[0], np.cumsum(self.holds)])
        found: NDArray[np.bool_] = np.diff(counts[self.slots.starts]) > 0
        return found

    def save(self, path: Path) -> None:
        arrays: dict[str, Ints] = {
            "asked": np.frombuffer(
                json.dumps(list(map(asdict, self.asked))).encode(), np.uint8
            )
        }
        for name in _RAGGED:
            arrays[name], arrays[f"{name}_starts"] = (
                getattr(self, name).values,
                getattr(self, name).starts,
            )
        body = io.BytesIO()
        np.savez(body, allow_pickle=False, **arrays)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, body.getvalue())

    @classmethod
    def load(cls, path: Path) -> Pack:
        with np.load(path, allow_pickle=False) as file:
            parts = {
                name: Ragged(file[name], file[f"{name}_starts"]) for name in _RAGGED
            }
            asked = tuple(
                _asked(table) for table in json.loads(file["asked"].tobytes())
            )
        return cls(**parts, asked=asked)

    @classmethod
    def joined(cls, packs: Iterable[Pack]) -> Pack:
        every = list(packs)
        before = np.cumsum([0, *(len(pack.titles) for pack in every)])[:-1].tolist()
        names = [name for name in _RAGGED if name != "slots"]
        parts = {
            name: Ragged.joined([getattr(pack, name) for pack in every])
            for name in names
        }
        slots = Ragged.joined([pack.slots for pack in every], before)
        return cls(
            **parts,
            slots=slots,
            asked=tuple(one for pack in every for one in pack.asked),
        )

    def followed_by(self, other: Pack) -> Pack:
        """With further lists over the same passages."""
        parts = {
            name: Ragged.joined([getattr(self, name), getattr(other, name)])
            for name in _LISTED
        }
        return replace(self, **parts, asked=self.asked + other.asked)


_LISTED = ("questions", "slots", "spans")
_RAGGED = (*_LISTED, "titles", "texts")


def _asked(table: dict[str, Any]) -> Asked:
    """What the later phases need of a question: the passages that came with it are in its list."""
    rewritings = tuple(
        Rewriting(*(tuple(one[key]) for key in _PARTS)) for one in table["rewritings"]
    )
    answers = tuple(map(tuple, table["answers"]))
    return Asked(
        table["text"],
        table["source"],
        answers,
        rewritings,
        table["ambiguous"],
        complete=table["complete"],
    )


_PARTS = ("rewrites", "answers", "others")
