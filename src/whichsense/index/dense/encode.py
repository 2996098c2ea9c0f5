"""The dense half of a build: encode passages that have no vector yet, in an order that can stop and go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whichsense.errors import BadInput
from whichsense.index.lexical.generation import Texts
from whichsense.jobs.progress import Progress
from whichsense.jobs.stopping import Stopped, stop_requested
from whichsense.protocols import Encoder

_CHUNK = 1024  # passages between two looks at a requested stop


def encoder_of(name: str | None, given: Encoder | None) -> Encoder | None:
    """The encoder that an index was built with: the one given, if it is that one, or loaded by its name."""
    if given is not None and given.name != name:
        raise BadInput(
            f"The index was encoded with '{name}', not with '{given.name}'. Use the same encoder."
        )
    if given is None and name is not None:
        from whichsense.models.vectors.encoders import load_encoder

        return load_encoder(name)
    return given


def encode_rows(
    content: Path,
    encoder: Encoder,
    rows: range,
    progress: Progress,
    say: Callable[[str], None],
) -> None:
    """Vectors for these rows of the staged passages. Rows that an earlier, stopped run encoded are passed over.

    They wait in flat files until `put_into_lists`.
    """
    from whichsense.index.dense.writer import VectorsWriter

    texts = Texts(content)
    with (
        stop_requested() as stop,
        VectorsWriter(content / "vectors", encoder.dimensions) as vectors,
    ):
        todo = range(max(rows.start, vectors.next_row), rows.stop)
        if len(todo) > _CHUNK:
            say(_estimated(encoder, texts, todo))
        for start in range(todo.start, todo.stop, _CHUNK):
            chunk = range(start, min(start + _CHUNK, rows.stop))
            encoded = encoder.encode_passages(_to_encode(texts, chunk))
            vectors.add(np.arange(chunk.start, chunk.stop, dtype=np.uint64), encoded)
            progress((chunk.stop - rows.start) / len(rows), chunk.stop - rows.start)
            if stop():
                vectors.checkpoint()
                raise Stopped(
                    "Stopped. Run the same command again: it resumes where it was."
                )
        vectors.checkpoint()


def put_into_lists(
    content: Path, encoder: Encoder, centres: NDArray[np.float32] | None = None
) -> None:
    """Make the vectors that wait searchable. `centres` are those of the lists, where they are given from outside."""
    from whichsense.index.dense.writer import VectorsWriter

    with VectorsWriter(content / "vectors", encoder.dimensions) as vectors:
        vectors.save(centres)


def _to_encode(texts: Texts, rows: Sequence[int]) -> list[str]:
    return [f"{passage.title}\n{passage.text}" for passage in texts.fetch(rows)]


def _estimated(encoder: Encoder, texts: Texts, todo: range) -> str:
    """How long it will take: encoding can cost far more than indexing, so this is said before it starts."""
    from whichsense.models.vectors.encoders import estimate

    rate = estimate(encoder, _to_encode(texts, todo[:256]))
    duration = timedelta(seconds=round(len(todo) / rate))
    return (
        f"Encoding {len(todo):,} passages with '{encoder.name}' at about {rate:,.0f} a second takes about {duration}. "
        "Ctrl-C stops it; the same command resumes."
    )
