"""Changing an index: build, add, delete. Each stages a whole next generation and publishes it at the end."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whichsense.corpus import Corpus, RecordCorpus, Seen, Sources, make_corpus
from whichsense.corpus.duplicates import fingerprint
from whichsense.index import folder as folders
from whichsense.index import publish
from whichsense.index.dense.encode import encode_rows, encoder_of
from whichsense.index.folder import Manifest
from whichsense.index.lexical.engine import LexicalWriter
from whichsense.index.lexical.generation import Texts
from whichsense.index.staging import (
    Staging,
    State,
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

_PROGRESS_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Cutting:
    """How documents become passages: `words` white-space words each, or whole sentences up to that many."""

    words: int = 100
    sentences: bool = False


def build_index(
    sources: Sources,
    folder: str | Path,
    *,
    cutting: Cutting | None = None,
    encoder: Encoder | None = None,
    format: str | None = None,
    encoding: str | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = unsaid,
    checkpoint_seconds: float = 60.0,
) -> Manifest:
    """Build an index of the sources. An index that is there already is served until the new one is complete."""
    corpus = make_corpus(sources, format=format, encoding=encoding)
    corpus.find_files()  # so that a wrong path is an error before a folder is made
    growth = _Growth(
        Path(folder),
        corpus,
        cutting or Cutting(),
        encoder,
        None,
        progress,
        say,
        checkpoint_seconds,
    )
    with folders.writing(growth.folder, "index build"):
        return growth.run()


def add(
    sources: Sources,
    folder: str | Path,
    *,
    encoder: Encoder | None = None,
    format: str | None = None,
    encoding: str | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = unsaid,
    checkpoint_seconds: float = 60.0,
) -> Manifest:
    """Add sources to an index, cut and encoded as the rest of it was."""
    # The file's name goes into the ids, so that document 1 of this file is not document 1 of another.
    corpus = make_corpus(sources, format=format, encoding=encoding, prefix=True)
    # Both before the lock, which makes the folder: a mistyped folder or source is an error and nothing else.
    folders.read_manifest(Path(folder))
    corpus.find_files()
    with folders.writing(Path(folder), "index add"):
        base = folders.read_manifest(Path(folder))
        growth = _Growth(
            Path(folder),
            corpus,
            Cutting(**base.settings),
            encoder_of(base.encoder, encoder),
            base,
            progress,
            say,
            checkpoint_seconds,
        )
        return growth.run()


def delete(
    folder: str | Path, ids: Iterable[str] = (), sources: Iterable[str] = ()
) -> tuple[Manifest, int]:
    """Delete passages by document id, passage id or source. Returns the new manifest and how many were deleted."""
    folder = Path(folder)
    folders.read_manifest(folder)  # before the lock, which makes the folder
    with folders.writing(folder, "index delete"):
        base = folders.read_manifest(folder)
        deleted = Texts(folder / base.folder).named(ids, sources)
        if not deleted:
            return base, 0
        content = publish.stage(folder, base) / "content"
        writer = LexicalWriter(content / "lexical")
        for first, last in _ranges(sorted(deleted)):
            writer.delete(first, last)
        writer.commit()
        writer.close()
        _forget(content, deleted)
        draft = dataclasses.replace(
            base,
            generation=publish.next_generation(folder),
            passages=base.passages - len(deleted),
            created=_now(),
        )
        return publish.publish(folder, base, draft), len(deleted)


def _ranges(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and last of each run of consecutive rows."""
    first = 0
    for place, row in enumerate(rows):
        if place + 1 == len(rows) or rows[place + 1] != row + 1:
            yield rows[first], row
            first = place + 1


