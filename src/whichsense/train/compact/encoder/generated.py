"""Questions that a model made for passages of the lists: kept, checked by the teacher, learnt from as lists."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whichsense.errors import BadConfig
from whichsense.files import write_atomically
from whichsense.jobs.progress import show_progress
from whichsense.models.compact.encoder.tokens import joined
from whichsense.train.compact.data.batch import ListBatch, list_batch
from whichsense.train.compact.data.lists import SPANS, Span, places_in
from whichsense.train.compact.data.pack import Ints, Pack, Ragged
from whichsense.train.compact.data.questions import Asked
from whichsense.train.compact.encoder.losses import start_end
from whichsense.train.loop.batches import Lazy, ahead
from whichsense.train.loop.optimizer import to_device

if TYPE_CHECKING:
    from whichsense.train.compact.encoder.teacher import TeacherNet

MADE = "made.npz"
SOURCE = "made"
_AT_ONCE = 512  # pairs that the teacher reads
_ENDS, _LONGEST = (
    8,
    15,
)  # likeliest first and last tokens of a span, and the most tokens between them


@dataclass(frozen=True, slots=True)
class Made:
    """Each with the list and the slot, counted from the list's first, whose passage it was made for, and its answer."""

    lists: Ints
    slots: Ints
    answers: Ragged
    questions: Ragged

    @classmethod
    def of(
        cls,
        rows: Sequence[tuple[int, int, Sequence[int], Sequence[int]]],
        dtype: object,
    ) -> Made:
        lists, slots, answers, questions = (
            zip(*rows, strict=True) if rows else ((), (), (), ())
        )
        places = np.array(lists, np.int32), np.array(slots, np.int32)
        return cls(*places, Ragged.of(answers, dtype), Ragged.of(questions, dtype))

    def __len__(self) -> int:
        return len(self.lists)

    def chosen(self, rows: Ints) -> Made:
        return Made(
            self.lists[rows],
            self.slots[rows],
            self.answers.chosen(rows),
            self.questions.chosen(rows),
        )

    def texts(self, vocabulary: Sequence[str]) -> list[str]:
        """The questions as they read."""
        return [
            joined([vocabulary[piece] for piece in self.questions[row].tolist()])
            for row in range(len(self))
        ]

    def save(self, folder: Path, pack: Pack) -> None:
        """With a sign of the lists that they belong to."""
        arrays: dict[str, Ints] = {
            "lists": self.lists,
            "slots": self.slots,
            "of": np.array(_sign(pack)),
        }
        for name in ("answers", "questions"):
            arrays[name], arrays[f"{name}_starts"] = (
                getattr(self, name).values,
                getattr(self, name).starts,
            )
        body = io.BytesIO()
        np.savez(body, allow_pickle=False, **arrays)
        write_atomically(folder / MADE, body.getvalue())

    @classmethod
    def load(cls, folder: Path, pack: Pack) -> Made:
        try:
            with np.load(folder / MADE, allow_pickle=False) as file:
                arrays = dict(file)
            ragged = [
                Ragged(arrays[name], arrays[f"{name}_starts"])
                for name in ("answers", "questions")
            ]
            lists, slots, of = (arrays[name] for name in ("lists", "slots", "of"))
        except FileNotFoundError:
            raise BadConfig(
                f"made.folder: there is no '{folder / MADE}'. compact-asker writes it."
            ) from None
        except (OSError, ValueError, KeyError, BadZipFile):
            raise BadConfig(
                f"made.folder: '{folder / MADE}' cannot be read. Remove it, and run compact-asker: it makes it again."
            ) from None
        if str(of) != _sign(pack):
            raise BadConfig(
                f"made.folder: the questions of '{folder}' were made for other lists. Give both recipes one."
            )
        return cls(lists, slots, *ragged)


def _sign(pack: Pack) -> str:
    """Other questions, or other passages in their lists, have another."""
    found = hashlib.sha256()
    for part in (pack.questions, pack.slots, pack.texts):
        found.update(np.ascontiguousarray(part.values).tobytes())
        found.update(part.starts.astype(np.int64).tobytes())
    return found.hexdigest()


