"""The dense half of a build: encode passages that have no vector yet, in an order that can stop and go on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from whichsense.errors import BadInput
from whichsense.index.texts import Texts
from whichsense.progress import Progress
from whichsense.stages import Encoder
from whichsense.stopping import Stopped, stop_requested

_CHUNK = 1024


def encoder_of(name: str | None, given: Encoder | None) -> Encoder | None:
    """The encoder that an index was built with: the one given, if it is that one, or loaded by its name."""
    if given is not None and given.name != name:
        raise BadInput(f"The index was encoded with '{name}', not with '{given.name}'. Use the same encoder.")
    if given is None and name is not None:
        from whichsense.models.encoders import load_encoder

        return load_encoder(name)
    return given


def encode_rows(content: Path, encoder: Encoder, rows: range, progress: Progress) -> None:
    """Vectors for these rows of the staged passages. Rows that an earlier, stopped run encoded are passed over."""
    from whichsense.index.vectors import VectorsWriter

    texts = Texts(content)
    with stop_requested() as stop, VectorsWriter(content / "vectors", encoder.dimensions) as vectors:
        for start in range(max(rows.start, vectors.next_row), rows.stop, _CHUNK):
            chunk = range(start, min(start + _CHUNK, rows.stop))
            encoded = encoder.encode_passages([f"{passage.title}\n{passage.text}" for passage in texts.fetch(chunk)])
            vectors.add(np.arange(chunk.start, chunk.stop, dtype=np.uint64), encoded)
            progress((chunk.stop - rows.start) / len(rows), chunk.stop - rows.start)
            if stop():
                vectors.checkpoint()
                raise Stopped("Stopped. Run the same command again: it resumes where it was.")
        vectors.save()