def _forget(content: Path, deleted: Mapping[int, Passage]) -> None:
    """A deleted passage may be added again later, and is no longer found by its vector."""
    hashes = []
    for passage in deleted.values():
        hashes.append(fingerprint(passage.title, passage.text))
    # Their fingerprints go, so that they do not count as duplicates.
    remaining = np.setdiff1d(
        load_fingerprints(content).to_array(), np.array(hashes, dtype=np.uint64)
    )
    save_fingerprints(content, Seen.from_array(remaining))
    save_deleted(content, deleted)
    if (content / "vectors").exists():
        from whichsense.index.dense.writer import VectorsWriter

        with VectorsWriter(content / "vectors") as vectors:
            vectors.remove(np.fromiter(deleted, dtype=np.uint64))
            vectors.save()


@dataclass(frozen=True)
class _Growth:
    """A corpus that is put on top of an index, or of nothing."""

    folder: Path
    corpus: Corpus | RecordCorpus
    cutting: Cutting
    encoder: Encoder | None
    base: Manifest | None
    progress: Progress
    say: Callable[[str], None]
    checkpoint_seconds: float

    def run(self) -> Manifest:
        """Stage the next generation, or resume it, and publish it."""
        job = {
            "corpus": self.corpus.fingerprint,
            "cutting": dataclasses.asdict(self.cutting),
            "base": self.base.generation if self.base else None,
            "encoder": self.encoder.name if self.encoder else None,
        }
        # A run of this very job may have been killed just before it was served.
        if staged_job(self.folder) == job:
            manifest = publish.finished(self.folder)
            if manifest:
                return manifest
        staging = Staging.resume_or_start(self.folder, self.base, job, self._prefix())
        try:
            if not staging.state.read_all:
                self._read(staging)
        finally:
            staging.close()
        if self.encoder is not None:
            first = self.base.next_row if self.base else 0
            rows = range(first, staging.state.next_row)
            encode_rows(staging.content, self.encoder, rows, self.progress, self.say)
        return publish.publish(self.folder, self.base, self._draft(staging.state))

    def _draft(self, state: State) -> Manifest:
        paths = []
        for path in self.corpus.find_files():
            paths.append(whole_characters(str(path)))
        source = {"paths": paths, "fingerprint": self.corpus.fingerprint}
        before = self.base.sources if self.base else ()
        return Manifest(
            generation=publish.next_generation(self.folder),
            passages=state.passages,
            next_row=state.next_row,
            created=_now(),
            settings=dataclasses.asdict(self.cutting),
            sources=(*before, source),
            encoder=self.encoder.name if self.encoder else None,
            report=state.report,
        )

    def _prefix(self) -> str:
        """Keep ids unique: where a file of the same name was read before, the generation goes before them."""
        if self.base is None:
            return ""
        read_before = set()
        for source in self.base.sources:
            for path in source["paths"]:
                read_before.add(Path(path).name)
        names = {path.name for path in self.corpus.find_files()}
        return f"{self.base.generation + 1}/" if read_before & names else ""

    def _read(self, staging: Staging) -> None:
        corpus, state = self.corpus, staging.state
        words, sentences = self.cutting.words, self.cutting.sentences
        last_checkpoint = last_progress = time.monotonic()
        with stop_requested() as stop, contextlib.ExitStack() as stack:

            def idle() -> None:
                """A stop also takes effect in a run of broken or skipped records."""
                if stop():
                    staging.checkpoint(corpus.position)
                    raise _stopped()

            records = corpus.records(staging.report, skip=state.position, idle=idle)
            # The reader of a dump has processes to end.
            stack.enter_context(contextlib.closing(records))
            self.progress(0.0, state.passages)
            for record in records:
                staging.put(record, words, sentences)
                now = time.monotonic()
                if now - last_progress > _PROGRESS_SECONDS:
                    self.progress(corpus.done, state.passages)
                    last_progress = now
                if stop() or now - last_checkpoint > self.checkpoint_seconds:
                    staging.checkpoint(corpus.position)
                    last_checkpoint = time.monotonic()
                if stop():
                    raise _stopped()
            self.progress(1.0, state.passages)
            staging.finish_reading(corpus.position)


def _stopped() -> Stopped:
    return Stopped("Stopped. Run the same command again: it resumes where it was.")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
