"""The teacher's scores of every slot of the lists: computed once, stored beside the lists."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from whichsense.files import sha256
from whichsense.jobs.parts import Part, PartCodec, Parts
from whichsense.jobs.progress import show_progress
from whichsense.models.bert.running import best_device
from whichsense.models.bert.saved import WEIGHTS
from whichsense.train.compact.data.batch import (
    TEACHER_TOKENS,
    ListBatch,
    TeacherScores,
    build_list_batch,
)
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.data.pairs import to_passage_places
from whichsense.train.compact.encoder.losses import start_end
from whichsense.train.compact.encoder.teacher_net import TeacherNet, infer, load_teacher
from whichsense.train.loop.batches import Lazy, prefetch
from whichsense.train.loop.optimizer import to_device

_PART = 1000  # lists in one file: what a stop loses at most
_BATCH = 1024  # slots
_LEAST_LOG = -30.0  # log probabilities are stored as float16


def score_lists(teacher: Path, pack: Pack, folder: str, longest: int) -> TeacherScores:
    """Scores of all slots; parts that were stored before are read. `longest`: tokens of a pair.

    `folder` belongs to these lists: stored scores of another teacher or length are kept apart in it.
    """
    scoring = _Scoring(teacher, pack, longest)
    numbers = range(len(pack))
    if not folder:
        return scoring.score(numbers)
    weights = sha256(teacher / WEIGHTS)
    parts = Parts[int, TeacherScores](
        Path(folder) / f"scores-{weights[:12]}-{longest}",
        "lists",
        {"teacher": weights, "longest": longest, "lists": len(pack)},
        size=_PART,
        codec=PartCodec(".npz", _encode, _decode),
    )

    def work(part: Part[int]) -> TeacherScores:
        return scoring.score(part.items)

    with show_progress("asking the teacher", "lists") as progress:
        parts.complete(numbers, work, progress=progress, wait=True)
    return TeacherScores.concatenate(list(parts))


@dataclass(frozen=True)
class _Scoring:
    """The teacher at work. Its weights are loaded when the first part needs them."""

    teacher: Path
    pack: Pack
    longest: int

    @cached_property
    def net(self) -> TeacherNet:
        net = load_teacher(self.teacher).to(best_device())
        # Compiling needs Triton, which does not come with every torch.
        if best_device() == "cuda" and find_spec("triton"):
            net.compile()
        return net

    def score(self, numbers: Sequence[int]) -> TeacherScores:
        """Scores of the slots of consecutive lists."""
        pack = self.pack
        first_slot = pack.slot_range(numbers[0]).start
        slots = range(first_slot, pack.slot_range(numbers[-1]).stop)
        # The list that each slot belongs to.
        rows = np.array(numbers)
        lists = np.repeat(rows, pack.slots.sizes(rows))
        scores = TeacherScores.zeros(len(slots))
        parts = _equal_slices(len(slots), _BATCH)

        def build_batch(part: slice) -> ListBatch:
            single = [[slot] for slot in slots[part]]
            return build_list_batch(pack, lists[part].tolist(), single, self.longest)

        device = next(self.net.parameters()).device
        batches = prefetch(Lazy(parts, build_batch))
        for part, batch in zip(parts, batches, strict=True):
            best = _score_batch(self.net, to_device(batch, device))
            scores.relevance[part] = best.relevance
            scores.places[part] = best.places
            scores.chances[part] = best.chances
        return scores


def _score_batch(net: TeacherNet, batch: ListBatch) -> TeacherScores:
    output = infer(net, batch.pairs)
    # Pairs × 2 × tokens: log probabilities to be an answer's first and last token.
    first, last = start_end(output["span"], batch.pairs.region)
    logs = torch.stack([first, last], 1)
    best = logs.topk(TEACHER_TOKENS, dim=2)
    title_start = batch.pairs.heads[:, :1, None]
    title_size = batch.pairs.heads[:, 1:, None]
    places = to_passage_places(best.indices, title_start, title_size)
    return TeacherScores(
        output["relevance"].cpu().numpy(),
        places.clamp(0, 255).cpu().numpy(),  # stored as uint8
        best.values.clamp(min=_LEAST_LOG).cpu().numpy(),
    )


def _equal_slices(count: int, size: int) -> list[slice]:
    """Slices of one size, for which layers are compiled, over `count` items: the last overlaps the one before.

    >>> _equal_slices(5, 2), _equal_slices(1, 2), _equal_slices(0, 2)
    ([slice(0, 2, None), slice(2, 4, None), slice(3, 5, None)], [slice(0, 1, None)], [])
    """
    if not count:
        return []
    slices = []
    for end in (*range(size, count, size), count):
        slices.append(slice(max(0, end - size), end))
    return slices


def _encode(scores: TeacherScores) -> bytes:
    body = io.BytesIO()
    np.savez(body, **scores._asdict())
    return body.getvalue()


def _decode(body: bytes) -> TeacherScores:
    with np.load(io.BytesIO(body), allow_pickle=False) as file:
        return TeacherScores(file["relevance"], file["places"], file["chances"])
