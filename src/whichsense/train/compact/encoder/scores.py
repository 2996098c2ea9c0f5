"""What the teacher says of every slot of the lists, asked once and kept beside them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from whichsense.errors import BadConfig
from whichsense.files import sha256, write_atomically
from whichsense.jobs.progress import show_progress
from whichsense.models.bert.running import best_device
from whichsense.models.bert.saved import WEIGHTS
from whichsense.train.compact.data.batch import MOST_PIECES, Scores, counted, list_batch
from whichsense.train.compact.data.pack import Pack
from whichsense.train.compact.encoder.losses import start_end
from whichsense.train.loop.batches import Lazy, ahead
from whichsense.train.loop.optimizer import to_device

if TYPE_CHECKING:
    from whichsense.train.compact.encoder.teacher import TeacherNet

_PART = 1000  # lists in one file: what a stop loses at most
_AT_ONCE = 1024  # slots


def taught_scores(teacher: Path, pack: Pack, folder: str, longest: int) -> Scores:
    """Scores of all slots; those that were written before are read."""
    place = (
        Path(folder) / f"scores-{sha256(teacher / WEIGHTS)[:12]}-{longest}"
        if folder
        else None
    )
    parts: list[Scores] = []
    net: TeacherNet | None = None
    with show_progress("asking the teacher", "lists") as progress:
        for start in range(0, len(pack), _PART):
            numbers = range(start, min(start + _PART, len(pack)))
            path = place / f"{start // _PART:05d}.npz" if place else None
            if path is not None and path.exists():
                parts.append(_load(path))
                continue
            net = net or _ready(teacher)
            parts.append(_asked(net, pack, numbers, longest))
            if path is not None:
                _save(path, parts[-1])
            progress(numbers.stop / len(pack), numbers.stop)
    return Scores(
        *(
            np.concatenate(arrays)
            for arrays in zip(*(part[:3] for part in parts), strict=True)
        )
    )


def detected(detectors: Sequence[str], pack: Pack) -> NDArray[np.float32]:
    """The detectors' mean probability that each list's question is ambiguous."""
    from whichsense.models.bert.detector import detector_row, opened, probabilities

    every = []
    for folder in detectors:
        net, inputs, passages = opened(folder)
        if passages:
            raise BadConfig(
                f"'{folder}' reads passages; give detectors of the question alone."
            )
        every.append(
            probabilities(
                net, inputs, [detector_row(inputs, one.text, ()) for one in pack.asked]
            )
        )
    found: NDArray[np.float32] = np.mean(every, axis=0, dtype=np.float32)
    return found


def _ready(teacher: Path) -> TeacherNet:
    from whichsense.train.compact.encoder.teacher import opened

    net = opened(teacher).to(best_device())
    if best_device() == "cuda" and find_spec(
        "triton"
    ):  # which compiles, and does not come with every torch
        net.compile()
    return net


def _asked(net: TeacherNet, pack: Pack, numbers: range, longest: int) -> Scores:
    slots = range(
        pack.slots_of(numbers.start).start, pack.slots_of(numbers.stop - 1).stop
    )
    lists = np.repeat(np.array(numbers), pack.slots.sizes(np.array(numbers)))
    relevance = np.zeros(len(slots), np.float16)
    places = np.zeros((len(slots), 2, MOST_PIECES), np.uint8)
    chances = np.zeros((len(slots), 2, MOST_PIECES), np.float16)
    device = next(net.parameters()).device
    parts = stretches(len(slots), _AT_ONCE)
    made = Lazy(
        parts,
        lambda own: list_batch(
            pack, lists[own].tolist(), [[slot] for slot in slots[own]], longest
        ),
    )
    for own, made_batch in zip(parts, ahead(made), strict=True):
        batch = to_device(made_batch, device)
        with (
            torch.inference_mode(),
            torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"),
        ):
            output = net(batch.pairs)
        logs = torch.stack(start_end(output["span"], batch.pairs.region), 1)
        best = logs.topk(MOST_PIECES, dim=2)
        relevance[own] = output["relevance"].cpu().numpy()
        first, title = batch.pairs.heads[:, :1, None], batch.pairs.heads[:, 1:, None]
        places[own] = counted(best.indices, first, title).clamp(0, 255).cpu().numpy()
        chances[own] = best.values.clamp(min=-30).cpu().numpy()
    return Scores(relevance, places, chances)


def stretches(count: int, size: int) -> list[slice]:
    """So many in parts of one size, for which layers are compiled: the last reaches back.

    >>> stretches(5, 2), stretches(1, 2), stretches(0, 2)
    ([slice(0, 2, None), slice(2, 4, None), slice(3, 5, None)], [slice(0, 1, None)], [])
    """
    ends = [*range(size, count, size), count] if count else []
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
