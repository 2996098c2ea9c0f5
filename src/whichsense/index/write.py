"""Changing an index: build, add, delete. Each stages a whole next generation and publishes it at the end."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whichsense.corpus import Corpus, Seen
from whichsense.corpus.duplicates import fingerprint
from whichsense.index import folder as folders
from whichsense.index import publish
from whichsense.index.dense.encode import encode_rows, encoder_of
from whichsense.index.folder import Manifest
from whichsense.index.lexical.engine import LexicalWriter
from whichsense.index.lexical.generation import Texts
from whichsense.index.staging import (
    Staging,
    load_fingerprints,
    save_deleted,
    save_fingerprints,
    staged_job,
)
from whichsense.jobs.progress import Progress, silent, unsaid
from whichsense.jobs.stopping import Stopped, stop_requested
from whichsense.protocols import Encoder
from whichsense.text.words import whole_characters
from whichsense.types import Passage

CHECKPOINT_SECONDS, PROGRESS_SECONDS = 60.0, 0.2


@dataclass(frozen=True, slots=True)
class Cutting:
    """How documents become passages: `words` white-space words each, or whole sentences up to that many."""

    words: int = 100
    sentences: bool = False


def build(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    cutting: Cutting | None = None,
    encoder: Encoder | None = None,
    format: str | None = None,
    encoding: str | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = unsaid,
) -> Manifest:
    """Make an index of the sources at `out`. What stood there is served until the new one is whole."""
    out, corpus = Path(out), Corpus(sources, format=format, encoding=encoding)
    corpus.fingerprint  # noqa: B018 (looks for the files: a wrong path is told before a folder is made)
    with folders.writing(out, "index build"):
        return _grow(
            out,
            corpus,
            cutting or Cutting(),
            encoder=encoder,
            base=None,
            progress=progress,
            say=say,
        )


def add(
    sources: Sequence[str | Path],
    index: str | Path,
    *,
    encoder: Encoder | None = None,
    format: str | None = None,
    encoding: str | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = unsaid,
) -> Manifest:
    """Add sources to an index, cut and encoded as the rest of it was."""
    # The file's name goes into the ids, so that document 1 of this file is not document 1 of another.
    index, corpus = (
        Path(index),
        Corpus(sources, format=format, encoding=encoding, prefix=True),
    )
    folders.read_changeable(
        index
    )  # before the lock, so that a mistyped folder is not made
    corpus.fingerprint  # noqa: B018 (nor for a mistyped source)
    with folders.writing(index, "index add"):
        base = folders.read_changeable(index)
        encoder = encoder_of(base.encoder, encoder)
        cutting = Cutting(**base.settings)
        return _grow(
            index,
            corpus,
            cutting,
            encoder=encoder,
            base=base,
            progress=progress,
            say=say,
        )


def delete(
    index: str | Path, ids: Iterable[str] = (), sources: Iterable[str] = ()
) -> tuple[Manifest, int]:
    """Remove passages by document id, passage id or source; says how many went."""
    index = Path(index)
    folders.read_changeable(index)
    with folders.writing(index, "index delete"):
        base = folders.read_changeable(index)
        gone = Texts(index / base.folder).named(ids, sources)
        if not gone:
            return base, 0
        content = publish.stage(index, base) / "content"
        writer = LexicalWriter(content / "lexical")
        for first, last in _ranges(sorted(gone)):
            writer.delete(first, last)
        writer.commit()
        writer.close()
        _forget(content, gone)
        left = base.passages - len(gone)
        draft = dataclasses.replace(
            base,
            generation=publish.next_generation(index),
            passages=left,
            created=_now(),
        )
        return publish.publish(index, base, draft), len(gone)


def _ranges(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and last of each run of rows that follow one another."""
    first = 0
    for place, row in enumerate(rows):
        if place + 1 == len(rows) or rows[place + 1] != row + 1:
            yield rows[first], row
            first = place + 1


def _forget(content: Path, gone: Mapping[int, Passage]) -> None:
    """A deleted passage may be added again later, and is not found by its vector any more."""
    hashes = [fingerprint(passage.title, passage.text) for passage in gone.values()]
    kept = np.setdiff1d(
        load_fingerprints(content).to_array(), np.array(hashes, dtype=np.uint64)
    )
    save_fingerprints(content, Seen.from_array(kept))
    save_deleted(content, gone)
    if (content / "vectors").exists():
        from whichsense.index.dense.vectors import VectorsWriter

        with VectorsWriter(content / "vectors") as vectors:
            vectors.remove(np.fromiter(gone, dtype=np.uint64))
            vectors.save()


def _grow(
    out: Path,
    corpus: Corpus,
    cutting: Cutting,
    *,
    encoder: Encoder | None,
    base: Manifest | None,
    progress: Progress,
    say: Callable[[str], None],
) -> Manifest:
    """Stage `base` (or nothing) and the corpus on top of it; publish what comes of it."""
    job = {
        "corpus": corpus.fingerprint,
        "cutting": dataclasses.asdict(cutting),
        "base": base.generation if base else None,
        "encoder": encoder.name if encoder else None,
    }
    if staged_job(out) == job and (manifest := publish.finished(out)):
        return manifest
    staging = Staging.resume_or_start(out, base, job, _id_prefix(corpus, base))
    try:
        if not staging.state.read_all:
            _read(corpus, cutting, staging, progress)
    finally:
        staging.close()
    state = staging.state
    if encoder is not None:
        encode_rows(
            staging.content,
            encoder,
            range(base.next_row if base else 0, state.next_row),
            progress,
            say,
        )
    draft = Manifest(
        generation=publish.next_generation(out),
        passages=state.passages,
        next_row=state.next_row,
        created=_now(),
        settings=dataclasses.asdict(cutting),
        sources=(
            *(base.sources if base else ()),
            {
                "paths": [whole_characters(str(path)) for path in corpus.files],
                "fingerprint": corpus.fingerprint,
            },
        ),
        encoder=encoder.name if encoder else None,
        report=state.report,
    )
    return publish.publish(out, base, draft)


def _id_prefix(corpus: Corpus, base: Manifest | None) -> str:
    """Ids stay unique: where a file of the same name was read before, the generation goes before them."""
    before = {
        Path(path).name
        for source in (base.sources if base else ())
        for path in source["paths"]
    }
    return (
        f"{base.generation + 1}/"
        if base and before & {path.name for path in corpus.files}
        else ""
    )


def _read(
    corpus: Corpus, cutting: Cutting, staging: Staging, progress: Progress
) -> None:
    saved = shown = time.monotonic()
    with stop_requested() as stop, contextlib.ExitStack() as stack:

        def idle() -> None:
            """Runs of broken or skipped records can be stopped too."""
            if stop():
                staging.checkpoint(corpus.position)
                raise _stopped()

        records = corpus.records(staging.report, skip=staging.state.position, idle=idle)
        stack.enter_context(
            contextlib.closing(records)
        )  # a dump's reader has processes to end
        progress(0.0, staging.state.passages)
        for record in records:
            staging.put(record, cutting.words, cutting.sentences)
            now = time.monotonic()
            if now - shown > PROGRESS_SECONDS:
                progress(corpus.done, staging.state.passages)
                shown = now
            if stop() or now - saved > CHECKPOINT_SECONDS:
                staging.checkpoint(corpus.position)
                saved = time.monotonic()
            if stop():
                raise _stopped()
        progress(1.0, staging.state.passages)
        staging.finish_reading(corpus.position)


def _stopped() -> Stopped:
    return Stopped("Stopped. Run the same command again: it resumes where it was.")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