def lists_of(pack: Pack, made: Made, vocabulary: Sequence[str]) -> Pack:
    """Each question with the passages of the list that its own comes from; right is wherever its answer stands."""
    inside = np.array([piece.startswith("##") for piece in vocabulary])
    slots = pack.slots.chosen(made.lists)
    spans: list[list[Span]] = []
    for place in range(len(made)):
        spans += [
            _spans(pack, row, made.answers[place], inside)
            for row in slots[place].tolist()
        ]
    names = [
        joined([vocabulary[piece] for piece in made.answers[place].tolist()])
        for place in range(len(made))
    ]
    asked = [
        Asked(text, SOURCE, ((name,),))
        for text, name in zip(made.texts(vocabulary), names, strict=True)
    ]
    return Pack(
        made.questions,
        slots,
        Ragged.of(spans, np.int16, width=3),
        pack.titles,
        pack.texts,
        tuple(asked),
    )


def _spans(pack: Pack, row: int, answer: Ints, inside: NDArray[np.bool_]) -> list[Span]:
    title, text = pack.titles[row], pack.texts[row]
    if (
        answer[0] not in title and answer[0] not in text
    ):  # nearly always, and much sooner known
        return []
    places = places_in(title.tolist(), text.tolist(), answer.tolist(), inside)
    return [(0, first, last) for first, last in places[:SPANS]]


def own_slots(lists: Pack, made: Made) -> Ints:
    """For each list of made questions the slot whose passage its question was made for."""
    found: Ints = lists.slots.starts[:-1] + made.slots
    return found


def believed(
    net: TeacherNet,
    lists: Pack,
    slots: Ints,
    longest: int,
    *,
    agreed: float,
    relevance: float,
) -> NDArray[np.bool_]:
    """Which questions the teacher answers as they were meant, from the passage that they were made for: its best span
    shares `agreed` (F1 of tokens) with a gold one, and it scores the passage higher than `relevance`."""
    device = next(net.parameters()).device
    parts = [
        range(start, min(start + _AT_ONCE, len(lists)))
        for start in range(0, len(lists), _AT_ONCE)
    ]
    batches = Lazy(
        parts,
        lambda some: list_batch(
            lists, some, [[slot] for slot in slots[list(some)]], longest
        ),
    )
    found = np.zeros(len(lists), bool)
    with show_progress("asking the teacher", "questions") as progress:
        for some, made_batch in zip(parts, ahead(batches), strict=True):
            batch = to_device(made_batch, device)
            with (
                torch.inference_mode(),
                torch.autocast(
                    device.type, torch.bfloat16, enabled=device.type == "cuda"
                ),
            ):
                said = net(batch.pairs)
            good = (_shared(said["span"], batch) >= agreed) & (
                said["relevance"].flatten() > relevance
            )
            found[some.start : some.stop] = good.cpu().numpy()
            progress(some.stop / len(lists), some.stop)
    return found


def _shared(span: Tensor, batch: ListBatch) -> Tensor:
    """How much the likeliest span of each pair has in common with the gold one that is most like it: F1 of tokens."""
    first, last = best_spans(span, batch)
    gold_first, gold_last, there = (
        batch.first[:, 0],
        batch.last[:, 0],
        batch.answer[:, 0] >= 0,
    )
    common = torch.minimum(last, gold_last) - torch.maximum(first, gold_first) + 1
    sizes = (last - first + 1) + (gold_last - gold_first + 1)
    return (2 * common.clamp(min=0) / sizes).masked_fill(~there, 0).amax(1)


def best_spans(span: Tensor, batch: ListBatch) -> tuple[Tensor, Tensor]:
    """The first and the last token of each pair's likeliest span (pairs × 1)."""
    starts, ends = (
        logs.topk(_ENDS, dim=1) for logs in start_end(span.float(), batch.pairs.region)
    )
    gap = ends.indices[:, None, :] - starts.indices[:, :, None]
    scores = starts.values[:, :, None] + ends.values[:, None, :]
    best = (
        scores.masked_fill((gap < 0) | (gap >= _LONGEST), float("-inf"))
        .flatten(1)
        .argmax(1, keepdim=True)
    )
    return starts.indices.gather(1, best // _ENDS), ends.indices.gather(1, best % _ENDS)
