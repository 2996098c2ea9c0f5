"""The teacher's scores of every slot of the lists: computed once, stored beside the lists."""

from __future__ import annotations

import io
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from whichsense.files import sha256, write_atomically
from whichsense.jobs.progress import shown, silent
from whichsense.models.bert.running import best_device
from whichsense.models.bert.saved import WEIGHTS
from whichsense.train.compact.data.batch import (
    MOST_PIECES,
    ListBatch,
    Scores,
    counted,
    list_batch,
)
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.encoder.losses import start_end
from whichsense.train.compact.encoder.teacher_net import TeacherNet, load_teacher
from whichsense.train.loop.batches import Lazy, ahead
from whichsense.train.loop.optimizer import to_device
from whichsense.train.loop.processes import speaks

_PART = 1000  # lists in one file: what a stop loses at most
_BATCH = 1024  # slots
_LEAST_LOG = -30.0  # log probabilities are stored as float16


def score_lists(teacher: Path, pack: Pack, folder: str, longest: int) -> Scores:
    """Scores of all slots; parts that were stored before are read. `longest`: tokens of a pair."""
    place = None
    if folder:
        place = Path(folder) / f"scores-{sha256(teacher / WEIGHTS)[:12]}-{longest}"
    parts: list[Scores] = []
    net: TeacherNet | None = None
    with (
        shown("asking the teacher", "lists")
        if speaks()
        else nullcontext(silent) as progress
    ):
        for start in range(0, len(pack), _PART):
            numbers = range(start, min(start + _PART, len(pack)))
            path = place / f"{start // _PART:05d}.npz" if place else None
            if path is not None and path.exists():
                parts.append(_load(path))
                continue
            net = net or _load_on_device(teacher)
            parts.append(_score_part(net, pack, numbers, longest))
            if path is not None:
                _save(path, parts[-1])
            progress(numbers.stop / len(pack), numbers.stop)
    return Scores.concatenate(parts)


def _load_on_device(teacher: Path) -> TeacherNet:
    net = load_teacher(teacher).to(best_device())
    # Compiling needs Triton, which does not come with every torch.
    if best_device() == "cuda" and find_spec("triton"):
        net.compile()
    return net


def _score_part(net: TeacherNet, pack: Pack, numbers: range, longest: int) -> Scores:
    """Scores of the slots of consecutive lists."""
    first_slot = pack.slots_of(numbers.start).start
    slots = range(first_slot, pack.slots_of(numbers.stop - 1).stop)
    # The list that each slot belongs to.
    lists = np.repeat(np.array(numbers), pack.slots.sizes(np.array(numbers)))
    scores = Scores.zeros(len(slots))
    parts = equal_slices(len(slots), _BATCH)

    def build_batch(part: slice) -> ListBatch:
        single = [[slot] for slot in slots[part]]
        return list_batch(pack, lists[part].tolist(), single, longest)

    device = next(net.parameters()).device
    for part, batch in zip(parts, ahead(Lazy(parts, build_batch)), strict=True):
        best = _score_batch(net, to_device(batch, device))
        scores.relevance[part] = best.relevance
        scores.places[part] = best.places
        scores.chances[part] = best.chances
    return scores


def _score_batch(net: TeacherNet, batch: ListBatch) -> Scores:
    device = batch.valid.device
    on_gpu = device.type == "cuda"
    with (
        torch.inference_mode(),
        torch.autocast(device.type, torch.bfloat16, enabled=on_gpu),
    ):
        output = net(batch.pairs)
    # Pairs × 2 × tokens: log probabilities to be an answer's first and last token.
    logs = torch.stack(start_end(output["span"], batch.pairs.region), 1)
    best = logs.topk(MOST_PIECES, dim=2)
    heads = batch.pairs.heads
    places = counted(best.indices, heads[:, :1, None], heads[:, 1:, None])
    return Scores(
        output["relevance"].cpu().numpy(),
        places.clamp(0, 255).cpu().numpy(),
        best.values.clamp(min=_LEAST_LOG).cpu().numpy(),
    )


def equal_slices(count: int, size: int) -> list[slice]:
    """Slices of one size, for which layers are compiled, over `count` items: the last overlaps the one before.

    >>> equal_slices(5, 2), equal_slices(1, 2), equal_slices(0, 2)
    ([slice(0, 2, None), slice(2, 4, None), slice(3, 5, None)], [slice(0, 1, None)], [])
    """
    if not count:
        return []
    ends = [*range(size, count, size), count]
    return [slice(max(0, end - size), end) for end in ends]


def _save(path: Path, scores: Scores) -> None:
    body = io.BytesIO()
    np.savez(
        body, relevance=scores.relevance, places=scores.places, chances=scores.chances
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, body.getvalue())


def _load(path: Path) -> Scores:
    with np.load(path, allow_pickle=False) as file:
        return Scores(file["relevance"], file["places"], file["chances"])
